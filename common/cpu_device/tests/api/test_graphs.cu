/// @file
/// Graphs: what streams capture runs as often as it is launched, in the order that was captured.
#include <set>
#include <thread>

#include "common/cpu_device/tests/stream_test.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A fork and a join: upload on one stream, kernel on another, download on the first.
/// @param join whether the download waits for the kernel
cudaError_t capture(cudaGraph_t* graph, const PinnedInts& input, const DeviceInts& from, const DeviceInts& to,
                    const PinnedInts& output, bool join) {
  Stream one, two;
  Event uploaded, computed;
  CUDA_CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CUDA_CHECK(cudaMemcpyAsync(from.data, input.data, kBytes, cudaMemcpyHostToDevice, one));
  CUDA_CHECK(cudaEventRecord(uploaded, one));
  CUDA_CHECK(cudaStreamWaitEvent(two, uploaded));
  launch_add_one(from.data, to.data, two);
  CUDA_CHECK(cudaEventRecord(computed, two));
  if (join) CUDA_CHECK(cudaStreamWaitEvent(one, computed));
  CUDA_CHECK(cudaMemcpyAsync(output.data, to.data, kBytes, cudaMemcpyDeviceToHost, one));
  return cudaStreamEndCapture(one, graph);
}

/// What makes a graph launchable, gone with its scope.
struct Executable {
  explicit Executable(cudaGraph_t graph) {
    CUDA_CHECK(cudaGraphInstantiate(&handle, graph, 0));
    CUDA_CHECK(cudaGraphDestroy(graph));
  }
  ~Executable() { cudaGraphExecDestroy(handle); }
  Executable(const Executable&) = delete;
  operator cudaGraphExec_t() const { return handle; }
  cudaGraphExec_t handle = nullptr;
};

}  // namespace

TEST_CASE("a graph runs what was captured, with what memory holds at each launch") {
  const LiveResources before = live_resources();
  check_never_blamed([] {
    PinnedInts input, output;
    DeviceInts from, to;
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(capture(&graph, input, from, to, output, true));
    const Executable exec(graph);
    CHECK(output.all(0));
    Stream stream;
    for (int i = 1; i <= 3; ++i) {
      input.fill(i);
      CUDA_CHECK(cudaGraphLaunch(exec, stream));
      CUDA_CHECK(cudaStreamSynchronize(stream));
      CHECK(output.all(i + 1));
    }
  });
  CHECK(live_resources().graphs == before.graphs);
}

/// A graph that takes memory, fills it in a kernel from `from`, brings it to the host and gives it back.
cudaGraph_t capture_allocation(const DeviceInts& from, const PinnedInts& output, bool frees,
                               int** memory = nullptr) {
  Stream stream;
  int* scratch = nullptr;
  cudaGraph_t graph = nullptr;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CUDA_CHECK(cudaMallocAsync(&scratch, kBytes, stream));
  launch_add_one(from.data, scratch, stream);
  CUDA_CHECK(cudaMemcpyAsync(output.data, scratch, kBytes, cudaMemcpyDeviceToHost, stream));
  if (frees) CUDA_CHECK(cudaFreeAsync(scratch, stream));
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  if (memory) *memory = scratch;
  return graph;
}

TEST_CASE("a graph allocates at every launch, and its memory ends with it") {
  const LiveResources before = live_resources();
  check_never_blamed([] {
    DeviceInts from;
    PinnedInts output;
    Stream stream;
    const Executable exec(capture_allocation(from, output, true));
    for (int i = 1; i <= 3; ++i) {
      CUDA_CHECK(cudaMemsetAsync(from.data, 0, kBytes, stream));
      output.fill(7);
      CUDA_CHECK(cudaGraphLaunch(exec, stream));
      CUDA_CHECK(cudaStreamSynchronize(stream));
      CHECK(output.all(1));
    }
  });
  CHECK(live_resources().device_bytes == before.device_bytes);
}

