/// @file
/// Mistakes in the order of streams, each with its right twin: missing events, memory that is freed or
/// recycled too early, waits without hope, and CUDA in host functions.
#include <atomic>
#include <chrono>
#include <cuda/atomic>

#include "common/cpu_device/tests/stream_test.hpp"
#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/host_signal.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Upload on one stream, kernel on another, download on the first. @return the kernel's results are right
bool two_streams(bool wait_for_upload, bool wait_for_kernel) {
  Stream copies, kernels;
  Event uploaded, computed;
  DeviceInts from, to;
  PinnedInts input(41), output;
  CUDA_CHECK(cudaMemset(from.data, 0, kBytes));
  CUDA_CHECK(cudaMemset(to.data, 0, kBytes));
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpyAsync(from.data, input.data, kBytes, cudaMemcpyHostToDevice, copies));
  CUDA_CHECK(cudaEventRecord(uploaded, copies));
  if (wait_for_upload) CUDA_CHECK(cudaStreamWaitEvent(kernels, uploaded));
  launch_add_one(from.data, to.data, kernels);
  CUDA_CHECK(cudaEventRecord(computed, kernels));
  if (wait_for_kernel) CUDA_CHECK(cudaStreamWaitEvent(copies, computed));
  CUDA_CHECK(cudaMemcpyAsync(output.data, to.data, kBytes, cudaMemcpyDeviceToHost, copies));
  CUDA_CHECK(cudaStreamSynchronize(copies));
  const bool right = output.all(42);
  CUDA_CHECK(cudaDeviceSynchronize());
  return right;
}

/// A ring of two slots through which five batches are uploaded. @return what arrived, in the order of batches
std::vector<int> recycle(bool wait_for_slot) {
  constexpr int kBatches = 5, kSlots = 2;
  Stream stream;
  DeviceInts batches[kBatches];
  PinnedInts slots[kSlots];
  int free_slots = kSlots;
  ladder::HostSignal signal("a free slot of the ring");
  struct Release {
    ladder::HostSignal* signal;
    int* free_slots;
  } release{&signal, &free_slots};
  for (int b = 0; b < kBatches; ++b) {
    if (wait_for_slot)
      signal.wait([&] { return free_slots > 0; }, [&] { --free_slots; }, std::chrono::seconds(1));
    slots[b % kSlots].fill(b);
    CUDA_CHECK(
        cudaMemcpyAsync(batches[b].data, slots[b % kSlots].data, kBytes, cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaLaunchHostFunc(
        stream,
        [](void* data) {
          auto& what = *static_cast<Release*>(data);
          what.signal->update([&] { ++*what.free_slots; });
        },
        &release));
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));
  std::vector<int> arrived;
  for (const DeviceInts& batch : batches) arrived.push_back(peek(batch.data));
  return arrived;
}

const std::vector<int> kInOrder{0, 1, 2, 3, 4};

