/// @file
/// Experiment `small_copies`: how many small pieces of host memory reach the GPU, as the scattered rows of a
/// batch or the blocks of a cache do.
///
/// The pieces lie in pinned memory, each apart from the next, and belong side by side on the device. A call
/// for each costs the host a call for each; a graph or cudaMemcpyBatchAsync (CUDA 13) hands all of them over
/// at once. Or the host copies them together first, or a kernel reads them where they are.
#include <fmt/core.h>
#include <cstring>
#include <stdexcept>

#include "07_streams/experiments/support.hpp"
#include "07_streams/pinned_ring.hpp"
#include "common/cuda/launch.cuh"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"

#if !defined(LADDER_CPU_DEVICE) && CUDART_VERSION >= 13000
#define LADDER_HAS_BATCHED_COPIES 1
#else
#define LADDER_HAS_BATCHED_COPIES 0
#endif

namespace lesson07 {
namespace {

constexpr int kGatherThreads = 256;

/// A block for each piece. @param source [pieces, 2 * piece]: every other piece is one. @param piece in words
__global__ void gather(unsigned* target, const unsigned* source, int piece) {
  const size_t first = size_t(blockIdx.x) * piece;
  for (int i = static_cast<int>(threadIdx.x); i < piece; i += kGatherThreads)
    target[first + i] = source[2 * first + i];
}

class SmallCopies {
 public:
  SmallCopies(int pieces, int words)
      : pieces_(pieces),
        words_(words),
        source_(2 * size()),
        packed_(size()),
        arrived_(size()),
        target_(size()) {
    for (size_t i = 0; i < source_.size(); ++i) source_.data()[i] = static_cast<unsigned>(i);
    CUDA_CHECK(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal));
    copy_each();
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamEndCapture(stream(), &graph));
    graph_.reset(graph);
    cudaGraphExec_t exec = nullptr;
    CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    exec_.reset(exec);
    for (int piece = 0; piece < pieces_; ++piece) {
      from_.push_back(source_at(piece));
      to_.push_back(target_.data() + size_t(piece) * words_);
      sizes_.push_back(bytes());
    }
  }

  /// Each hands all pieces over and returns.
  void copy_each() {
    for (int piece = 0; piece < pieces_; ++piece)
      CUDA_CHECK(cudaMemcpyAsync(target_.data() + size_t(piece) * words_, source_at(piece), bytes(),
                                 cudaMemcpyHostToDevice, stream()));
  }
  void launch_graph() { CUDA_CHECK(cudaGraphLaunch(exec_.get(), stream())); }
#if LADDER_HAS_BATCHED_COPIES
  void copy_batch() {
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t first = 0;
    CUDA_CHECK(cudaMemcpyBatchAsync(to_.data(), from_.data(), sizes_.data(), sizes_.size(), &attributes,
                                    &first, 1, stream()));
  }
#endif
  void pack() {
    for (int piece = 0; piece < pieces_; ++piece)
      std::memcpy(packed_.data() + size_t(piece) * words_, source_at(piece), bytes());
    CUDA_CHECK(cudaMemcpyAsync(target_.data(), packed_.data(), size() * sizeof(unsigned),
                               cudaMemcpyHostToDevice, stream()));
  }
  void gather_by_kernel() {
    ladder::launch(gather,
                   {.name = "gather",
                    .grid = dim3(static_cast<unsigned>(pieces_)),
                    .block = kGatherThreads,
                    .stream = stream()},
                   target_.data(), source_.data(), words_);
  }