TEST_CASE("memory of a graph is the graph's: it is NaN behind its free, and no stream can free it") {
  use({});
  DeviceInts from;
  PinnedInts output;
  Stream stream;
  int* memory = nullptr;
  const Executable exec(capture_allocation(from, output, true, &memory));
  CUDA_CHECK(cudaMemsetAsync(from.data, 0, kBytes, stream));
  CUDA_CHECK(cudaGraphLaunch(exec, stream));
  CUDA_CHECK(cudaMemcpyAsync(output.data, memory, kBytes, cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CHECK(output.all(-1));
  CHECK(cudaFreeAsync(memory, stream) == cudaErrorInvalidValue);
  (void)cudaGetLastError();
}

TEST_CASE("a graph that keeps what it allocates is refused, with the place of the allocation") {
  use({});
  DeviceInts from;
  PinnedInts output;
  CHECK_THROWS_WITH(capture_allocation(from, output, false),
                    ContainsSubstring("a graph keeps") && ContainsSubstring("test_graphs.cu"));
}

TEST_CASE("graphs that become launchable are counted, and launches of them") {
  use({});
  PinnedInts input, output;
  DeviceInts from, to;
  cudaGraph_t graph = nullptr;
  CUDA_CHECK(capture(&graph, input, from, to, output, true));
  const GraphCalls before = graph_calls();
  const Executable exec(graph);
  Stream stream;
  for (int i = 0; i < 3; ++i) CUDA_CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaGraphLaunch(nullptr, stream) == cudaErrorInvalidValue);
  (void)cudaGetLastError();
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CHECK(graph_calls().instantiations == before.instantiations + 1);
  CHECK(graph_calls().launches == before.launches + 3);
}

TEST_CASE("launches of one graph follow each other, also on different streams") {
  check_never_blamed([] {
    PinnedInts input(1), output;
    DeviceInts from, to;
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(capture(&graph, input, from, to, output, true));
    const Executable exec(graph);
    Stream one, two;
    CUDA_CHECK(cudaGraphLaunch(exec, one));
    CUDA_CHECK(cudaGraphLaunch(exec, two));
    CUDA_CHECK(cudaDeviceSynchronize());
    CHECK(output.all(2));
  });
}

TEST_CASE("an executable graph may be destroyed while a launch of it is under way, which ends all the same") {
  check_never_blamed([] {
    PinnedInts input(1), output;
    DeviceInts from, to;
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(capture(&graph, input, from, to, output, true));
    Stream stream;
    {
      const Executable exec(graph);
      CUDA_CHECK(cudaGraphLaunch(exec, stream));
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(output.all(2));
  });
}

TEST_CASE(
    "an allocation while a stream captures is refused as the mode says, and the capture is invalid then") {
  using Allocate = cudaError_t (*)(void**);
  const Allocate allocations[] = {[](void** memory) { return cudaMalloc(memory, kBytes); },
                                  [](void** memory) { return cudaMallocHost(memory, kBytes); },
                                  [](void** memory) { return cudaHostAlloc(memory, kBytes, 0); }};
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    for (const Allocate allocate : allocations) {
      for (const bool in_another_thread : {false, true}) {
        use({});
        Stream stream;
        CUDA_CHECK(cudaStreamBeginCapture(stream, mode));
        void* memory = nullptr;
        cudaError_t result = cudaSuccess;
        const auto call = [&] { result = allocate(&memory); };
        if (in_another_thread) {
          std::thread(call).join();
        } else {
          call();
        }
        const bool refused = mode == cudaStreamCaptureModeGlobal ||
                             (mode == cudaStreamCaptureModeThreadLocal && !in_another_thread);
        CHECK(result == (refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess));
        CHECK((memory == nullptr) == refused);
        cudaGraph_t graph = nullptr;
        CHECK(cudaStreamEndCapture(stream, &graph) ==
              (refused ? cudaErrorStreamCaptureInvalidated : cudaSuccess));
        if (graph) CUDA_CHECK(cudaGraphDestroy(graph));
        if (memory) CUDA_CHECK(allocate == allocations[0] ? cudaFree(memory) : cudaFreeHost(memory));
        (void)cudaGetLastError();
      }
    }
  }
}

TEST_CASE("a capture with a branch that does not come back is refused") {
  use({});
  PinnedInts input, output;
  DeviceInts from, to;
  cudaGraph_t graph = nullptr;
  CHECK(capture(&graph, input, from, to, output, false) == cudaErrorStreamCaptureUnjoined);
  CHECK(graph == nullptr);
  (void)cudaGetLastError();
}

TEST_CASE("branches of a graph that touch the same memory are named") {
  check_blamed_always(
      [] {
        PinnedInts one_input, two_input;
        DeviceInts memory;
        Stream one, two;
        Event fork, join;
        CUDA_CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
        CUDA_CHECK(cudaEventRecord(fork, one));
        CUDA_CHECK(cudaStreamWaitEvent(two, fork));
        CUDA_CHECK(cudaMemcpyAsync(memory.data, one_input.data, kBytes, cudaMemcpyHostToDevice, one));
        CUDA_CHECK(cudaMemcpyAsync(memory.data, two_input.data, kBytes, cudaMemcpyHostToDevice, two));
        CUDA_CHECK(cudaEventRecord(join, two));
        CUDA_CHECK(cudaStreamWaitEvent(one, join));
        cudaGraph_t graph = nullptr;
        CUDA_CHECK(cudaStreamEndCapture(one, &graph));
        const Executable exec(graph);
        CUDA_CHECK(cudaGraphLaunch(exec, one));
        CUDA_CHECK(cudaStreamSynchronize(one));
      },
      "nothing orders them: they are in branches of a graph that do not meet");
}

namespace {

/// What a CudaError of the body says; empty if it throws none.
template <class Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const ladder::CudaError& error) {
    (void)cudaGetLastError();
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a stream that does not join a capture is named, and the wait that is in the wrong stream") {
  use({});
  const auto capture_of_two = [](bool two_waits, bool one_waits_at_end) {
    PinnedInts input;
    DeviceInts memory;
    Stream one, two;
    Event fork, join;
    const std::string text = error_of([&] {
      CUDA_CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
      CUDA_CHECK(cudaEventRecord(fork, one));
      CUDA_CHECK(cudaStreamWaitEvent(two_waits ? two : one, fork));
      CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, two));
      CUDA_CHECK(cudaEventRecord(join, two));
      if (one_waits_at_end) CUDA_CHECK(cudaStreamWaitEvent(one, join));
      cudaGraph_t graph = nullptr;
      CUDA_CHECK(cudaStreamEndCapture(one, &graph));
      CUDA_CHECK(cudaGraphDestroy(graph));
    });
    cudaGraph_t graph = nullptr;
    (void)cudaStreamEndCapture(one, &graph);  // of a capture that is left open
    CUDA_CHECK(cudaDeviceSynchronize());
    (void)cudaGetLastError();
    return text;
  };
  CHECK(capture_of_two(true, true) == "");
  CHECK_THAT(capture_of_two(false, true),
             ContainsSubstring("dependency created on uncaptured work in another stream (") &&
                 ContainsSubstring(")\n  the event was recorded at ") &&
                 ContainsSubstring("test_graphs.cu:") && ContainsSubstring(" is not in the capture of ") &&
                 ContainsSubstring("; the wait at ") &&
                 ContainsSubstring(" which has recorded its event itself: must the other stream wait there, "
                                   "to join the capture?"));
  CHECK_THAT(capture_of_two(true, false),
             ContainsSubstring("capturing stream has unjoined work (") &&
                 ContainsSubstring(" has joined the capture at ") &&
                 ContainsSubstring(" does not wait for its last operation, the upload"));
}