/// What a kernel in a stream of its own reads of memory that held 1, then was given 41 in some way.
/// @return it has read 41
template <class Give>
bool read_by_a_stream(unsigned flags, const Give& give) {
  DeviceInts from, to;
  PinnedInts output;
  ladder::copy_to_device(from.data, std::vector<int>(kCount, 1).data(), kBytes);
  give(from.data);
  Stream stream(flags);
  launch_add_one(from.data, to.data, stream);
  CUDA_CHECK(cudaMemcpyAsync(output.data, to.data, kBytes, cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  const bool right = output.all(42);
  CUDA_CHECK(cudaDeviceSynchronize());
  return right;
}

void copy_pageable(int* memory) {
  const std::vector<int> values(kCount, 41);
  CUDA_CHECK(cudaMemcpy(memory, values.data(), kBytes, cudaMemcpyHostToDevice));
}

void copy_pageable_rows(int* memory) {
  const std::vector<int> values(kCount, 41);
  CUDA_CHECK(cudaMemcpy2D(memory, kBytes / 2, values.data(), kBytes / 2, kBytes / 2, 2, cudaMemcpyDefault));
}

void copy_pinned(int* memory) {
  const PinnedInts values(41);
  CUDA_CHECK(cudaMemcpy(memory, values.data, kBytes, cudaMemcpyHostToDevice));
}

void set_bytes(int* memory) { CUDA_CHECK(cudaMemset(memory, 0, kBytes)); }

}  // namespace

TEST_CASE("the right order raises no alarm") {
  check_never_blamed([] { CHECK(two_streams(true, true)); });
}

TEST_CASE("a kernel that does not wait for its upload is named on every schedule") {
  check_blamed_always([] { two_streams(false, true); },
                      "kernel add_one on stream 2 reads the buffer of 1024 bytes of cudaMalloc, from byte 0 "
                      "on, which the upload on stream 1 writes, and nothing orders them: a "
                      "cudaStreamWaitEvent is missing");
}

TEST_CASE("a cudaMemcpy from pageable memory is named where a non-blocking stream does not wait for it") {
  const std::string words =
      "kernel add_one on stream 1 reads the buffer of 1024 bytes of cudaMalloc, from byte 0 on, which the "
      "upload on the legacy stream writes, and nothing orders them: a cudaStreamWaitEvent is missing, or a "
      "wait of the host for the legacy stream: cudaMemcpy from pageable memory returns when the data lies in "
      "a staging buffer, not when it has arrived";
  check_blamed_always([] { read_by_a_stream(cudaStreamNonBlocking, copy_pageable); }, words);
  check_blamed_always([] { read_by_a_stream(cudaStreamNonBlocking, copy_pageable_rows); }, words);
}

TEST_CASE("a cudaMemset is named where a non-blocking stream does not wait for it") {
  check_blamed_always([] { read_by_a_stream(cudaStreamNonBlocking, set_bytes); },
                      "which the memset on the legacy stream writes, and nothing orders them: a "
                      "cudaStreamWaitEvent is missing, or a wait of the host for the legacy stream: a memset "
                      "returns before the memory is filled");
}

TEST_CASE("a cudaMemcpy from pageable memory lands late for a non-blocking stream, also without the check") {
  use({Order::round_robin, Landing::late}, /*check_streams=*/false);
  CHECK(!read_by_a_stream(cudaStreamNonBlocking, copy_pageable));
  use({Order::round_robin, Landing::eager}, /*check_streams=*/false);
  CHECK(read_by_a_stream(cudaStreamNonBlocking, copy_pageable));
  use({});
}

TEST_CASE("a cudaMemcpy has arrived for blocking streams, from pinned memory, and after a wait of the host") {
  check_never_blamed([] { CHECK(read_by_a_stream(cudaStreamDefault, copy_pageable)); });
  check_never_blamed([] { CHECK(read_by_a_stream(cudaStreamNonBlocking, copy_pinned)); });
  check_never_blamed([] {
    CHECK(read_by_a_stream(cudaStreamNonBlocking, [](int* memory) {
      copy_pageable(memory);
      CUDA_CHECK(cudaDeviceSynchronize());
    }));
  });
}

TEST_CASE("copy_to_device and fill_on_device are over when they return, for every stream") {
  check_never_blamed([] {
    CHECK(read_by_a_stream(cudaStreamNonBlocking, [](int* memory) {
      ladder::fill_on_device(memory, 0, kBytes);
      ladder::copy_to_device(memory, std::vector<int>(kCount, 41).data(), kBytes);
    }));
  });
}

TEST_CASE("without the check a missing event still spoils the result on some schedule") {
  for (const bool upload : {true, false}) {
    int wrong = 0;
    for (const Schedule& schedule : fixed_schedules()) {
      use(schedule, /*check_streams=*/false);
      wrong += !two_streams(!upload, upload);
    }
    CHECK(wrong > 0);
  }
  use({});
}

TEST_CASE("a download that does not wait for the kernel is named where its stores are seen") {
  if (!instrumented()) SKIP("plain stores are seen in the instrumented build");
  check_blamed_always(
      [] { two_streams(true, false); },
      "the download on stream 1 reads the buffer of 1024 bytes of cudaMalloc, from byte 0 on, "
      "which kernel add_one on stream 2 writes");
}

TEST_CASE("a slot that is recycled when its upload is over brings every batch") {
  check_never_blamed([] { CHECK(recycle(true) == kInOrder); });
}

TEST_CASE("a slot that is recycled too early brings the wrong batch, and is named") {
  use({Order::round_robin, Landing::late}, /*check_streams=*/false);
  CHECK(recycle(false) != kInOrder);
  use({Order::round_robin, Landing::late});
  CHECK_THAT(blame([] { recycle(false); }),
             ContainsSubstring("the source of the upload on stream 1 has changed since it was queued"));
  use({});
}

TEST_CASE("the only host function ends the wait, whoever runs it first") {
  check_never_blamed([] {
    Stream stream, other;
    ladder::HostSignal signal("the flag");
    struct Flag {
      ladder::HostSignal* signal;
      bool set;
    } flag{&signal, false};
    CUDA_CHECK(cudaLaunchHostFunc(
        stream,
        [](void* data) {
          auto& what = *static_cast<Flag*>(data);
          what.signal->update([&] { what.set = true; });
        },
        &flag));
    signal.wait([&] { return flag.set; }, [] {}, std::chrono::seconds(1));
  });
}

TEST_CASE("what a host function was queued behind is over for a host that has waited for it") {
  check_never_blamed([] {
    Stream one, two;
    PinnedInts input(3);
    int* memory = nullptr;
    ladder::HostSignal signal("the upload");
    struct Flag {
      ladder::HostSignal* signal;
      bool set;
    } flag{&signal, false};
    CUDA_CHECK(cudaMalloc(&memory, kBytes));
    CUDA_CHECK(cudaMemcpyAsync(memory, input.data, kBytes, cudaMemcpyHostToDevice, one));
    CUDA_CHECK(cudaLaunchHostFunc(
        one,
        [](void* data) {
          auto& what = *static_cast<Flag*>(data);
          what.signal->update([&] { what.set = true; });
        },
        &flag));
    signal.wait([&] { return flag.set; }, [] {}, std::chrono::seconds(1));
    CUDA_CHECK(cudaMemsetAsync(memory, 0, kBytes, two));
    CUDA_CHECK(cudaStreamSynchronize(two));
    CUDA_CHECK(cudaFree(memory));
  });
}

TEST_CASE("a wait of the host that nothing queued will end is reported") {
  check_blamed_always(
      [] {
        Stream stream;
        ladder::HostSignal signal("a free slot");
        signal.wait([] { return false; }, [] {}, std::chrono::seconds(1));
      },
      "the host waits for a free slot; no queued host function will change it; streams: nothing is queued");
}

TEST_CASE("CUDA inside a host function is reported") {
  check_blamed_always(
      [] {
        Stream stream;
        CUDA_CHECK(cudaLaunchHostFunc(
            stream, [](void*) { cudaDeviceSynchronize(); }, nullptr));
        CUDA_CHECK(cudaStreamSynchronize(stream));
      },
      "cudaDeviceSynchronize is called inside a host function, the host function on stream 1: host functions "
      "must not call CUDA");
}

TEST_CASE("a wait for an event that was never recorded is no wait, and legal") {
  check_never_blamed([] {
    Stream stream;
    Event event;
    CUDA_CHECK(cudaStreamWaitEvent(stream, event));
    CUDA_CHECK(cudaEventSynchronize(event));
    CUDA_CHECK(cudaEventQuery(event));
  });
}

TEST_CASE("what a wait for an event that was never recorded does not order is named, and that wait with it") {
  constexpr int wait = __LINE__ + 7;
  check_blamed_always(
      [] {
        Stream copies, kernels;
        Event uploaded;
        DeviceInts from, to;
        PinnedInts input;
        CUDA_CHECK(cudaStreamWaitEvent(kernels, uploaded));
        CUDA_CHECK(cudaMemcpyAsync(from.data, input.data, kBytes, cudaMemcpyHostToDevice, copies));
        CUDA_CHECK(cudaEventRecord(uploaded, copies));
        launch_add_one(from.data, to.data, kernels);
        CUDA_CHECK(cudaDeviceSynchronize());
      },
      "which the upload on stream 1 writes, and nothing orders them: stream 2 waits, at "
      "streams/test_stream_order.cu:" +
          std::to_string(wait) +
          ", for an event that was not recorded before: it is recorded at streams/test_stream_order.cu:" +
          std::to_string(wait + 2) + "; schedule");
}

TEST_CASE("a wait for an event that was recorded in the same stream is named, and no wait is missing then") {
  constexpr int wait = __LINE__ + 9;
  check_blamed_always(
      [] {
        Stream copies, kernels;
        Event uploaded;
        DeviceInts from, to;
        PinnedInts input;
        CUDA_CHECK(cudaMemcpyAsync(from.data, input.data, kBytes, cudaMemcpyHostToDevice, copies));
        CUDA_CHECK(cudaEventRecord(uploaded, kernels));
        CUDA_CHECK(cudaStreamWaitEvent(kernels, uploaded));
        launch_add_one(from.data, to.data, kernels);
        CUDA_CHECK(cudaDeviceSynchronize());
      },
      "which the upload on stream 1 writes, and nothing orders them: stream 2 waits, at "
      "streams/test_stream_order.cu:" +
          std::to_string(wait) +
          ", for an event that was recorded on stream 2 itself, at streams/test_stream_order.cu:" +
          std::to_string(wait - 1) + ", which orders nothing with stream 1; schedule");
}

namespace {

/// The host writes the source of the first stream's upload again, told by whichever of two streams is first.
void refill_when_either_has_told() {
  Stream streams[2];
  DeviceInts memory[2];
  PinnedInts inputs[2] = {PinnedInts(1), PinnedInts(1)};
  struct Told {
    ladder::HostSignal signal{"the end of a batch"};
    int batches = 0;
  } told;
  for (int i = 0; i < 2; ++i) {
    CUDA_CHECK(cudaMemcpyAsync(memory[i].data, inputs[i].data, kBytes, cudaMemcpyHostToDevice, streams[i]));
    CUDA_CHECK(cudaLaunchHostFunc(
        streams[i],
        [](void* data) {
          auto& what = *static_cast<Told*>(data);
          what.signal.update([&] { ++what.batches; });
        },
        &told));
  }
  told.signal.wait([&] { return told.batches > 0; }, [] {}, std::chrono::seconds(1));
  inputs[0].fill(2);
  CUDA_CHECK(cudaDeviceSynchronize());
}

/// The host writes the source of an upload again as soon as a host function of another stream has told it to.
void refill_when_told(bool record_copies, bool record_first, bool waits = true) {
  Stream copies, tells;
  Event uploaded;
  DeviceInts memory;
  PinnedInts input(1);
  bool is_free = false;
  ladder::HostSignal signal("a free source");
  struct Free {
    ladder::HostSignal* signal;
    bool* is_free;
  } free{&signal, &is_free};
  CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, copies));
  const auto record = [&] { CUDA_CHECK(cudaEventRecord(uploaded, record_copies ? copies : tells)); };
  if (record_first) record();
  if (waits) CUDA_CHECK(cudaStreamWaitEvent(tells, uploaded));
  if (!record_first) record();
  CUDA_CHECK(cudaLaunchHostFunc(
      tells,
      [](void* data) {
        auto& what = *static_cast<Free*>(data);
        what.signal->update([&] { *what.is_free = true; });
      },
      &free));
  signal.wait([&] { return is_free; }, [] {}, std::chrono::seconds(1));
  input.fill(2);
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

TEST_CASE("of host functions that are not in order, the last one may be what the host waits for") {
  use({Order::round_robin, Landing::late});
  CHECK_THAT(blame(refill_when_either_has_told),
             ContainsSubstring("the source of the upload on stream 1 has changed since it was queued"));
  use({Order::round_robin, Landing::eager});
  CHECK(blame(refill_when_either_has_told) == "");
}

TEST_CASE("of a source that has changed, the wait that did not hold back the host function is named") {
  use({Order::round_robin, Landing::late});
  const std::string ran =
      "\n  the host function on stream 2, queued behind that at streams/test_stream_order.cu:";
  const auto why = [&](bool copies, bool first) { return blame([&] { refill_when_told(copies, first); }); };
  CHECK_THAT(why(false, true),
             ContainsSubstring(ran) && ContainsSubstring("has run before it: stream 2 waits, at ") &&
                 ContainsSubstring("for an event that was recorded on stream 2 itself, at ") &&
                 ContainsSubstring("which orders nothing with stream 1\n  cudaMemcpyAsync at "));
  CHECK_THAT(why(true, false),
             ContainsSubstring(ran) && ContainsSubstring("not recorded before: it is recorded at "));
  CHECK_THAT(
      blame([] { refill_when_told(true, true, /*waits=*/false); }),
      ContainsSubstring("must wait until it has run\n  the host function on stream 2, queued at "
                        "streams/test_stream_order.cu:") &&
          ContainsSubstring(", has told the host of a free source, and does not come behind the upload on "
                            "stream 1: is a cudaStreamWaitEvent missing there?\n  cudaMemcpyAsync at "));
  check_never_blamed([] { refill_when_told(true, true); });
}

namespace {

/// Of two uploads the kernel needs both.
void wait_for_uploads(bool for_first, bool for_second) {
  Stream one, two, kernels;
  Event first, second;
  DeviceInts from, to;
  PinnedInts input;
  CUDA_CHECK(cudaMemcpyAsync(from.data, input.data, kBytes, cudaMemcpyHostToDevice, one));
  CUDA_CHECK(cudaEventRecord(first, one));
  CUDA_CHECK(cudaMemcpyAsync(to.data, input.data, kBytes, cudaMemcpyHostToDevice, two));
  CUDA_CHECK(cudaEventRecord(second, two));
  if (for_first) CUDA_CHECK(cudaStreamWaitEvent(kernels, first));
  if (for_second) CUDA_CHECK(cudaStreamWaitEvent(kernels, second));
  launch_add_one(from.data, to.data, kernels);
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

TEST_CASE("a wait for another event is named, with what it covers and the event that covers the rest") {
  const auto place = [](int line) { return "streams/test_stream_order.cu:" + std::to_string(line); };
  constexpr int first = __LINE__ - 13, second = first + 2, wait = first + 4;
  check_blamed_always([] { wait_for_uploads(false, true); },
                      "which the upload on stream 1 writes, and nothing orders them: stream 3 waits, at " +
                          place(wait) + ", for `second`, recorded at " + place(second) +
                          " behind the upload on stream 2, which does not cover the upload on stream 1; "
                          "`first`, recorded at " +
                          place(first) + ", does; schedule");
  check_never_blamed([] { wait_for_uploads(true, true); });
  check_blamed_always(
      [] { wait_for_uploads(false, false); },
      "which the upload on stream 1 writes, and nothing orders them: a cudaStreamWaitEvent is "
      "missing");
}

TEST_CASE("where another stream waits for the event instead, that wait is named") {
  constexpr int wait = __LINE__ + 9;
  check_blamed_always(
      [] {
        Stream copies, other, kernels;
        Event uploaded;
        DeviceInts from, to;
        PinnedInts input;
        CUDA_CHECK(cudaMemcpyAsync(from.data, input.data, kBytes, cudaMemcpyHostToDevice, copies));
        CUDA_CHECK(cudaEventRecord(uploaded, copies));
        CUDA_CHECK(cudaStreamWaitEvent(other, uploaded));
        launch_add_one(from.data, to.data, kernels);
        CUDA_CHECK(cudaDeviceSynchronize());
      },
      "nothing orders them: a cudaStreamWaitEvent is missing, or one of the two is on a wrong stream: stream "
      "2 "
      "waits, at streams/test_stream_order.cu:" +
          std::to_string(wait) +
          ", for `uploaded`, which covers the upload on stream 1, and stream 3 does not; schedule");
}

TEST_CASE("of a kernel on the legacy stream is said that a non-blocking stream is not tied to it") {
  check_blamed_always(
      [] {
        Stream copies, own;
        struct PoolInts {
          explicit PoolInts(cudaStream_t stream) : stream(stream) {
            CUDA_CHECK(cudaMallocAsync(&data, kBytes, stream));
          }
          ~PoolInts() { cudaFreeAsync(data, stream); }
          cudaStream_t stream;
          int* data = nullptr;
        } to(own);
        DeviceInts from;
        PinnedInts input;
        CUDA_CHECK(cudaStreamSynchronize(own));
        CUDA_CHECK(cudaMemcpyAsync(from.data, input.data, kBytes, cudaMemcpyHostToDevice, copies));
        launch_add_one(from.data, to.data, nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
      },
      "which the upload on stream 1 writes, and nothing orders them: kernel add_one is on the legacy stream, "
      "which neither waits for stream 1 nor lets it wait: that is non-blocking; the kernel is given the "
      "buffer "
      "of 1024 bytes allocated on stream 2; schedule");
}

TEST_CASE("a wait for an event without a record is not blamed for another missing order") {
  for (const Schedule& schedule : stream_schedules()) {
    if (schedule.landing != Landing::late) continue;  // otherwise the kernel is blamed before the record
    use(schedule);
    const std::string text = blame([] {
      Stream copies, kernels;
      Event slot_is_free;
      DeviceInts from, to;
      PinnedInts input;
      CUDA_CHECK(cudaStreamWaitEvent(copies, slot_is_free));  // as in the first lap of a ring
      CUDA_CHECK(cudaMemcpyAsync(from.data, input.data, kBytes, cudaMemcpyHostToDevice, copies));
      launch_add_one(from.data, to.data, kernels);
      CUDA_CHECK(cudaEventRecord(slot_is_free, kernels));
      CUDA_CHECK(cudaDeviceSynchronize());
    });
    CHECK_THAT(text, ContainsSubstring("nothing orders them: a cudaStreamWaitEvent is missing, or one of the "
                                       "two is on a wrong stream; schedule"));
  }
  use({});
}

TEST_CASE("of what a download does not wait for the last is named, and a kernel that has not run yet") {
  const auto program = [](bool kernel) {
    Stream work, downloads;
    DeviceInts memory, other;
    PinnedInts input, output;
    CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, work));
    if (kernel) {
      launch_add_one(other.data, memory.data, work);
    } else {
      CUDA_CHECK(cudaMemsetAsync(memory.data, 0, kBytes, work));
    }
    CUDA_CHECK(cudaMemcpyAsync(output.data, memory.data, kBytes, cudaMemcpyDeviceToHost, downloads));
    CUDA_CHECK(cudaStreamSynchronize(downloads));
    CUDA_CHECK(cudaDeviceSynchronize());
  };
  use({Order::round_robin, Landing::eager});
  CHECK_THAT(blame([&] { program(false); }), ContainsSubstring("which the memset on stream 1 writes"));
  use({Order::round_robin, Landing::late});
  CHECK_THAT(blame([&] { program(true); }),
             ContainsSubstring("a cudaStreamWaitEvent is missing, or one of the two is on a wrong stream; "
                               "nor is kernel add_one on stream 1 ordered, "
                               "which comes after that and may touch the same memory"));
  use({});
}

TEST_CASE("an event that was recorded before what it should cover is named, with its line") {
  const auto program = [](bool host, bool after) {
    Stream copies, other;
    Event uploaded;
    DeviceInts memory;
    PinnedInts input;
    if (!after) CUDA_CHECK(cudaEventRecord(uploaded, copies));
    CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, copies));
    if (after) CUDA_CHECK(cudaEventRecord(uploaded, copies));
    if (host) {
      CUDA_CHECK(cudaEventSynchronize(uploaded));
    } else {
      CUDA_CHECK(cudaStreamWaitEvent(other, uploaded));
    }
    CUDA_CHECK(cudaMemsetAsync(memory.data, 0, kBytes, other));
    CUDA_CHECK(cudaDeviceSynchronize());
  };
  const std::string order = "which the upload on stream 1 writes, and nothing orders them: ";
  const std::string early =
      " waits for an event that was recorded before the upload on stream 1, at "
      "streams/test_stream_order.cu:";
  check_blamed_always([&] { program(false, false); }, order + "stream 2" + early);
  check_blamed_always([&] { program(true, false); }, order + "the host" + early);
  for (const bool host : {false, true}) check_never_blamed([&] { program(host, true); });
}

