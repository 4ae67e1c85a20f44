/// @file
/// Workspaces of stream-K: launches that may run at the same time have different ones, whatever becomes of
/// streams and graphs, and a launch that has none multiplies all the same.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "06_clusters_dsmem/any_shape/kernels.hpp"
#include "06_clusters_dsmem/any_shape/residents.hpp"
#include "06_clusters_dsmem/any_shape/workspace.hpp"
#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/error.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/fill.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/testing/gemm_checks.hpp"
#include "common/testing/schedules.hpp"
#ifdef LADDER_CPU_DEVICE
#include "common/cpu_device/cpu_device.hpp"
#endif

namespace any_shape = lesson06::any_shape;
using ladder::DeviceBuffer;
using ladder::Settings;
using ladder::testing::for_each_schedule;
using ladder::testing::skip_unless_runnable;

namespace {

const ladder::Lesson& lesson = any_shape::lesson();

/// The next allocation finds no memory.
/// @returns whether this device can do that
bool fail_next_allocation() {
#ifdef LADDER_CPU_DEVICE
  cpu_device::fail_call("cudaMalloc", 1, cudaErrorMemoryAllocation);
  return true;
#else
  return false;
#endif
}

/// A product whose tiles are split.
class Product {
 public:
  explicit Product(const ladder::Shape& shape = {192, 128, 1024},
                   const Settings& settings = {{"tile", "64x128"},
                                               {"cluster_m", "1"},
                                               {"cluster_n", "1"},
                                               {"cluster_k", "1"},
                                               {"stream_k", "on"}})
      : shape_(shape),
        settings_(lesson.settings(settings)),
        a_(matrix(shape.m, shape.k, 1)),
        b_(matrix(shape.k, shape.n, 2)) {
    auto c = result();
    const ladder::Stream stream = ladder::make_stream();
    launch(c, stream.get());
    any_shape::release(stream.get());
    expected_ = bits(c);
  }

  DeviceBuffer<__nv_bfloat16> result() const { return matrix(shape_.m, shape_.n, 3); }
  void launch(DeviceBuffer<__nv_bfloat16>& c, cudaStream_t stream) const {
    lesson.launch({a_.data(), b_.data(), c.data(), shape_.m, shape_.n, shape_.k}, settings_, stream);
  }
  bool is_right(const DeviceBuffer<__nv_bfloat16>& c) const { return bits(c) == expected_; }

 private:
  static DeviceBuffer<__nv_bfloat16> matrix(int rows, int columns, uint64_t seed) {
    DeviceBuffer<__nv_bfloat16> values(size_t(rows) * columns);
    ladder::fill(values.data(), values.size(), ladder::NormalValues{seed});
    CUDA_CHECK(cudaDeviceSynchronize());
    return values;
  }
  static std::vector<uint16_t> bits(const DeviceBuffer<__nv_bfloat16>& values) {
    return ladder::download(reinterpret_cast<const uint16_t*>(values.data()), values.size());
  }

  ladder::Shape shape_;
  Settings settings_;
  DeviceBuffer<__nv_bfloat16> a_, b_;
  std::vector<uint16_t> expected_;
};

template <class Work>
ladder::Graph capture(cudaStream_t stream, const Work& work) {
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  work();
  cudaGraph_t graph = nullptr;
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  return ladder::Graph(graph);
}

ladder::GraphExec executable(const ladder::Graph& graph) {
  cudaGraphExec_t exec = nullptr;
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph.get(), 0));
  return ladder::GraphExec(exec);
}

const float4* sums_of(cudaStream_t stream) { return any_shape::workspace_of(stream).sums; }

/// A stream that gives its workspace back when it is gone.
struct ReleasedStream {
  ladder::Stream stream = ladder::make_stream();
  ~ReleasedStream() {
    try {
      any_shape::release(stream.get());
    } catch (const std::exception&) {
      // The test has failed already, and says so itself.
    }
  }
  cudaStream_t get() const { return stream.get(); }
};

size_t free_bytes() {
  size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

}  // namespace

TEST_CASE("06: a first launch leaves a capture elsewhere as it is") {
  skip_unless_runnable(lesson, "wgmma");
  const Product product;
  auto c = product.result(), captured = product.result();
  const ReleasedStream stream;
  const ladder::Stream other = ladder::make_stream();
  const ladder::Graph graph = capture(other.get(), [&] {
    product.launch(captured, other.get());
    product.launch(c, stream.get());
  });
  CUDA_CHECK(cudaStreamSynchronize(stream.get()));
  CHECK(product.is_right(c));
  const ladder::GraphExec exec = executable(graph);
  CUDA_CHECK(cudaGraphLaunch(exec.get(), other.get()));
  CUDA_CHECK(cudaStreamSynchronize(other.get()));
  CHECK(product.is_right(captured));
}

