/// @file
/// What the host gives to copies: memory that is too small, sources that it changes before they were read,
/// and destinations that it reads before the copy has arrived.
#include <algorithm>

#include "common/cpu_device/base/fiber.hpp"
#include "common/cpu_device/tests/stream_test.hpp"
#include "common/cuda/unused_memory.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a copy that reaches beyond its memory is named, with both sizes, the side and both places") {
  const std::string to_device =
      "cudaMemcpyAsync on stream 1 writes 1024 bytes to the buffer of 1024 bytes of cudaMalloc, from byte "
      "512 "
      "on: 512 too many\n  called at streams/test_host_memory.cu:";
  check_blamed_always(
      [] {
        Stream stream;
        DeviceInts memory;
        PinnedInts input;
        CUDA_CHECK(
            cudaMemcpyAsync(memory.data + kCount / 2, input.data, kBytes, cudaMemcpyHostToDevice, stream));
      },
      to_device);
  check_blamed_always(
      [] {
        DeviceInts memory;
        std::vector<int> output(2 * kCount);
        CUDA_CHECK(cudaMemcpy(output.data(), memory.data, 2 * kBytes, cudaMemcpyDeviceToHost));
      },
      "cudaMemcpy on the legacy stream reads 2048 bytes from the buffer of 1024 bytes of cudaMalloc, from "
      "byte 0 "
      "on: 1024 too many");
  check_blamed_always(
      [] {
        DeviceInts memory;
        const PinnedInts input;
        CUDA_CHECK(cudaMemcpy2D(memory.data, 64, input.data, 128, 64, 9, cudaMemcpyHostToDevice));
      },
      "cudaMemcpy2D on the legacy stream reads 1088 bytes from the pinned memory of 1024 bytes of the host");
  use({});
  {
    Stream stream;
    int* memory = nullptr;
    CUDA_CHECK(cudaMallocAsync(&memory, 100, stream));
    CHECK_THAT(
        blame([&] { cudaMemsetAsync(memory, 0, 101, stream); }),
        ContainsSubstring("cudaMemsetAsync on stream 1 writes 101 bytes to the buffer of 100 bytes allocated "
                          "on stream 1, from byte 0 on: 1 too many"));
    CUDA_CHECK(cudaFreeAsync(memory, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  void* memory = nullptr;
  const int line = __LINE__ + 1;
  CUDA_CHECK(cudaMalloc(&memory, 16));
  CHECK_THAT(blame([&] { cudaMemset(memory, 0, 17); }),
             ContainsSubstring("allocated at streams/test_host_memory.cu:" + std::to_string(line)));
  CUDA_CHECK(cudaFree(memory));
}

TEST_CASE("a copy may fill its memory to the last byte") {
  check_never_blamed([] {
    Stream stream;
    DeviceInts memory;
    PinnedInts input(3);
    CUDA_CHECK(
        cudaMemcpyAsync(memory.data + 1, input.data, kBytes - sizeof(int), cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(peek(memory.data + kCount - 1) == 3);
  });
}

namespace {

/// A pinned place that a host function fills.
struct Fill {
  int* data;
  int value;
};
void fill_pinned(void* pointer) {
  const Fill& what = *static_cast<Fill*>(pointer);
  std::fill_n(what.data, kCount, what.value);
}

constexpr Schedule kQueued{Order::round_robin, Landing::late};

}  // namespace

TEST_CASE(
    "a host that changes the source of a queued upload is named, with the call, the range and the byte") {
  use(kQueued);
  int line = 0;
  const auto program = [&line](bool wait) {
    Stream stream;
    DeviceInts memory;
    PinnedInts input(1);
    line = __LINE__ + 1;
    CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data + 4, 64, cudaMemcpyHostToDevice, stream));
    if (wait) CUDA_CHECK(cudaStreamSynchronize(stream));
    input.data[3] = 2;  // before the range
    input.data[6] = 2;
    input.data[20] = 2;  // behind it
    CUDA_CHECK(cudaDeviceSynchronize());
  };
  const std::string text = blame([&] { program(false); });
  CHECK_THAT(text, ContainsSubstring(
                       "the source of the upload on stream 1 has changed since it was queued, first at byte "
                       "24: it copies bytes 16 to 79 of the pinned memory of 1024 bytes of the host, and "
                       "whoever changes them must wait until it has run\n  cudaMemcpyAsync at "
                       "streams/test_host_memory.cu:" +
                       std::to_string(line) + ";"));
  check_never_blamed([&] { program(true); });
}

TEST_CASE("a host may change what lies beside the source of a queued upload, and write what is there") {
  check_never_blamed([] {
    Stream stream;
    DeviceInts memory;
    PinnedInts input(1);
    CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data + 4, 64, cudaMemcpyHostToDevice, stream));
    input.data[3] = 2;
    input.data[4] = 1;
    input.data[20] = 2;
    CUDA_CHECK(cudaStreamSynchronize(stream));
  });
}