TEST_CASE("a wait for what came earlier is not taken for the wait that is missing") {
  check_blamed_always(
      [] {
        Stream copies, other;
        Event uploaded;
        DeviceInts memory;
        PinnedInts input;
        CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, copies));
        CUDA_CHECK(cudaEventRecord(uploaded, copies));
        CUDA_CHECK(cudaStreamWaitEvent(other, uploaded));
        CUDA_CHECK(cudaMemsetAsync(memory.data, 0, kBytes, other));
        CUDA_CHECK(cudaStreamSynchronize(other));
        CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, copies));
        CUDA_CHECK(cudaMemsetAsync(memory.data, 0, kBytes, other));
        CUDA_CHECK(cudaDeviceSynchronize());
      },
      "which the upload on stream 1 writes, and nothing orders them: a cudaStreamWaitEvent is missing, or "
      "one of the two is on a wrong stream; "
      "schedule");
}

TEST_CASE("a wait for an event that was recorded again in another stream is named") {
  check_blamed_always(
      [] {
        Stream downloads, one, two;
        Event done;
        DeviceInts memory, other;
        PinnedInts output;
        CUDA_CHECK(cudaMemsetAsync(memory.data, 0, kBytes, one));
        CUDA_CHECK(cudaEventRecord(done, one));
        CUDA_CHECK(cudaMemsetAsync(other.data, 0, kBytes, two));
        CUDA_CHECK(cudaEventRecord(done, two));
        CUDA_CHECK(cudaStreamWaitEvent(downloads, done));
        CUDA_CHECK(cudaMemcpyAsync(output.data, memory.data, kBytes, cudaMemcpyDeviceToHost, downloads));
        CUDA_CHECK(cudaDeviceSynchronize());
      },
      "which the memset on stream 2 writes, and nothing orders them: stream 1 waits for an event whose last "
      "record, on stream 3, does not cover the memset on stream 2: it was "
      "recorded on stream 2 before");
}