TEST_CASE("06: a first launch does not wait for what keeps the legacy stream waiting") {
  skip_unless_runnable(lesson, "wgmma");
  ladder::testing::use_test_schedule({"round-robin/late"});  // where a host function runs when it must
  const Product product;
  auto c = product.result();
  const ReleasedStream stream;
  static std::atomic<bool> launched, waited_too_long;
  launched = waited_too_long = false;
  cudaStream_t handle = nullptr;
  CUDA_CHECK(cudaStreamCreate(&handle));  // the legacy stream waits for it
  const ladder::Stream blocking(handle);
  CUDA_CHECK(cudaLaunchHostFunc(
      blocking.get(),
      [](void*) {
        using Clock = std::chrono::steady_clock;
        const auto deadline = Clock::now() + std::chrono::seconds(30);
        while (!launched && !waited_too_long) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          if (Clock::now() > deadline) waited_too_long = true;
        }
      },
      nullptr));
  product.launch(c, stream.get());
  launched = true;
  CUDA_CHECK(cudaStreamSynchronize(stream.get()));
  CUDA_CHECK(cudaStreamSynchronize(blocking.get()));
  CHECK(!waited_too_long);
  CHECK(product.is_right(c));
}

TEST_CASE("06: graphs captured from one stream run side by side, and beside the stream") {
  skip_unless_runnable(lesson, "wgmma");
  const Product product;
  for_each_schedule(
      [&] {
        auto in_stream = product.result(), in_one = product.result(), in_other = product.result();
        const ReleasedStream stream;
        product.launch(in_stream, stream.get());
        const ladder::Stream first = ladder::make_stream(), second = ladder::make_stream();
        const auto twice = [&](auto& c) {
          return executable(capture(stream.get(), [&] {
            product.launch(c, stream.get());
            product.launch(c, stream.get());
          }));
        };
        const ladder::GraphExec one = twice(in_one), other = twice(in_other);
        for (int i = 0; i < (ladder::on_cpu_device() ? 1 : 200); ++i) {
          CUDA_CHECK(cudaGraphLaunch(one.get(), first.get()));
          CUDA_CHECK(cudaGraphLaunch(other.get(), second.get()));
          product.launch(in_stream, stream.get());
        }
        for (const auto* used : {&first, &second}) CUDA_CHECK(cudaStreamSynchronize(used->get()));
        CUDA_CHECK(cudaStreamSynchronize(stream.get()));
        for (const auto* c : {&in_stream, &in_one, &in_other}) CHECK(product.is_right(*c));
      },
      2);
}

TEST_CASE("06: a workspace is of one stream, or of one capture of one stream") {
  skip_unless_runnable(lesson, "wgmma");
  const ReleasedStream one, other;
  const float4* const of_one = sums_of(one.get());
  CHECK(of_one != nullptr);
  CHECK(sums_of(one.get()) == of_one);
  CHECK(sums_of(other.get()) != of_one);
  CHECK(sums_of(nullptr) == sums_of(cudaStreamLegacy));

  const float4 *of_graph = nullptr, *of_branch = nullptr;
  const ladder::Event fork = ladder::make_order_event(), join = ladder::make_order_event();
  const ladder::Graph graph = capture(one.get(), [&] {
    of_graph = sums_of(one.get());
    CHECK(sums_of(one.get()) == of_graph);
    CUDA_CHECK(cudaEventRecord(fork.get(), one.get()));
    CUDA_CHECK(cudaStreamWaitEvent(other.get(), fork.get(), 0));
    of_branch = sums_of(other.get());
    CUDA_CHECK(cudaEventRecord(join.get(), other.get()));
    CUDA_CHECK(cudaStreamWaitEvent(one.get(), join.get(), 0));
  });
  CHECK(of_graph != nullptr);
  CHECK(of_graph != of_one);
  CHECK(of_branch != of_graph);
  CHECK(of_branch != sums_of(other.get()));
  CHECK(sums_of(one.get()) == of_one);
}

TEST_CASE("06: the default streams of two threads have workspaces of their own") {
  skip_unless_runnable(lesson, "wgmma");
  const float4* const here = sums_of(cudaStreamPerThread);
  const float4* there = nullptr;
  std::thread([&] {
    there = sums_of(cudaStreamPerThread);
    any_shape::release(cudaStreamPerThread);
  }).join();
  CHECK(there != nullptr);
  CHECK(there != here);
  CHECK(here != sums_of(cudaStreamLegacy));
  any_shape::release(cudaStreamPerThread);
}

