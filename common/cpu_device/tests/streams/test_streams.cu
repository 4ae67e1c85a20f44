/// @file
/// Streams: what runs when, what stream 0 orders, and when memory is read.
#include <algorithm>
#include <stdexcept>
#include <thread>

#include "common/cpu_device/tests/stream_test.hpp"
#include "common/cuda/host_signal.hpp"

using namespace cpu_device;
using namespace cpu_device::test;

namespace {

constexpr Schedule kLate{Order::round_robin, Landing::late}, kEager{Order::round_robin, Landing::eager};

void set_flag(void* flag) { *static_cast<bool*>(flag) = true; }

}  // namespace

TEST_CASE("a chain over two streams arrives on every schedule") {
  check_never_blamed([] {
    Stream copies, kernels;
    Event uploaded, computed;
    DeviceInts from, to;
    PinnedInts input(41), output;
    CUDA_CHECK(cudaMemcpyAsync(from.data, input.data, kBytes, cudaMemcpyHostToDevice, copies));
    CUDA_CHECK(cudaEventRecord(uploaded, copies));
    CUDA_CHECK(cudaStreamWaitEvent(kernels, uploaded));
    launch_add_one(from.data, to.data, kernels);
    CUDA_CHECK(cudaEventRecord(computed, kernels));
    CUDA_CHECK(cudaStreamWaitEvent(copies, computed));
    CUDA_CHECK(cudaMemcpyAsync(output.data, to.data, kBytes, cudaMemcpyDeviceToHost, copies));
    CUDA_CHECK(cudaStreamSynchronize(copies));
    CHECK(output.all(42));
  });
}

TEST_CASE("an event may be destroyed while its record is pending, and keeps the order it gave") {
  check_never_blamed([] {
    Stream copies, kernels;
    DeviceInts from, to;
    PinnedInts input(41), output;
    cudaEvent_t uploaded = nullptr;
    CUDA_CHECK(cudaEventCreate(&uploaded));
    CUDA_CHECK(cudaMemcpyAsync(from.data, input.data, kBytes, cudaMemcpyHostToDevice, copies));
    CUDA_CHECK(cudaEventRecord(uploaded, copies));
    CUDA_CHECK(cudaStreamWaitEvent(kernels, uploaded));
    CUDA_CHECK(cudaEventDestroy(uploaded));
    launch_add_one(from.data, to.data, kernels);
    CUDA_CHECK(cudaMemcpyAsync(output.data, to.data, kBytes, cudaMemcpyDeviceToHost, kernels));
    CUDA_CHECK(cudaStreamSynchronize(kernels));
    CHECK(output.all(42));
  });
}

TEST_CASE("a destroyed event is no event any more, whatever is pending") {
  use(kLate);
  Stream stream;
  cudaEvent_t event = nullptr;
  CUDA_CHECK(cudaEventCreate(&event));
  CUDA_CHECK(cudaEventRecord(event, stream));
  CUDA_CHECK(cudaEventDestroy(event));
  CHECK(cudaEventRecord(event, stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamWaitEvent(stream, event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventSynchronize(event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventDestroy(event) == cudaErrorInvalidResourceHandle);
  CUDA_CHECK(cudaStreamSynchronize(stream));
}

TEST_CASE("late streams run what a wait needs and nothing else; eager ones run at the call") {
  for (const bool eager : {false, true}) {
    use(eager ? kEager : kLate);
    Stream one, two;
    bool first = false, second = false;
    CUDA_CHECK(cudaLaunchHostFunc(one, set_flag, &first));
    CUDA_CHECK(cudaLaunchHostFunc(two, set_flag, &second));
    CHECK(first == eager);
    CUDA_CHECK(cudaStreamSynchronize(two));
    CHECK(first == eager);
    CHECK(second);
    CUDA_CHECK(cudaDeviceSynchronize());
    CHECK(first);
  }
}

TEST_CASE("the same seed runs the same operations between two calls") {
  const auto observe = [](uint64_t seed) {
    use(Schedule::random(seed));
    std::vector<int> order;
    struct Mark {
      std::vector<int>* order;
      int number;
    };
    std::vector<Mark> marks;
    for (int i = 0; i < 16; ++i) marks.push_back({&order, i});
    Stream streams_[4];
    for (int i = 0; i < 16; ++i) {
      CUDA_CHECK(cudaLaunchHostFunc(
          streams_[i % 4],
          [](void* mark) { static_cast<Mark*>(mark)->order->push_back(static_cast<Mark*>(mark)->number); },
          &marks[static_cast<size_t>(i)]));
    }
    CUDA_CHECK(cudaDeviceSynchronize());
    return order;
  };
  std::vector<std::vector<int>> seen;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    seen.push_back(observe(seed));
    CHECK(seen.back() == observe(seed));
    CHECK(seen.back().size() == 16);
  }
  std::sort(seen.begin(), seen.end());
  CHECK(std::unique(seen.begin(), seen.end()) - seen.begin() > 5);
  use({});
}

TEST_CASE("work on the legacy stream waits for blocking streams, and they for it") {
  check_never_blamed([] {
    Stream blocking(cudaStreamDefault);
    DeviceInts memory;
    PinnedInts input(7), output;
    CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, blocking));
    launch_add_one(memory.data, memory.data, nullptr);
    CUDA_CHECK(cudaMemcpyAsync(output.data, memory.data, kBytes, cudaMemcpyDeviceToHost, blocking));
    CUDA_CHECK(cudaStreamSynchronize(blocking));
    CHECK(output.all(8));
  });
}