TEST_CASE("calls that would leave a capture are refused as CUDA does") {
  use({});
  Stream one, other;
  Event before;
  DeviceInts memory;
  cudaStreamCaptureStatus status{};
  CUDA_CHECK(cudaEventRecord(before, other));
  CUDA_CHECK(cudaEventSynchronize(before));
  CUDA_CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CUDA_CHECK(cudaStreamIsCapturing(one, &status));
  CHECK(status == cudaStreamCaptureStatusActive);
  CHECK(cudaMemset(memory.data, 0, kBytes) == cudaErrorStreamCaptureImplicit);
  CHECK(cudaDeviceSynchronize() == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamWaitEvent(one, before) == cudaErrorStreamCaptureIsolation);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(one, &graph) == cudaErrorStreamCaptureInvalidated);
  CUDA_CHECK(cudaStreamIsCapturing(one, &status));
  CHECK(status == cudaStreamCaptureStatusNone);
  (void)cudaGetLastError();
}

TEST_CASE("a capture that is left open is reported") {
  use({});
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cudaStreamDestroy(stream);
  CHECK_THAT(blame([] {}),
             ContainsSubstring("cudaStreamDestroy of stream 1, whose capture of a graph was left open"));
}

TEST_CASE("a thread that says so allocates beside a capture, which goes on") {
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
    use({});
    Stream stream;
    CUDA_CHECK(cudaStreamBeginCapture(stream, mode));
    cudaStreamCaptureMode of_thread = cudaStreamCaptureModeRelaxed;
    CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&of_thread));
    CHECK(of_thread == cudaStreamCaptureModeGlobal);
    { const DeviceInts memory; }
    CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&of_thread));
    CHECK(of_thread == cudaStreamCaptureModeRelaxed);
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    CUDA_CHECK(cudaGraphDestroy(graph));
  }
}