TEST_CASE("06: a stream with the handle of one that is gone has a workspace of its own") {
  skip_unless_runnable(lesson, "wgmma");
  const Product product;
  for_each_schedule(
      [&] {
        auto before = product.result(), after = product.result();
        ladder::Stream stream = ladder::make_stream();
        const cudaStream_t handle = stream.get();
        product.launch(before, handle);
        const float4* const gone = sums_of(handle);
        stream.reset();  // while the product runs
        std::vector<ladder::Stream> streams;
        while (streams.size() < 100 && (streams.empty() || streams.back().get() != handle))
          streams.push_back(ladder::make_stream());
        // Where no handle returns, any stream will do.
        const cudaStream_t next = streams.back().get();
        product.launch(after, next);
        CHECK(sums_of(next) != gone);
        CUDA_CHECK(cudaDeviceSynchronize());
        CHECK(product.is_right(before));
        CHECK(product.is_right(after));
        any_shape::release(next);
      },
      2);
}

TEST_CASE("06: the workspace of a graph lasts as long as its executable, and then another has it") {
  skip_unless_runnable(lesson, "wgmma");
  const Product product;
  auto c = product.result();
  const ReleasedStream stream;
  std::vector<ladder::Graph> graphs;
  const auto of_new_graph = [&] {
    const float4* sums = nullptr;
    graphs.push_back(capture(stream.get(), [&] { sums = sums_of(stream.get()); }));
    return sums;
  };
  const float4* first = nullptr;
  ladder::GraphExec exec = executable(capture(stream.get(), [&] {
    product.launch(c, stream.get());
    first = sums_of(stream.get());
  }));
  CHECK(of_new_graph() != first);
  CUDA_CHECK(cudaGraphLaunch(exec.get(), stream.get()));
  exec.reset();
  CUDA_CHECK(cudaStreamSynchronize(stream.get()));
  CHECK(product.is_right(c));
  // CUDA says that a graph is gone when it likes.
  bool returned = false;
  for (int i = 0; i < 50 && !returned; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20 * i));
    returned = of_new_graph() == first;
  }
  CHECK(returned);
}

TEST_CASE("06: a stream can be prepared, and gives its memory back") {
  skip_unless_runnable(lesson, "wgmma");
  const ladder::Stream stream = ladder::make_stream();
  any_shape::release(stream.get());  // and nothing of graphs is kept for it
  const size_t before = free_bytes();
  any_shape::prepare(stream.get());
  const size_t prepared = free_bytes();
  CHECK(prepared < before);
  const float4* const sums = sums_of(stream.get());
  any_shape::prepare(stream.get());
  CHECK(sums_of(stream.get()) == sums);
  any_shape::release(stream.get());
  CHECK(free_bytes() > prepared);
}

TEST_CASE("06: where there is no memory, no launch asks again") {
  skip_unless_runnable(lesson, "wgmma");
  const ReleasedStream stream;
  any_shape::release(stream.get());
  if (!fail_next_allocation()) SKIP("only the CPU device can say that there is no memory");
  CHECK(sums_of(stream.get()) == nullptr);
  CHECK(sums_of(stream.get()) == nullptr);
  fail_next_allocation();
  CHECK_THROWS_AS(any_shape::prepare(stream.get()), ladder::OutOfDeviceMemory);
  any_shape::prepare(stream.get());
  CHECK(sums_of(stream.get()) != nullptr);

  const float4* of_graph = nullptr;
  fail_next_allocation();
  const ladder::Graph graph = capture(stream.get(), [&] { of_graph = sums_of(stream.get()); });
  CHECK(of_graph == nullptr);
}

TEST_CASE("06: where there is no memory, a launch chooses a kernel that needs none") {
  skip_unless_runnable(lesson, "wgmma");
#ifdef LADDER_CPU_DEVICE
  // The plan shares the tile, and of the kernels that share none it would choose one with clusters.
  const ladder::Shape shape{64, 64, 8192};
  REQUIRE(lesson.remark(shape, lesson.settings()).starts_with("stream-K"));
  REQUIRE(lesson.choice(shape, lesson.settings()).find("cluster") == std::string::npos);
  REQUIRE(lesson.choice(shape, lesson.settings({{"stream_k", "off"}})).find("cluster") != std::string::npos);
  const ReleasedStream stream;
  any_shape::release(stream.get());
  const Product product(shape, {});
  auto c = product.result();
  const auto launches_clusters = [&] {
    product.launch(c, stream.get());
    CUDA_CHECK(cudaStreamSynchronize(stream.get()));
    return cpu_device::last_launch().cluster_bytes > 0;
  };
  fail_next_allocation();
  CHECK(launches_clusters());
  CHECK(launches_clusters());
  any_shape::prepare(stream.get());
  CHECK(!launches_clusters());
  CHECK(product.is_right(c));
#else
  SKIP("only the CPU device can say that there is no memory");
#endif
}

TEST_CASE("06: as many clusters of each kernel find room as the plan supposes") {
  skip_unless_runnable(lesson, "wgmma");
  if (ladder::on_cpu_device()) SKIP("the CPU device has as much room for one kernel as for another");
  for (const any_shape::Plan& plan : any_shape::kBuiltIn) {
    INFO(plan.name());
    CHECK(any_shape::resident_clusters_of(plan) == any_shape::this_gpu().resident[plan.blocks()]);
  }
}
