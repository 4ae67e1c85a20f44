/// @file
/// Timelines of the CPU device: the virtual clock keeps the spans of the first block.
#include <atomic>
#include <stdexcept>

#include "common/cpu_device/cpu_device.hpp"
#include "common/cuda/tile_count.hpp"
#include "common/host/timeline/recording.hpp"

namespace ladder {
namespace {

std::atomic<int> tiles_begun{0};

/// Keeps the spans of launches for as long as it lives.
class KeepSpans {
 public:
  KeepSpans() : before_(cpu_device::options()) {
    cpu_device::Options options = before_;
    options.trace = true;
    cpu_device::set_options(options);
  }
  ~KeepSpans() { cpu_device::set_options(before_); }
  KeepSpans(const KeepSpans&) = delete;
  KeepSpans& operator=(const KeepSpans&) = delete;

 private:
  cpu_device::Options before_;
};

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

/// Waiting for its own products is computing, as it is on the GPU's timeline; for its own stores, storing.
SpanKind kind_of_wait(const std::string& what) {
  if (what == "wait wgmma") return SpanKind::compute;
  return starts_with(what, "wait cp.async.bulk.wait_group") ? SpanKind::store : SpanKind::wait;
}

void add_span(WarpSpans& warp, const cpu_device::Span& span) {
  if (span.what == "copy")
    warp.copies.push_back({SpanKind::load, "copy", span.begin, span.end});
  else if (span.what == "mma")
    warp.products.push_back({SpanKind::compute, "mma", span.begin, span.end});
  else if (span.what == "store")
    warp.stores.push_back({SpanKind::store, "store", span.begin, span.end});
  else
    warp.threads.push_back({kind_of_wait(span.what), span.what, span.begin, span.end});
}

}  // namespace

void trace::count_tile() { ++tiles_begun; }

bool can_record() { return true; }

Timeline last_timeline() {
  std::map<std::pair<unsigned, unsigned>, WarpSpans> warps;
  for (const cpu_device::Span& span : cpu_device::last_trace()) {
    WarpSpans& warp = warps[{span.block, span.warp}];
    warp.block = span.block;
    warp.warp = span.warp;
    add_span(warp, span);
  }
  std::vector<WarpSpans> all;
  for (auto& [place, warp] : warps) all.push_back(std::move(warp));

  Timeline timeline;
  timeline.unit = "cycles";
  timeline.lanes = lanes_of_roles(std::move(all));
  for (const TimelineLane& lane : timeline.lanes) timeline.tiles[lane.block] = tiles_begun;
  return timeline;
}

Recording record(const Contender& contender, const Gemm& gemm) {
  const KeepSpans keep;
  tiles_begun = 0;
  multiply_and_wait(contender, gemm);
  return {last_timeline(), std::nullopt};
}

void hand_over_to_traced(const Contender&, const Shape&, char**) {
  throw std::logic_error("the CPU device records by itself");
}

}  // namespace ladder
