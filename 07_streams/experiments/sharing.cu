/// @file
/// Experiment `sharing`: when blocks of two kernels run on one multiprocessor, and how many kernels run at
/// once.
///
/// A multiprocessor takes a block whenever it has enough warps, registers and shared memory left, of
/// whichever kernel it is. Two kernels of one block for each multiprocessor run in two streams: once with
/// little shared memory, once with so much that a second block does not fit. Then many kernels of one block
/// each, in as many streams, tell how many the GPU runs at once.
///
/// Experiment `priority`, of the same kernels: a short one comes behind a long one, in a stream of the same
/// priority and in an urgent one.
#include <fmt/core.h>
#include <algorithm>
#include <set>

#include "07_streams/experiments/devices.hpp"
#include "07_streams/experiments/small_kernel.cuh"
#include "07_streams/experiments/support.hpp"
#include "common/cuda/launch.cuh"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"

namespace lesson07 {

Shared shared_multiprocessors(const std::vector<BlockRecord>& records) {
  const auto middle = records.begin() + static_cast<std::ptrdiff_t>(records.size() / 2);
  std::set<uint32_t> shared;
  Shared found;
  uint64_t longest_ns = 0;
  for (auto one = records.begin(); one != middle; ++one)
    for (auto other = middle; other != records.end(); ++other) {
      const uint64_t begin = std::max(one->begin_ns, other->begin_ns);
      const uint64_t end = std::min(one->end_ns, other->end_ns);
      if (one->multiprocessor != other->multiprocessor || begin >= end) continue;
      shared.insert(one->multiprocessor);
      if (end - begin <= longest_ns) continue;
      longest_ns = end - begin;
      found.longest = {*one, *other};
    }
  found.multiprocessors = static_cast<int>(shared.size());
  return found;
}

int most_at_once(const std::vector<BlockRecord>& records) {
  std::vector<std::pair<uint64_t, int>> changes;  // an end comes before a beginning at the same time
  for (const BlockRecord& record : records) {
    changes.emplace_back(record.begin_ns, +1);
    changes.emplace_back(record.end_ns, -1);
  }
  std::sort(changes.begin(), changes.end());
  int now = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, now += change);
  return most;
}

namespace {

constexpr int kChainThreads = 256;
constexpr size_t kLittle = 32 << 10, kMuch = 200 << 10;  ///< bytes of shared memory; there are 227 KiB
constexpr int kGrids = 256;

/// Kernels of `blocks` blocks each, and the notes of all their blocks.
class SmallKernels {
 public:
  SmallKernels(int kernels, int blocks)
      : blocks_(blocks), records_(size_t(kernels) * blocks), sums_(size_t(kernels) * blocks) {}

  void launch(int kernel, size_t shared_bytes, int steps, cudaStream_t stream) {
    const size_t first = size_t(kernel) * blocks_;
    ladder::launch(multiply_add_chain,
                   {.name = "multiply_add_chain",
                    .grid = dim3(static_cast<unsigned>(blocks_)),
                    .block = dim3(kChainThreads),
                    .shared_bytes = shared_bytes,
                    .stream = stream},
                   records_.data() + first, sums_.data() + first, steps);
  }
  std::vector<BlockRecord> records() const { return ladder::download(records_.data(), records_.size()); }