TEST_CASE("streams and captures have numbers that do not return") {
  use({});
  std::set<unsigned long long> streams, captures;
  for (int i = 0; i < 10; ++i) {
    Stream stream;
    unsigned long long number = 0;
    CUDA_CHECK(cudaStreamGetId(stream, &number));
    streams.insert(number);
    cudaStreamCaptureStatus status{};
    CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status));
    CHECK(status == cudaStreamCaptureStatusNone);
    cudaGraph_t graph = nullptr, captured = nullptr;
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status, &number, &graph));
    CHECK(status == cudaStreamCaptureStatusActive);
    captures.insert(number);
    CUDA_CHECK(cudaStreamEndCapture(stream, &captured));
    CHECK(captured == graph);
    CUDA_CHECK(cudaGraphDestroy(captured));
  }
  CHECK(streams.size() == 10);
  CHECK(captures.size() == 10);
}

TEST_CASE("what a graph keeps is destroyed when the graph, its executables and their launches are gone") {
  check_never_blamed([] {
    static bool destroyed;
    destroyed = false;
    PinnedInts input(1), output;
    DeviceInts memory;
    Stream stream, other;
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    cudaStreamCaptureStatus status{};
    CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph));
    cudaUserObject_t object = nullptr;
    CUDA_CHECK(cudaUserObjectCreate(
        &object, &destroyed, [](void* flag) { *static_cast<bool*>(flag) = true; }, 1,
        cudaUserObjectNoDestructorSync));
    CUDA_CHECK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    {
      const Executable exec(graph);
      CHECK(!destroyed);
      CUDA_CHECK(cudaGraphLaunch(exec, stream));
    }
    { const DeviceInts freed; }  // CUDA runs everything then, and tells the host nothing
    CHECK(destroyed);
    // Who sees that knows that the launch has ended.
    CUDA_CHECK(cudaMemcpyAsync(output.data, memory.data, kBytes, cudaMemcpyDeviceToHost, other));
    CUDA_CHECK(cudaStreamSynchronize(other));
    CHECK(output.all(1));
  });
}

namespace {

/// A graph that calls make: fill, upload, kernel, download, host function; `kernel_after` says what the
/// kernel waits for.
struct MadeGraph : CapturedGraph {
  MadeGraph(const PinnedInts& input, const DeviceInts& from, const DeviceInts& to, const PinnedInts& output,
            bool waits) {
    CUDA_CHECK(cudaGraphCreate(&graph, 0));
    const cudaMemsetParams fill{to.data, 0, 7, 4, kCount, 1};
    CUDA_CHECK(cudaGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill));
    CUDA_CHECK(cudaGraphAddMemcpyNode1D(&uploaded, graph, nullptr, 0, from.data, input.data, kBytes,
                                        cudaMemcpyHostToDevice));
    const cudaGraphNode_t before[] = {filled, uploaded};
    const cudaKernelNodeParams kernel = params(from, to);
    CUDA_CHECK(cudaGraphAddKernelNode(&computed, graph, before, waits ? 2 : 1, &kernel));
    cudaMemcpy3DParms copy{};
    copy.srcPtr = make_cudaPitchedPtr(to.data, kBytes, kBytes, 1);
    copy.dstPtr = make_cudaPitchedPtr(output.data, kBytes, kBytes, 1);
    copy.extent = make_cudaExtent(kBytes, 1, 1);
    copy.kind = cudaMemcpyDeviceToHost;
    CUDA_CHECK(cudaGraphAddMemcpyNode(&downloaded, graph, &computed, 1, &copy));
    const cudaHostNodeParams host{[](void* count) { ++*static_cast<int*>(count); }, &host_calls};
    CUDA_CHECK(cudaGraphAddHostNode(&counted, graph, &downloaded, 1, &host));
  }

  /// Of add_one(from, to).
  cudaKernelNodeParams params(const DeviceInts& from, const DeviceInts& to) {
    arguments[0] = const_cast<int**>(&from.data);
    arguments[1] = const_cast<int**>(&to.data);
    return {pointer_without_type(add_one), 1, kCount / 4, kBytes, arguments, nullptr};
  }

  void* arguments[2] = {};
  cudaGraphNode_t filled, uploaded, computed, downloaded, counted;
  int host_calls = 0;
};

}  // namespace

TEST_CASE("a graph that calls make runs each node behind those that it names") {
  check_never_blamed([] {
    PinnedInts input(1), output;
    DeviceInts from, to;
    MadeGraph made(input, from, to, output, true);
    CUDA_CHECK(cudaGraphInstantiate(&made.exec, made.graph, nullptr, nullptr, 0));
    Stream stream;
    for (int i = 1; i <= 2; ++i) {
      input.fill(i);
      CUDA_CHECK(cudaGraphLaunch(made.exec, stream));
      CUDA_CHECK(cudaStreamSynchronize(stream));
      CHECK(output.all(i + 1));
      CHECK(made.host_calls == i);
    }
    size_t nodes = 0, roots = 0;
    cudaGraphNodeType type{};
    CUDA_CHECK(cudaGraphGetNodes(made.graph, nullptr, &nodes));
    CUDA_CHECK(cudaGraphGetRootNodes(made.graph, nullptr, &roots));
    CUDA_CHECK(cudaGraphNodeGetType(made.computed, &type));
    CHECK(nodes == 5);
    CHECK(roots == 2);
    CHECK(type == cudaGraphNodeTypeKernel);
  });
}

