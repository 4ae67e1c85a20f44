/// @file
/// Timelines of the GPU: kernels built with LADDER_TRACE write timestamps, which become spans here.
#include <unistd.h>

#include <fmt/core.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/trace_records.hpp"
#include "common/host/base/exit_codes.hpp"
#include "common/host/base/statistics.hpp"
#include "common/host/base/text.hpp"
#include "common/host/measure/sm_clock.hpp"
#include "common/host/timeline/recording.hpp"

namespace ladder {
namespace {

// Enough for 30 tiles of lesson 05 at 8192 cubed; a file with all of it has 20 MB.
constexpr uint32_t kBlocks = 4, kWarps = 16, kSpansPerWarp = 8192, kNotesPerBlock = 64;
constexpr int kTimedLaunches = 11;

std::vector<trace::SetRecorder>& traced_sources() {
  static std::vector<trace::SetRecorder> sources;
  return sources;
}

/// The memory that kernels write their spans to.
class RecorderMemory {
 public:
  RecorderMemory() {
    trace::Recorder recorder;
    recorder.blocks = kBlocks;
    recorder.warps = kWarps;
    recorder.capacity = kSpansPerWarp;
    recorder.note_capacity = kNotesPerBlock;
    recorder.traces = traces_.data();
    recorder.records = records_.data();
    recorder.note_counts = note_counts_.data();
    recorder.notes = notes_.data();
    for (const trace::SetRecorder set : traced_sources()) CUDA_CHECK(set(recorder));
    // As in copy_to_device(): the value may still be on its way, and launches may be in any stream.
    CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));
  }
  ~RecorderMemory() {
    for (const trace::SetRecorder set : traced_sources()) set({});
  }
  RecorderMemory(const RecorderMemory&) = delete;
  RecorderMemory& operator=(const RecorderMemory&) = delete;

  void forget() {
    fill_on_device(traces_.data(), 0, traces_.size() * sizeof(trace::WarpTrace));
    fill_on_device(note_counts_.data(), 0, note_counts_.size() * sizeof(uint32_t));
    fill_on_device(notes_.data(), 0, notes_.size() * sizeof(BarrierNote));
  }

  /// What the last launch wrote. @param cycles_per_ns the SMs' clock
  Timeline timeline(double cycles_per_ns) const;

 private:
  DeviceBuffer<trace::WarpTrace> traces_{kBlocks * kWarps};
  DeviceBuffer<trace::Record> records_{size_t{kBlocks} * kWarps * kSpansPerWarp};
  DeviceBuffer<uint32_t> note_counts_{kBlocks};
  DeviceBuffer<BarrierNote> notes_{kBlocks * kNotesPerBlock};
};

using BarrierNames = std::map<uint32_t, std::string>;

SpanKind kind_of(trace::Event event) {
  switch (event) {
    case trace::Event::wait_barrier:
    case trace::Event::wait_copies:
      return SpanKind::wait;
    case trace::Event::load:
      return SpanKind::load;
    case trace::Event::compute:
      return SpanKind::compute;
    case trace::Event::stage:
    case trace::Event::store:
      return SpanKind::store;
  }
  return SpanKind::wait;
}

std::string name_of(const trace::Record& record, const BarrierNames& names) {
  switch (record.event) {
    case trace::Event::wait_barrier: {
      const auto name = names.find(record.detail);
      return name == names.end() ? "wait" : "wait " + name->second;
    }
    case trace::Event::wait_copies:
      return "wait copies";
    case trace::Event::load:
      return "load";
    case trace::Event::compute:
      return "compute";
    case trace::Event::stage:
      return "stage";
    case trace::Event::store:
      return "store";
  }
  return "?";
}

/// What the kernel wrote, on the host.
struct Written {
  std::vector<trace::WarpTrace> traces;
  std::vector<trace::Record> records;
  std::vector<uint32_t> note_counts;
  std::vector<BarrierNote> notes;
};

BarrierNames names_of_block(const Written& written, unsigned block) {
  BarrierNames names;
  const BarrierNote* const notes = &written.notes[block * kNotesPerBlock];
  const uint32_t count = std::min(written.note_counts[block], kNotesPerBlock);
  for (uint32_t i = 0; i < count; ++i)
    names[notes[i].address] = name_in_notes(notes, count, notes[i].address);
  return names;
}

/// Turns the clock of one block's SM into nanoseconds since `origin_ns` of the global timer.
class BlockClock {
 public:
  BlockClock(const trace::WarpTrace* traces, uint64_t origin_ns, double cycles_per_ns)
      : cycles_per_ns_(cycles_per_ns) {
    for (unsigned warp = 0; warp < kWarps; ++warp)
      if (traces[warp].count > 0) origin_cycles_ = std::min(origin_cycles_, traces[warp].anchor_cycles);
    // The global timer stands still between its steps, and is late by up to one: the latest anchor is the
    // best.
    for (unsigned warp = 0; warp < kWarps; ++warp)
      if (traces[warp].count > 0)
        offset_ns_ = std::max(offset_ns_, static_cast<double>(traces[warp].anchor_ns - origin_ns) -
                                              since_origin(traces[warp].anchor_cycles));
  }
  double ns(uint64_t cycles) const { return offset_ns_ + since_origin(cycles); }

 private:
  double since_origin(uint64_t cycles) const {  // negative for a span that began before the first anchor
    return static_cast<double>(static_cast<int64_t>(cycles - origin_cycles_)) / cycles_per_ns_;
  }