TEST_CASE("what runs before an upload may change its source") {
  check_never_blamed([] {
    Stream stream, other;
    Event filled;
    DeviceInts from, to;
    PinnedInts input(1), output;
    Fill two{input.data, 2}, three{input.data, 3};
    // Host functions in the stream, and in one that it waits for.
    CUDA_CHECK(cudaLaunchHostFunc(other, fill_pinned, &two));
    CUDA_CHECK(cudaEventRecord(filled, other));
    CUDA_CHECK(cudaStreamWaitEvent(stream, filled));
    CUDA_CHECK(cudaLaunchHostFunc(stream, fill_pinned, &three));
    CUDA_CHECK(cudaMemcpyAsync(from.data, input.data, kBytes, cudaMemcpyHostToDevice, stream));
    // A kernel that writes pinned memory.
    launch_add_one(from.data, input.data, stream);
    CUDA_CHECK(cudaMemcpyAsync(from.data, input.data, kBytes, cudaMemcpyHostToDevice, stream));
    // A download.
    launch_add_one(from.data, to.data, stream);
    CUDA_CHECK(cudaMemcpyAsync(input.data, to.data, kBytes, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaMemcpyAsync(from.data, input.data, kBytes, cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaMemcpyAsync(output.data, from.data, kBytes, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(output.all(5));
  });
}

TEST_CASE("a host function that nothing orders must not change the source of a queued upload") {
  use(kQueued);
  CHECK_THAT(
      blame([] {
        Stream stream, other;
        DeviceInts memory;
        PinnedInts input(1);
        Fill two{input.data, 2};
        CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, stream));
        CUDA_CHECK(cudaLaunchHostFunc(other, fill_pinned, &two));
        CUDA_CHECK(cudaStreamSynchronize(other));
        CUDA_CHECK(cudaStreamSynchronize(stream));
      }),
      ContainsSubstring(
          "the source of the upload on stream 1 has changed since it was queued, first at byte 0") &&
          ContainsSubstring(instrumented() ? ", wrote to that memory too early: stream 2 does not wait for "
                                             "the upload on stream 1, so a cudaStreamWaitEvent is missing\n"
                                           : ""));
  use({});
}

namespace {

/// A host function gives the source of an upload back, and then the host fills it again.
void give_source_back(bool behind_upload, bool waits_for_it) {
  Stream copies, tells;
  Event uploaded;
  DeviceInts memory;
  PinnedInts input(1);
  const auto tell = [&](cudaStream_t stream) {
    CUDA_CHECK(cudaLaunchHostFunc(
        stream, [](void* data) { ladder::spoil(data, kBytes); }, input.data));
  };
  if (!behind_upload) tell(copies);
  CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, copies));
  CUDA_CHECK(cudaEventRecord(uploaded, copies));
  if (waits_for_it) CUDA_CHECK(cudaStreamWaitEvent(tells, uploaded));
  if (behind_upload) tell(tells);
  CUDA_CHECK(cudaStreamSynchronize(tells));
  if (!behind_upload) cudaStreamQuery(copies);  // runs one thing
  input.fill(2);
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

TEST_CASE("of a source that has changed, the host function that gave it back too early is named") {
  use(kQueued);
  const auto words = [](bool behind_upload) {
    return blame([&] { give_source_back(behind_upload, /*waits_for_it=*/false); });
  };
  const std::string place = "queued at streams/test_host_memory.cu:" + std::to_string(__LINE__ - 21);
  CHECK_THAT(words(true),
             ContainsSubstring("must wait until it has run\n  the host function on stream 2, " + place +
                               ", gave that memory back too early: stream 2 does not wait for the "
                               "upload on stream 1, so a cudaStreamWaitEvent is missing\n"));
  CHECK_THAT(words(false),
             ContainsSubstring("\n  the host function on stream 1, " + place +
                               ", gave that memory back too early: it is queued before the upload "
                               "on stream 1\n"));
  check_never_blamed([] { give_source_back(true, true); });
}

namespace {

/// A slot of a ring, as of lesson 07.
struct Slot {
  PinnedInts ints{1};
  void take() const { ladder::note_slot_taken("test", 3, ints.data); }
  void give_back() const { ladder::note_slot_given_back(ints.data); }
};

enum class GivesBack { when_it_has_run, behind_nothing, before_the_upload, at_once, never };

/// The slot is the source of an upload, goes back, and is filled again.
void upload_from_slot(GivesBack gives_back) {
  Stream copies, tells;
  Event uploaded;
  DeviceInts memory;
  Slot slot;
  slot.take();
  const auto tell = [&](cudaStream_t stream) {
    CUDA_CHECK(cudaLaunchHostFunc(
        stream, [](void* slot) { static_cast<Slot*>(slot)->give_back(); }, &slot));
  };
  if (gives_back == GivesBack::before_the_upload) slot.give_back();
  CUDA_CHECK(cudaMemcpyAsync(memory.data, slot.ints.data, kBytes, cudaMemcpyHostToDevice, copies));
  CUDA_CHECK(cudaEventRecord(uploaded, copies));
  if (gives_back == GivesBack::when_it_has_run) CUDA_CHECK(cudaStreamWaitEvent(tells, uploaded));
  if (gives_back == GivesBack::when_it_has_run || gives_back == GivesBack::behind_nothing) tell(tells);
  if (gives_back == GivesBack::at_once) slot.give_back();
  CUDA_CHECK(cudaStreamSynchronize(tells));
  slot.ints.fill(2);
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

TEST_CASE("of a slot of a ring that has changed too early, its number and how it went back are named") {
  use(kQueued);
  const auto words = [](GivesBack gives_back) { return blame([&] { upload_from_slot(gives_back); }); };
  const std::string queued =
      "slot 3 of the test ring was given back while the upload on stream 1, which "
      "reads it, was still queued: the source of the upload on stream 1 has changed";
  CHECK_THAT(words(GivesBack::behind_nothing),
             ContainsSubstring(queued) &&
                 ContainsSubstring("gave it back too early: stream 2 does not wait for the upload on stream "
                                   "1, so a cudaStreamWaitEvent is missing"));
  CHECK_THAT(words(GivesBack::at_once),
             ContainsSubstring(queued) && ContainsSubstring("gave it back and had not waited for that"));
  CHECK_THAT(words(GivesBack::before_the_upload),
             ContainsSubstring("slot 3 of the test ring was given back before the upload on stream 1, which "
                               "reads it, was queued: the source"));
  CHECK_THAT(words(GivesBack::never),
             ContainsSubstring("slot 3 of the test ring, which nobody has given back, was written to after "
                               "the upload on stream 1 had been queued, which reads it: the source"));
  check_never_blamed([] { upload_from_slot(GivesBack::when_it_has_run); });
  // Who takes it next may wait: then it may go back at any time.
  check_never_blamed([] {
    Stream stream;
    DeviceInts memory;
    Slot slot;
    for (int lap = 0; lap < 3; ++lap) {
      slot.take();
      CUDA_CHECK(cudaStreamSynchronize(stream));
      slot.ints.fill(lap);
      CUDA_CHECK(cudaMemcpyAsync(memory.data, slot.ints.data, kBytes, cudaMemcpyHostToDevice, stream));
      slot.give_back();
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
  });
}

TEST_CASE(
    "a graph's upload reads what is there at its launch, and while it is queued nobody may change that") {
  const auto program = [](bool wait) {
    Stream stream;
    DeviceInts memory;
    PinnedInts input(1);
    CapturedGraph captured;
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaStreamEndCapture(stream, &captured.graph));
    CUDA_CHECK(cudaGraphInstantiate(&captured.exec, captured.graph));
    for (int launch = 2; launch < 4; ++launch) {
      input.fill(launch);
      CUDA_CHECK(cudaGraphLaunch(captured.exec, stream));
      if (wait) CUDA_CHECK(cudaStreamSynchronize(stream));
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
  };
  check_never_blamed([&] { program(true); });
  use(kQueued);
  CHECK_THAT(
      blame([&] { program(false); }),
      ContainsSubstring("the source of the upload on a graph on stream 1 has changed since it was queued"));
  use({});
}

TEST_CASE("a host that reads a download too early finds NaN") {
  use(kQueued);
  Stream stream;
  DeviceInts memory;
  PinnedInts output(7);
  CUDA_CHECK(cudaMemsetAsync(memory.data, 1, kBytes, stream));
  CUDA_CHECK(cudaMemcpyAsync(output.data + 1, memory.data, kBytes - 8, cudaMemcpyDeviceToHost, stream));
  CHECK(output.data[0] == 7);
  CHECK(output.data[1] == -1);
  CHECK(output.data[kCount - 2] == -1);
  CHECK(output.data[kCount - 1] == 7);
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CHECK(output.data[1] == 0x01010101);
  use({});
}

TEST_CASE("what runs before a download still finds what was in its target") {
  check_never_blamed([] {
    Stream stream;
    DeviceInts from, uploaded, added;
    PinnedInts memory(1), output, sum;
    struct Copy {
      const int* from;
      int* to;
    } copy{memory.data, output.data};
    const auto run_copy = [](void* pointer) {
      const Copy& what = *static_cast<Copy*>(pointer);
      std::copy_n(what.from, kCount, what.to);
    };
    CUDA_CHECK(cudaMemsetAsync(from.data, 0, kBytes, stream));
    // A host function, an upload, and a kernel read what the download overwrites.
    CUDA_CHECK(cudaLaunchHostFunc(stream, run_copy, &copy));
    CUDA_CHECK(cudaMemcpyAsync(memory.data, from.data, kBytes, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(output.all(1));
    memory.fill(2);
    CUDA_CHECK(cudaMemcpyAsync(uploaded.data, memory.data, kBytes, cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaMemcpyAsync(memory.data, from.data, kBytes, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaMemcpyAsync(output.data, uploaded.data, kBytes, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(output.all(2));
    memory.fill(3);
    launch_add_one(memory.data, added.data, stream);
    CUDA_CHECK(cudaMemcpyAsync(memory.data, from.data, kBytes, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaMemcpyAsync(sum.data, added.data, kBytes, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(sum.all(4));
    CHECK(memory.all(0));
  });
}

TEST_CASE("memory that was freed before a copy is named") {
#ifdef CPU_DEVICE_ASAN
  SKIP("AddressSanitizer keeps what is freed, and names it");
#endif
  check_blamed_always(
      [] {
        Stream stream;
        DeviceInts memory;
        int* pinned = nullptr;
        CUDA_CHECK(cudaMallocHost(&pinned, kBytes));
        CUDA_CHECK(cudaFreeHost(pinned));
        cudaMemcpyAsync(memory.data, pinned, kBytes, cudaMemcpyHostToDevice, stream);
      },
      "cudaMemcpyAsync on stream 1 reads the pinned memory of 1024 bytes of the host, which was freed "
      "before\n"
      "  called at streams/test_host_memory.cu:");
}

TEST_CASE("memory that was freed before the graph that copies it is launched is named") {
  const auto launch_after = [](bool frees) {
    Stream stream;
    DeviceInts memory;
    int* pinned = nullptr;
    CUDA_CHECK(cudaMallocHost(&pinned, kBytes));
    CapturedGraph captured;
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA_CHECK(cudaMemcpyAsync(memory.data, pinned, kBytes, cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaStreamEndCapture(stream, &captured.graph));
    if (frees) CUDA_CHECK(cudaFreeHost(pinned));
    CUDA_CHECK(cudaGraphInstantiate(&captured.exec, captured.graph, 0));
    CUDA_CHECK(cudaGraphLaunch(captured.exec, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    if (!frees) CUDA_CHECK(cudaFreeHost(pinned));
  };
  check_blamed_always(
      [&] { launch_after(true); },
      "reads the pinned memory of 1024 bytes of the host, which was freed before this launch: a "
      "graph copies at each launch");
  check_never_blamed([&] { launch_after(false); });
}

namespace {

[[gnu::noinline]] void capture_local(int* to, cudaStream_t stream) {
  const int local[kCount] = {};
  CUDA_CHECK(cudaMemcpyAsync(to, local, kBytes, cudaMemcpyHostToDevice, stream));
}

}  // namespace

TEST_CASE("a captured copy of a local variable whose function has returned is named") {
  check_blamed_always(
      [] {
        Stream stream;
        DeviceInts memory;
        CapturedGraph captured;
        CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        capture_local(memory.data, stream);
        CUDA_CHECK(cudaStreamEndCapture(stream, &captured.graph));
        CUDA_CHECK(cudaGraphInstantiate(&captured.exec, captured.graph, 0));
        cudaGraphLaunch(captured.exec, stream);
      },
      "reads 1024 bytes of the host's memory that have ended before this launch (a local variable of a "
      "function "
      "that has returned)");
}