TEST_CASE("memory that queued work uses must not be freed by the host") {
  check_blamed_always(
      [] {
        Stream stream;
        PinnedInts input;
        int* memory = nullptr;
        CUDA_CHECK(cudaMalloc(&memory, kBytes));
        CUDA_CHECK(cudaMemcpyAsync(memory, input.data, kBytes, cudaMemcpyHostToDevice, stream));
        CUDA_CHECK(cudaFree(memory));  // The next call throws.
      },
      "cudaFree of the buffer of 1024 bytes of cudaMalloc, which the upload on stream 1 uses: the host has "
      "not "
      "waited for that");
}

TEST_CASE("freeing memory twice is reported") {
  use({});
  int* memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, kBytes));
  CUDA_CHECK(cudaFree(memory));
  cudaFree(memory);
  CHECK_THAT(blame([] {}), ContainsSubstring("cudaFree frees memory that was freed before"));
}

TEST_CASE("a stream may be destroyed while its work is queued, which ends all the same") {
  for (const unsigned flags : {cudaStreamDefault, cudaStreamNonBlocking}) {
    check_never_blamed([&] {
      DeviceInts memory, result;
      PinnedInts input(41), output;
      {
        Stream stream(flags);
        CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, stream));
        launch_add_one(memory.data, result.data, stream);
        CUDA_CHECK(cudaMemcpyAsync(output.data, result.data, kBytes, cudaMemcpyDeviceToHost, stream));
      }
      CUDA_CHECK(cudaDeviceSynchronize());
      CHECK(output.all(42));
    });
  }
}