 private:
  int blocks_;
  ladder::DeviceBuffer<BlockRecord> records_;
  ladder::DeviceBuffer<float> sums_;
};

/// "on multiprocessor 7 a block of each: 0.0 to 283.1 us, and 1.2 to 284.9 us"
std::string in_words(const std::pair<BlockRecord, BlockRecord>& blocks) {
  const auto& [one, other] = blocks;
  const uint64_t begin = std::min(one.begin_ns, other.begin_ns);
  const auto us = [&](uint64_t ns) { return static_cast<double>(ns - begin) / 1e3; };
  return fmt::format("on multiprocessor {} a block of each: {:.1f} to {:.1f} us, and {:.1f} to {:.1f} us",
                     one.multiprocessor, us(one.begin_ns), us(one.end_ns), us(other.begin_ns),
                     us(other.end_ns));
}

uint64_t first_begin(const std::vector<BlockRecord>& records) {
  uint64_t first = UINT64_MAX;
  for (const BlockRecord& record : records) first = std::min(first, record.begin_ns);
  return first;
}

uint64_t last_end(const std::vector<BlockRecord>& records) {
  uint64_t last = 0;
  for (const BlockRecord& record : records) last = std::max(last, record.end_ns);
  return last;
}

/// Two kernels, together or in turn.
void compare_two_kernels(const Context& context, int blocks, int steps) {
  const std::vector<ladder::Stream> streams = make_streams(2);
  SmallKernels kernels(2, blocks);
  const auto both = [&](size_t shared_bytes, size_t second_stream) {
    return [&, shared_bytes, second_stream] {
      kernels.launch(0, shared_bytes, steps, streams[0].get());
      kernels.launch(1, shared_bytes, steps, streams[second_stream].get());
      wait_for(streams);
    };
  };
  std::vector<Variant> variants;
  for (const size_t bytes : {kLittle, kMuch})
    for (const size_t second : {size_t{0}, size_t{1}})
      variants.push_back({second ? "two streams" : "one stream",
                          {{"shared_kib", std::to_string(bytes >> 10)}, {"streams", second ? "2" : "1"}},
                          both(bytes, second)});
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  ladder::Table table(context.out, {{"shared KiB a block", 18},
                                    {"two kernels in", 14, false},
                                    {"us", 8},
                                    {"predicted shared", 16},
                                    {"multiprocessors shared", 22}});
  table.header();
  std::string example;
  for (size_t i = 0; i < variants.size(); ++i) {
    variants[i].run();
    const Shared shared = shared_multiprocessors(kernels.records());
    // Of two streams, blocks that fit beside each other.
    const int expected =
        variants[i].settings.at("streams") == "2" && i < 2 && !ladder::on_cpu_device() ? blocks : 0;
    ladder::Settings& settings = variants[i].settings;
    settings["multiprocessors_shared"] = fmt::format("{} of {}", shared.multiprocessors, blocks);
    settings["shared_predicted"] = fmt::format("{} of {}", expected, blocks);
    table.row({settings.at("shared_kib"), variants[i].label, us_text(measured[i].median_us),
               settings["shared_predicted"], settings["multiprocessors_shared"]});
    if (shared.longest && example.empty()) {
      example = in_words(*shared.longest);
      settings["on_one_multiprocessor"] = example;
    }
    add_result(context, "sharing", variants[i], {}, measured[i]);
  }
  if (!example.empty()) context.out << example << "\n";
}

/// The CUDA C++ Programming Guide's "maximum number of resident grids per device" of every GPU that lessons
/// run on. The CPU device runs one at a time.
int predicted_at_once() { return ladder::on_cpu_device() ? 1 : 128; }

void count_kernels_at_once(const Context& context, int steps) {
  const std::vector<ladder::Stream> streams = make_streams(kGrids);
  SmallKernels kernels(kGrids, 1);
  Variant variant = {"many", {{"kernels", std::to_string(kGrids)}}, [&] {
                       for (int kernel = 0; kernel < kGrids; ++kernel)
                         kernels.launch(kernel, 0, steps, streams[size_t(kernel)].get());
                       wait_for(streams);
                     }};
  const Measured measured = measure_interleaved({variant}, context.rounds).front();
  const int most = most_at_once(kernels.records());
  context.out << "\n"
              << kGrids << " kernels of one block in as many streams: at most " << most
              << " at once (predicted: " << predicted_at_once() << ")\n";
  variant.settings["most_at_once"] = std::to_string(most);
  variant.settings["predicted_at_once"] = std::to_string(predicted_at_once());
  add_result(context, "sharing", variant, {}, measured);
}

void run_sharing(const Context& context) {
  if (ladder::on_cpu_device()) {
    context.out << "The CPU device runs one kernel at a time, each block on a multiprocessor of its own.\n";
    compare_two_kernels(context, 4, 10);
    count_kernels_at_once(context, 10);
    return;
  }
  int device = 0, multiprocessors = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  compare_two_kernels(context, multiprocessors, 100'000);
  count_kernels_at_once(context, 2'000'000);  // some milliseconds: longer than it takes to launch all of them
}

/// A kernel of many waves of blocks, and right behind it a short one in another stream: who gets a
/// multiprocessor that becomes free?
void run_priority(const Context& context) {
  const bool cpu = ladder::on_cpu_device();
  const int multiprocessors = cpu ? 4 : ladder::device_info().multiprocessors, steps = cpu ? 10 : 20'000;
  constexpr int kWaves = 8;
  SmallKernels longer(1, kWaves * multiprocessors), shorter(1, multiprocessors);
  const std::vector<ladder::Stream> streams = make_streams(2);
  const ladder::Stream urgent = make_urgent_stream();
  const auto both = [&](cudaStream_t second) {
    return [&, second] {
      longer.launch(0, kMuch, steps, streams[0].get());
      shorter.launch(0, kMuch, steps, second);
      CUDA_CHECK(cudaStreamSynchronize(second));
      wait_for(streams);
    };
  };
  std::vector<Variant> variants = {{"same", {{"priority", "same"}}, both(streams[1].get())},
                                   {"high", {{"priority", "high"}}, both(urgent.get())}};
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  context.out << "A kernel of " << kWaves << " waves of blocks, and a kernel of one behind it\n";
  ladder::Table table(context.out, {{"its priority", 12, false},
                                    {"us", 8},
                                    {"it ends at us", 13},
                                    {"predicted", 9},
                                    {"the long one ends at us", 23}});
  table.header();
  for (size_t i = 0; i < variants.size(); ++i) {
    variants[i].run();
    const std::vector<BlockRecord> of_longer = longer.records(), of_shorter = shorter.records();
    const uint64_t begin = first_begin(of_longer);
    const auto us = [&](const std::vector<BlockRecord>& records) {
      return static_cast<double>(std::max(begin, last_end(records)) - begin) / 1e3;
    };
    // One wave of blocks is there before it, or all of them. The CPU device has no priorities, and no time.
    const double wave_us = us(of_longer) / (i ? kWaves + 1 : kWaves);
    const auto text = [&](double ends_us) { return cpu ? "-" : us_text(ends_us); };
    ladder::Settings& settings = variants[i].settings;
    settings["ends_us"] = text(us(of_shorter));
    settings["predicted_us"] = text((i ? 2 : kWaves + 1) * wave_us);
    settings["long_one_ends_us"] = text(us(of_longer));
    table.row({variants[i].label, us_text(measured[i].median_us), settings["ends_us"],
               settings["predicted_us"], settings["long_one_ends_us"]});
    add_result(context, "priority", variants[i], {}, measured[i]);
  }
}

}  // namespace

const Experiment& sharing_experiment() {
  static const Experiment experiment = {
      "sharing", "When do two kernels share a multiprocessor, and how many kernels run at once?",
      run_sharing};
  return experiment;
}

const Experiment& priority_experiment() {
  static const Experiment experiment = {
      "priority", "Does a kernel in an urgent stream overtake one that has the GPU already?", run_priority};
  return experiment;
}

}  // namespace lesson07