  void wait() { CUDA_CHECK(cudaStreamSynchronize(stream())); }
  /// @throws std::runtime_error unless `copy` brings every piece to its place
  void check(const std::string& how, void (SmallCopies::*copy)()) {
    CUDA_CHECK(cudaMemsetAsync(target_.data(), 0xff, size() * sizeof(unsigned), stream()));
    (this->*copy)();
    CUDA_CHECK(cudaMemcpyAsync(arrived_.data(), target_.data(), size() * sizeof(unsigned),
                               cudaMemcpyDeviceToHost, stream()));
    wait();
    for (int piece = 0; piece < pieces_; ++piece)
      if (std::memcmp(arrived_.data() + size_t(piece) * words_, source_at(piece), bytes()) != 0)
        throw std::runtime_error(fmt::format("small_copies, {}: piece {} has not arrived", how, piece));
  }

 private:
  cudaStream_t stream() const { return stream_.get(); }
  size_t size() const { return size_t(pieces_) * words_; }
  size_t bytes() const { return words_ * sizeof(unsigned); }
  const unsigned* source_at(int piece) const { return source_.data() + 2 * size_t(piece) * words_; }

  int pieces_, words_;
  PinnedBuffer<unsigned> source_;  ///< every other piece is one
  PinnedBuffer<unsigned> packed_, arrived_;
  ladder::DeviceBuffer<unsigned> target_;
  std::vector<const void*> from_;
  std::vector<void*> to_;
  std::vector<size_t> sizes_;
  ladder::Stream stream_ = ladder::make_stream();
  ladder::Graph graph_;
  ladder::GraphExec exec_;
};

struct WayToCopy {
  const char* name;
  void (SmallCopies::*copy)();
};
constexpr WayToCopy kWaysToCopy[] = {{"a call for each", &SmallCopies::copy_each},
                                     {"a graph", &SmallCopies::launch_graph},
#if LADDER_HAS_BATCHED_COPIES
                                     {"cudaMemcpyBatchAsync", &SmallCopies::copy_batch},
#endif
                                     {"the host packs, one copy", &SmallCopies::pack},
                                     {"a kernel reads pinned memory", &SmallCopies::gather_by_kernel}};

void run_small_copies(const Context& context) {
  const bool cpu = ladder::on_cpu_device();
  const int pieces = cpu ? 20 : 1000;
  const std::vector<int> sizes = cpu ? std::vector{64, 256} : std::vector{1 << 10, 16 << 10};
  std::vector<std::unique_ptr<SmallCopies>> all;
  std::vector<Variant> variants;
  std::vector<double> host(sizes.size() * std::size(kWaysToCopy));
  for (const int bytes : sizes) {
    SmallCopies& copies =
        *all.emplace_back(std::make_unique<SmallCopies>(pieces, bytes / static_cast<int>(sizeof(unsigned))));
    for (const WayToCopy& way : kWaysToCopy) {
      copies.check(way.name, way.copy);
      variants.push_back({way.name,
                          {{"bytes", std::to_string(bytes)}, {"how", way.name}},
                          [&, i = variants.size(), copy = way.copy] {
                            host[i] = host_us([&] { (copies.*copy)(); });
                            copies.wait();
                          }});
    }
  }
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  context.out << pieces << " pieces\n";
  ladder::Table table(context.out,
                      {{"bytes", 6}, {"pieces come by", 30, false}, {"us", 8}, {"GB/s", 6}, {"host us", 8}});
  table.header();
  for (size_t i = 0; i < variants.size(); ++i) {
    ladder::Settings& settings = variants[i].settings;
    const double bytes = std::stod(settings.at("bytes")) * pieces;
    settings["us"] = us_text(measured[i].median_us);
    settings["gb_per_s"] = ladder::fixed(bytes / measured[i].median_us * 1e-3, 1);
    settings["host_us"] = host_time_text(host[i]);
    table.row(
        {settings["bytes"], variants[i].label, settings["us"], settings["gb_per_s"], settings["host_us"]});
    add_result(context, "small_copies", variants[i], {}, measured[i], {}, /*verified=*/true);
  }
}

}  // namespace

const Experiment& small_copies_experiment() {
  static const Experiment experiment = {
      "small_copies", "How do many small pieces of host memory reach the GPU?", run_small_copies};
  return experiment;
}

}  // namespace lesson07