TEST_CASE("the legacy stream waits for a blocking stream that was destroyed, not for a non-blocking one") {
  const auto fill_after_upload = [](unsigned flags) {
    DeviceInts memory;
    PinnedInts input(41);
    {
      Stream stream(flags);
      CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, stream));
    }
    CUDA_CHECK(cudaMemset(memory.data, 0, kBytes));
    CUDA_CHECK(cudaDeviceSynchronize());
  };
  check_never_blamed([&] { fill_after_upload(cudaStreamDefault); });
  check_blamed_always([&] { fill_after_upload(cudaStreamNonBlocking); },
                      "the memset on the legacy stream writes the buffer of 1024 bytes of cudaMalloc, from "
                      "byte 0 on, which the upload on stream 1 writes");
}

TEST_CASE("a kernel may spin on what a host function in another stream sets") {
  check_never_blamed([] {
    Stream kernels, host;
    int* flag = nullptr;
    CUDA_CHECK(cudaMallocHost(&flag, sizeof(int)));
    ladder::launch(
        +[](int* flag) {
          if (threadIdx.x > 0) return;
          while (cuda::atomic_ref<int>(*flag).load(cuda::memory_order_acquire) == 0) {
          }
        },
        {.name = "spin", .grid = 2, .block = 32, .stream = kernels}, flag);
    CUDA_CHECK(cudaLaunchHostFunc(
        host, [](void* data) { std::atomic_ref<int>(*static_cast<int*>(data)).store(1); }, flag));
    CUDA_CHECK(cudaStreamSynchronize(kernels));
    CUDA_CHECK(cudaStreamSynchronize(host));
    CUDA_CHECK(cudaFreeHost(flag));
  });
}