TEST_CASE("a kernel node that does not name the upload that it needs is blamed") {
  check_blamed_always(
      [] {
        PinnedInts input(1), output;
        DeviceInts from, to;
        MadeGraph made(input, from, to, output, false);
        CUDA_CHECK(cudaGraphInstantiate(&made.exec, made.graph, 0));
        Stream stream;
        CUDA_CHECK(cudaGraphLaunch(made.exec, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
      },
      "kernel add_one on a graph on stream 1 reads the buffer of 1024 bytes of cudaMalloc");
}

TEST_CASE("dependencies may be added later, and may not form a circle") {
  check_never_blamed([] {
    PinnedInts input(1), output;
    DeviceInts from, to;
    MadeGraph made(input, from, to, output, false);
    CUDA_CHECK(cudaGraphAddDependencies(made.graph, &made.uploaded, &made.computed, 1));
    // Behind the node that needs it, and so the last one to be added runs first.
    cudaGraphNode_t first = nullptr;
    const cudaMemsetParams fill{from.data, 0, 9, 4, kCount, 1};
    CUDA_CHECK(cudaGraphAddMemsetNode(&first, made.graph, nullptr, 0, &fill));
    CUDA_CHECK(cudaGraphAddDependencies(made.graph, &first, &made.uploaded, 1));
    cudaGraph_t circle = nullptr;
    CUDA_CHECK(cudaGraphClone(&circle, made.graph));
    std::vector<cudaGraphNode_t> nodes(6);
    size_t count = nodes.size();
    CUDA_CHECK(cudaGraphGetNodes(circle, nodes.data(), &count));
    CUDA_CHECK(cudaGraphAddDependencies(circle, &nodes[3], &nodes[5], 1));
    cudaGraphExec_t none = nullptr;
    CHECK(cudaGraphInstantiate(&none, circle, 0) == cudaErrorInvalidValue);
    CHECK(cudaGraphAddDependencies(circle, &made.computed, &nodes[0], 1) == cudaErrorInvalidValue);
    (void)cudaGetLastError();
    CUDA_CHECK(cudaGraphDestroy(circle));
    CUDA_CHECK(cudaGraphInstantiate(&made.exec, made.graph, 0));
    Stream stream;
    CUDA_CHECK(cudaGraphLaunch(made.exec, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(output.all(2));
  });
}

TEST_CASE("a node of an executable graph takes other arguments, and a whole graph those of another") {
  check_never_blamed([] {
    PinnedInts input(1), output, other(4);
    DeviceInts from, to, more;
    CUDA_CHECK(cudaMemcpy(more.data, other.data, kBytes, cudaMemcpyHostToDevice));
    MadeGraph made(input, from, to, output, true), twin(other, from, to, output, true);
    CUDA_CHECK(cudaGraphInstantiate(&made.exec, made.graph, 0));
    const cudaKernelNodeParams changed = made.params(more, to);
    CUDA_CHECK(cudaGraphExecKernelNodeSetParams(made.exec, made.computed, &changed));
    CHECK(cudaGraphExecKernelNodeSetParams(made.exec, made.uploaded, &changed) == cudaErrorInvalidValue);
    Stream stream;
    CUDA_CHECK(cudaGraphUpload(made.exec, stream));
    CUDA_CHECK(cudaGraphLaunch(made.exec, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(output.all(5));
    other.fill(6);
    cudaGraphExecUpdateResultInfo result{};
    CUDA_CHECK(cudaGraphExecUpdate(made.exec, twin.graph, &result));
    CHECK(result.result == cudaGraphExecUpdateSuccess);
    CUDA_CHECK(cudaGraphLaunch(made.exec, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(output.all(7));
    CUDA_CHECK(cudaGraphAddDependencies(twin.graph, &twin.filled, &twin.uploaded, 1));
    CHECK(cudaGraphExecUpdate(made.exec, twin.graph, &result) == cudaErrorGraphExecUpdateFailure);
    CHECK(result.result == cudaGraphExecUpdateErrorTopologyChanged);
    (void)cudaGetLastError();
  });
}