  double cycles_per_ns_, offset_ns_ = 0;
  uint64_t origin_cycles_ = std::numeric_limits<uint64_t>::max();
};

/// Adds the warps and tiles of one block. Where spans were lost, everything after the first of them is cut
/// off, so that all roles cover the same time.
void add_block(const Written& written, unsigned block, const BlockClock& clock, std::vector<WarpSpans>& warps,
               Timeline& timeline) {
  const BarrierNames names = names_of_block(written, block);
  const size_t first_of_block = warps.size();
  double cut_at = std::numeric_limits<double>::max();
  std::vector<double> tile_begins;
  for (unsigned warp = 0; warp < kWarps; ++warp) {
    const size_t slice = block * kWarps + warp;
    const uint32_t count = written.traces[slice].count;
    WarpSpans spans;
    spans.block = block;
    spans.warp = warp;
    for (uint32_t i = 0; i < std::min(count, kSpansPerWarp); ++i) {
      const trace::Record& record = written.records[slice * kSpansPerWarp + i];
      spans.threads.push_back(
          {kind_of(record.event), name_of(record, names), clock.ns(record.begin), clock.ns(record.end)});
      const bool begins_tile = record.event == trace::Event::compute && record.detail != 0;
      if (warp == 0 && begins_tile) tile_begins.push_back(clock.ns(record.begin));
    }
    if (count > kSpansPerWarp) {
      timeline.lost += count - kSpansPerWarp;
      cut_at = std::min(cut_at, spans.threads.back().end);
    }
    warps.push_back(std::move(spans));
  }
  for (size_t i = first_of_block; i < warps.size(); ++i) {
    auto& spans = warps[i].threads;
    const auto behind = [&](const TimelineSpan& span) { return span.end > cut_at; };
    spans.erase(std::remove_if(spans.begin(), spans.end(), behind), spans.end());
  }
  const auto before_cut = [&](double begin) { return begin < cut_at; };
  const auto tiles = std::count_if(tile_begins.begin(), tile_begins.end(), before_cut);
  if (tiles > 0) timeline.tiles[block] = static_cast<int>(tiles);
}

Timeline RecorderMemory::timeline(double cycles_per_ns) const {
  const Written written = {
      download(traces_.data(), traces_.size()), download(records_.data(), records_.size()),
      download(note_counts_.data(), note_counts_.size()), download(notes_.data(), notes_.size())};
  uint64_t origin_ns = std::numeric_limits<uint64_t>::max();
  for (const trace::WarpTrace& trace : written.traces)
    if (trace.count > 0) origin_ns = std::min(origin_ns, trace.anchor_ns);

  Timeline timeline;
  timeline.unit = "ns";
  std::vector<WarpSpans> warps;
  for (unsigned block = 0; block < kBlocks; ++block)
    add_block(written, block, {&written.traces[block * kWarps], origin_ns, cycles_per_ns}, warps, timeline);

  double first = std::numeric_limits<double>::max();
  for (const WarpSpans& warp : warps)
    for (const TimelineSpan& span : warp.threads) first = std::min(first, span.begin);
  for (WarpSpans& warp : warps)
    for (TimelineSpan& span : warp.threads) {
      span.begin -= first;
      span.end -= first;
    }
  timeline.lanes = lanes_of_roles(std::move(warps));
  return timeline;
}

/// The median time of a launch, in microseconds; `before` runs ahead of each. A warm-up comes first.
double median_launch_us(const Contender& contender, const Gemm& gemm, const std::function<void()>& before) {
  const Event begin = make_event(), end = make_event();
  std::vector<double> samples;
  for (int i = -3; i < kTimedLaunches; ++i) {
    before();
    CUDA_CHECK(cudaEventRecord(begin.get(), nullptr));
    contender.launch(gemm, nullptr);
    CUDA_CHECK(cudaEventRecord(end.get(), nullptr));
    const double us = elapsed_ms(begin, end) * 1000;
    if (i >= 0) samples.push_back(us);
  }
  return quartiles(samples).median;
}

}  // namespace

bool trace::add_traced_source(SetRecorder set) {
  traced_sources().push_back(set);
  return true;
}

bool can_record() { return !traced_sources().empty(); }

Recording record(const Contender& contender, const Gemm& gemm) {
  RecorderMemory memory;
  ClockStamps clock;
  const double us = median_launch_us(contender, gemm, [&] { memory.forget(); });
  memory.forget();
  clock.before(nullptr);
  contender.launch(gemm, nullptr);
  clock.after(nullptr);
  const double mhz = clock.read().mhz;
  return {memory.timeline(mhz / 1000), us, mhz};
}

void hand_over_to_traced(const Contender& contender, const Shape& shape, char** argv) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string traced = program.string() + "_traced";
  if (!std::filesystem::exists(traced))
    throw BadInput("--trace needs the program " + traced + "; build it with the target " +
                   program.filename().string() + "_traced (lessons from 03 on have one)");

  double us = 0;
  {
    TraceInputs inputs(shape);
    us = median_launch_us(contender, inputs.gemm(), [] {});
  }
  CUDA_CHECK(cudaDeviceReset());  // the other program needs the memory

  std::string option = "--untraced-us=" + fixed(us, 3);
  std::vector<char*> arguments;
  for (char** argument = argv; *argument; ++argument) arguments.push_back(*argument);
  arguments.push_back(option.data());
  arguments.push_back(nullptr);
  execv(traced.c_str(), arguments.data());
  throw BadInput("--trace: " + traced + " cannot be started: " + std::strerror(errno));
}

}  // namespace ladder