TEST_CASE("a kernel that spins on what a host function behind it sets is reported") {
  check_blamed_always(
      [] {
        Stream stream;
        PinnedInts flag;
        ladder::launch(
            +[](int* flag) {
              while (cuda::atomic_ref<int>(*flag).load(cuda::memory_order_acquire) == 0) {
              }
            },
            {.name = "spin", .grid = 1, .block = 1, .stream = stream}, flag.data);
        CUDA_CHECK(cudaLaunchHostFunc(
            stream, [](void* data) { *static_cast<int*>(data) = 1; }, flag.data));
        CUDA_CHECK(cudaStreamSynchronize(stream));
      },
      "every running thread polls and nothing changes");
}

TEST_CASE("a host may spin on what a host function sets, without a call") {
  use({Order::round_robin, Landing::late});
  Stream one, two;
  Event event;
  std::atomic<int> flag{0};
  PinnedInts input(7);
  DeviceInts memory;
  CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, one));
  CUDA_CHECK(cudaEventRecord(event, one));
  CUDA_CHECK(cudaStreamWaitEvent(two, event));
  CUDA_CHECK(cudaLaunchHostFunc(
      two, [](void* data) { *static_cast<std::atomic<int>*>(data) = 1; }, &flag));
  while (flag == 0) {
  }
  CUDA_CHECK(cudaDeviceSynchronize());
}