TEST_CASE("work on the legacy stream does not wait for a non-blocking stream") {
  check_blamed_always(
      [] {
        Stream free_running;
        DeviceInts memory;
        PinnedInts input(7);
        CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, free_running));
        CUDA_CHECK(cudaMemset(memory.data, 0, kBytes));
        CUDA_CHECK(cudaDeviceSynchronize());
      },
      "the memset on the legacy stream writes the buffer of 1024 bytes of cudaMalloc, from byte 0 on, which "
      "the upload on stream 1 writes, and nothing orders them: a cudaStreamWaitEvent is missing");
}

TEST_CASE("an upload from pageable memory reads it at the call, from pinned memory when it runs") {
  for (const bool pinned : {false, true}) {
    use(kLate, /*check_streams=*/false);
    Stream stream;
    DeviceInts memory;
    PinnedInts input(1);
    std::vector<int> pageable(kCount, 1);
    int* const source = pinned ? input.data : pageable.data();
    CUDA_CHECK(cudaMemcpyAsync(memory.data, source, kBytes, cudaMemcpyHostToDevice, stream));
    std::fill(source, source + kCount, 2);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(peek(memory.data) == (pinned ? 2 : 1));
  }
}

TEST_CASE("a download to pageable memory has arrived when the call returns, to pinned memory later") {
  for (const bool pinned : {false, true}) {
    use(kLate);
    Stream stream;
    DeviceInts memory;
    PinnedInts output;
    std::vector<int> pageable(kCount);
    int* const target = pinned ? output.data : pageable.data();
    CUDA_CHECK(cudaMemsetAsync(memory.data, 1, kBytes, stream));
    CUDA_CHECK(cudaMemcpyAsync(target, memory.data, kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(target[0] == (pinned ? -1 : 0x01010101));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(target[0] == 0x01010101);
  }
}

TEST_CASE("registered memory is pinned until it is unregistered") {
  use(kLate, /*check_streams=*/false);
  Stream stream;
  DeviceInts memory;
  std::vector<int> values(kCount, 1);
  cudaPointerAttributes attributes{};
  CUDA_CHECK(cudaHostRegister(values.data(), kBytes, cudaHostRegisterDefault));
  CHECK(cudaHostRegister(values.data(), kBytes, 0) == cudaErrorHostMemoryAlreadyRegistered);
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, values.data()));
  CHECK(attributes.type == cudaMemoryTypeHost);
  CHECK(live_resources().pinned_bytes == kBytes);
  CUDA_CHECK(cudaMemcpyAsync(memory.data, values.data(), kBytes, cudaMemcpyHostToDevice, stream));
  values[0] = 5;
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CHECK(peek(memory.data) == 5);
  CUDA_CHECK(cudaHostUnregister(values.data()));
  CHECK(cudaHostUnregister(values.data()) == cudaErrorHostMemoryNotRegistered);
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, values.data()));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK(live_resources().pinned_bytes == 0);
}