TEST_CASE("a failing kernel is thrown by the wait that runs it, and the process goes on") {
  use({Order::round_robin, Landing::late});
  Stream stream;
  DeviceInts memory;
  const std::function<void()> launch = [&] {
    ladder::launch(
        +[](int* to) {
          if (threadIdx.x == 3) __trap();
          to[threadIdx.x] = 1;
        },
        {.name = "trap", .grid = 1, .block = 32, .stream = stream}, memory.data);
  };
  launch();
  CHECK_THROWS_AS(cudaStreamSynchronize(stream), Failure);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  launch();
  CHECK_THROWS_AS(cudaDeviceSynchronize(), Failure);
}

TEST_CASE("of a stream that a helper of all lessons creates, its first caller outside of that is named") {
  use({});
  const std::string words = blame([] {
    const ladder::Stream one = ladder::make_stream(), other = ladder::make_stream();
    DeviceInts memory;
    cudaMemsetAsync(memory.data, 0, kBytes, one.get());
    cudaMemsetAsync(memory.data, 1, kBytes, other.get());
    CUDA_CHECK(cudaDeviceSynchronize());
  });
  CHECK_THAT(words, ContainsSubstring("the memset on stream 1 (created at streams/test_stream_order.cu:" +
                                      std::to_string(__LINE__ - 7)));
}

TEST_CASE("a missing order names both streams as the source does, and the lines of both calls") {
  check_blamed_always(
      [] {
        struct OwnStream {
          ~OwnStream() { cudaStreamDestroy(stream); }
          cudaStream_t stream = nullptr;
        } owner;
        CUDA_CHECK(cudaStreamCreateWithFlags(&owner.stream, cudaStreamNonBlocking));
        Stream other;
        DeviceInts memory;
        cudaMemsetAsync(memory.data, 0, kBytes, owner.stream);
        cudaMemsetAsync(memory.data, 1, kBytes, other);
        CUDA_CHECK(cudaDeviceSynchronize());
      },
      "the memset on stream 1 (`owner.stream`, created at streams/test_stream_order.cu:");
}