TEST_CASE("polling an event or a stream comes to an end") {
  for (const Schedule& schedule : stream_schedules()) {
    use(schedule);
    Stream stream;
    Event event;
    bool ran = false;
    CUDA_CHECK(cudaLaunchHostFunc(stream, set_flag, &ran));
    CUDA_CHECK(cudaEventRecord(event, stream));
    cudaError_t state = cudaErrorNotReady;
    for (int i = 0; i < 10 && state == cudaErrorNotReady; ++i) state = cudaEventQuery(event);
    CHECK(state == cudaSuccess);
    CHECK(ran);
    CHECK(cudaStreamQuery(stream) == cudaSuccess);
    (void)cudaGetLastError();
  }
}

TEST_CASE("each host thread has a per-thread stream") {
  use(kLate);
  bool mine = false, others = false;
  CUDA_CHECK(cudaLaunchHostFunc(cudaStreamPerThread, set_flag, &mine));
  std::thread([&] {
    CUDA_CHECK(cudaLaunchHostFunc(cudaStreamPerThread, set_flag, &others));
    CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  }).join();
  CHECK(others);
  CHECK(!mine);
  CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));
  CUDA_CHECK(cudaDeviceSynchronize());
  CHECK(mine);
}

TEST_CASE("events measure virtual time, and copies in both directions overlap on the timeline") {
  use(kLate);
  take_stream_trace();
  Stream up, down;
  Event begin, end;
  DeviceInts one, two;
  PinnedInts input, output;
  CUDA_CHECK(cudaMemset(two.data, 0, kBytes));
  CUDA_CHECK(cudaDeviceSynchronize());
  take_stream_trace();
  CUDA_CHECK(cudaEventRecord(begin, up));
  CUDA_CHECK(cudaMemcpyAsync(one.data, input.data, kBytes, cudaMemcpyHostToDevice, up));
  CUDA_CHECK(cudaEventRecord(end, up));
  CUDA_CHECK(cudaMemcpyAsync(output.data, two.data, kBytes, cudaMemcpyDeviceToHost, down));
  CUDA_CHECK(cudaDeviceSynchronize());
  float milliseconds = -1;
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  CHECK(std::abs(milliseconds - kBytes / 50.8e6f) < 1e-7f);
  const std::vector<StreamSpan> spans = take_stream_trace();
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].kind == "upload");
  CHECK(spans[0].stream == "stream 1");
  CHECK(spans[1].kind == "download");
  CHECK(spans[0].begin_us == spans[1].begin_us);
  CHECK(stream_time_us() == spans[0].end_us);
}

TEST_CASE("a call that was chosen fails once, with the error that was chosen") {
  use({});
  fail_call("cudaMalloc", 2, cudaErrorMemoryAllocation);
  int *one = nullptr, *two = nullptr;
  CHECK(cudaMalloc(&one, 8) == cudaSuccess);
  CHECK(cudaMalloc(&two, 8) == cudaErrorMemoryAllocation);
  CHECK(two == nullptr);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&two, 8) == cudaSuccess);
  CHECK(live_resources().device_bytes == 16);
  CHECK(cudaFree(one) == cudaSuccess);
  CHECK(cudaFree(two) == cudaSuccess);
  CHECK(live_resources().device_bytes == 0);
}

TEST_CASE("a kernel that a destructor waits for while the host unwinds runs as always") {
  const auto add_one_while_unwinding = [](const DeviceInts& from, const DeviceInts& to) {
    struct WaitsAtTheEnd {
      ~WaitsAtTheEnd() { cudaStreamSynchronize(stream); }
      Stream stream;
    } work;
    launch_add_one(from.data, to.data, work.stream);
    throw std::runtime_error("what the host unwinds for");
  };
  check_never_blamed([&] {
    DeviceInts from, to;
    PinnedInts input(41), output;
    CUDA_CHECK(cudaMemcpy(from.data, input.data, kBytes, cudaMemcpyHostToDevice));
    CHECK_THROWS_AS(add_one_while_unwinding(from, to), std::runtime_error);
    CUDA_CHECK(cudaMemcpy(output.data, to.data, kBytes, cudaMemcpyDeviceToHost));
    CHECK(output.all(42));
  });
}
