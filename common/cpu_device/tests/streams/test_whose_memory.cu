/// @file
/// Who may touch which memory: the host none of the device's, kernels no pageable memory of the host; and
/// what a kernel reads as read-only data, it must not write.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <csignal>
#include <stdexcept>
#include <string>

#include "common/cpu_device/base/fiber.hpp"
#include "common/cpu_device/launch_progress.hpp"
#include "common/cpu_device/tests/stream_test.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/unused_memory.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// What a program says on stderr, and the code that it ends with.
struct End {
  std::string words;
  int code = -1;
};

/// In a process of its own, because it may end there.
End end_of(const std::function<void()>& program) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    program();
    std::_Exit(0);
  }
  close(ends[1]);
  End end;
  char buffer[256];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    end.words.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) end.code = WEXITSTATUS(status);
  return end;
}

__global__ void copies(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void reads_as_read_only(const int* from, int* to) { to[threadIdx.x] = __ldg(&from[threadIdx.x]); }

}  // namespace

TEST_CASE("what cannot leave a host function that is noexcept ends the program with a line") {
  use({});
  const auto end_in = [](cudaHostFn_t function) {
    const End end = end_of([&] {
      Stream stream;
      cudaLaunchHostFunc(stream, function, nullptr);
      cudaStreamSynchronize(stream);
    });
    CHECK(end.code == 1);
    return end.words;
  };
  CHECK_THAT(end_in([](void*) noexcept { cudaDeviceSynchronize(); }),
             ContainsSubstring("error: cudaDeviceSynchronize is called inside a host function, the host "
                               "function on stream 1: host functions must not call CUDA"));
  CHECK_THAT(end_in([](void*) noexcept { static_cast<void>(std::string().at(1)); }),
             ContainsSubstring("error: an exception left the host function on stream 1: basic_string::at"));
}

TEST_CASE("a rule that queued work has broken is known where the exception of its effect arrives") {
  use({});
  struct Waits {
    ~Waits() { cudaDeviceSynchronize(); }
  };
  const DeviceInts memory;
  Stream one, other;
  try {
    const Waits waits;
    CUDA_CHECK(cudaMemsetAsync(memory.data, 0, kBytes, one));
    CUDA_CHECK(cudaMemsetAsync(memory.data, 1, kBytes, other));
    throw std::runtime_error("wrong result");
  } catch (const std::runtime_error&) {
    CHECK_THAT(cpu_device::take_broken_rule(), ContainsSubstring("nothing orders them"));
  }
  CHECK(cpu_device::take_broken_rule() == "");
}

TEST_CASE("what destructors queue after a failure is not called what the host had not waited for") {
  use({});
  CUDA_CHECK(cudaDeviceSynchronize());
  const std::string before = cpu_device::describe_host_side();
  const Stream stream;
  int *first = nullptr, *second = nullptr;
  CUDA_CHECK(cudaMallocAsync(&first, kBytes, stream));
  CUDA_CHECK(cudaMallocAsync(&second, kBytes, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  struct Freed {
    int* memory;
    cudaStream_t stream;
    ~Freed() { cudaFreeAsync(memory, stream); }
  };
  try {
    const Freed one{first, stream}, other{second, stream};
    throw std::runtime_error("wrong result");
  } catch (const std::runtime_error&) {
    CHECK(cpu_device::describe_host_side() == before);
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));
}

TEST_CASE("a kernel that has read beyond what an upload wrote is named, also of memory that is to be freed") {
  if (!instrumented()) SKIP("what a kernel reads is seen in the instrumented build");
  use({});
  cpu_device::describe_host_side();  // what other tests have left
  Stream stream;
  const PinnedInts from;
  const DeviceInts to;
  int* memory = nullptr;
  CUDA_CHECK(cudaMallocAsync(&memory, kBytes, stream));
  CUDA_CHECK(cudaMemcpyAsync(memory, from.data, kBytes / 2, cudaMemcpyHostToDevice, stream));
  ladder::launch(copies, {.name = "copies", .grid = 1, .block = kCount, .stream = stream},
                 static_cast<const int*>(memory), to.data);
  CUDA_CHECK(cudaFreeAsync(memory, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CHECK_THAT(cpu_device::describe_host_side(), ContainsSubstring("wrote bytes 0 to 511 alone"));
}

TEST_CASE("a host function that reads a slot which it has given back is named") {
  if (!instrumented()) SKIP("what the host reads is seen in the instrumented build");
  static const PinnedInts& slot = *new PinnedInts;  // what static objects free comes after all tests
  static volatile int sum = 0;
  const auto launch = [](cudaHostFn_t function) {
    Stream stream;
    CUDA_CHECK(cudaLaunchHostFunc(stream, function, nullptr));
    CUDA_CHECK(cudaStreamSynchronize(stream));
  };
  check_blamed_always(
      [&] {
        launch([](void*) {
          ladder::spoil(slot.data, kBytes);
          sum = sum + slot.data[5];
        });
      },
      "after it has given it back: a slot that was given back may be filled anew");
  check_never_blamed([&] {
    launch([](void*) {
      sum = sum + slot.data[5];
      ladder::spoil(slot.data, kBytes);
    });
  });
}

#ifndef CPU_DEVICE_ASAN
TEST_CASE("a host that touches device memory is named, with the line") {
  use({});
  DeviceInts memory;
  CUDA_CHECK(cudaMemset(memory.data, 0, kBytes));
  CUDA_CHECK(cudaDeviceSynchronize());
  const std::string rule =
      "error: the host touches the buffer of 1024 bytes of cudaMalloc, at byte 8: only copies and kernels "
      "reach "
      "device memory, so a cudaMemcpy is missing\n  at streams/test_whose_memory.cu:";
  const auto expect_named = [&](const std::function<void()>& program) {
    const End end = end_of(program);
    CHECK_THAT(end.words, ContainsSubstring(rule));
    CHECK(end.code == 1);
  };
  expect_named([&] { memory.data[2] = 1; });
  expect_named([&] { std::_Exit(memory.data[2]); });
  expect_named([&] {
    int value = 0;
    std::copy_n(memory.data + 2, 1, &value);
    std::_Exit(value);
  });
}

TEST_CASE("a host function that touches device memory is named") {
  use({});
  DeviceInts memory;
  Stream stream;
  const End end = end_of([&] {
    cudaLaunchHostFunc(
        stream, [](void* data) { *static_cast<int*>(data) = 1; }, memory.data);
    cudaStreamSynchronize(stream);
  });
  CHECK_THAT(end.words,
             ContainsSubstring("the host touches the buffer of 1024 bytes of cudaMalloc, at byte 0"));
  CHECK(end.code == 1);
}

TEST_CASE("a host function that uses what is gone is named, with the stream and where it was enqueued") {
  use({});
  const auto words_of = [](cudaHostFn_t function, void* data, int& line) {
    line = __LINE__ + 3;
    return end_of([&] {
             Stream stream;
             cudaLaunchHostFunc(stream, function, data);
             cudaStreamSynchronize(stream);
           })
        .words;
  };
  const auto enqueued = [](int line) {
    return "  in the host function on stream 1, enqueued at streams/test_whose_memory.cu:" +
           std::to_string(line);
  };
  const long page = sysconf(_SC_PAGESIZE);
  void* const gone = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(munmap(gone, page) == 0);
  int line = 0;
  const std::string object = words_of([](void* data) { *static_cast<int*>(data) = 1; }, gone, line);
  const std::string rule = "error: the host function on stream 1 uses address ";
  CHECK_THAT(object, ContainsSubstring(rule));
  CHECK_THAT(object, ContainsSubstring("where nothing lies: what it is given must live until it has run\n" +
                                       enqueued(line) + "\n  at streams/test_whose_memory.cu:"));
  static int* pointer = nullptr;
  const std::string null = words_of([](void* data) { **static_cast<int**>(data) = 1; }, &pointer, line);
  CHECK_THAT(null, ContainsSubstring("the host function on stream 1 follows a null pointer, as freed memory "
                                     "may hold: what it is given must live until it has run\n"));
  // Not even the function is there, so that nothing tells who called what.
  const std::string function = words_of(reinterpret_cast<cudaHostFn_t>(gone), nullptr, line);
  CHECK_THAT(function, ContainsSubstring(rule));
  CHECK_THAT(function, ContainsSubstring(enqueued(line)));
}

TEST_CASE("an access that crashes the program is told of, where no other handler does it") {
  use({});
  const auto words_of = [](auto access) {
    const End end = end_of([&] {
      std::signal(SIGSEGV, SIG_DFL);
      const DeviceInts memory;
      access();
    });
    CHECK(end.code == 1);  // no crash
    return end.words;
  };
  const std::string text = words_of([] {
    int* volatile nowhere = reinterpret_cast<int*>(8);
    *nowhere = 1;
  });
  CHECK_THAT(text, ContainsSubstring("error: nothing lies at address 0x8"));
  const std::string element = words_of([] {
    volatile int* volatile array = nullptr;
    array[16384] = 1;
  });
  CHECK_THAT(element, ContainsSubstring("address 0x10000, which was accessed: 65536 bytes behind a null "
                                        "pointer. Is an argument of the kernel null"));
  CHECK_THAT(text, ContainsSubstring("at streams/test_whose_memory.cu:"));
#ifdef __SSE2__
  CHECK_THAT(words_of([] {
               alignas(16) char bytes[32] = {};
               char* volatile place = bytes + 2;
               static_cast<void>(*reinterpret_cast<const volatile __m128i*>(place));
             }),
             ContainsSubstring("error: a load or store of 16 bytes is not aligned to 16 bytes"));
#endif
}

TEST_CASE("a host function whose code is gone ends the program without a crash, too") {
  use({});
  const long page = sysconf(_SC_PAGESIZE);
  void* const gone = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(munmap(gone, page) == 0);
  CHECK(end_of([&] {
          std::signal(SIGSEGV, SIG_DFL);
          Stream stream;
          cudaLaunchHostFunc(stream, reinterpret_cast<cudaHostFn_t>(gone), nullptr);
          cudaStreamSynchronize(stream);
        }).code == 1);
}

TEST_CASE("a host that touches memory of a pool is named") {
  use({});
  Stream stream;
  int* memory = nullptr;
  CUDA_CHECK(cudaMallocAsync(&memory, kBytes, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  const End end = end_of([&] { memory[0] = 1; });
  CHECK_THAT(end.words, ContainsSubstring("the host touches the chunk of 2097152 bytes of a pool"));
  CUDA_CHECK(cudaFreeAsync(memory, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
}
#endif

TEST_CASE("a host may touch pinned and registered memory, and what was device memory before") {
  use({});
  const End end = end_of([&] {
    PinnedInts pinned(1);
    pinned.data[0] = 2;
    for (int i = 0; i < 100; ++i) {
      DeviceInts memory;
      std::vector<int> values(kCount, i);
      values[0] = 1;
    }
  });
  CHECK(end.words == "");
  CHECK(end.code == 0);
}

TEST_CASE("a kernel that reads or writes pageable memory of the host is named") {
  check_blamed_always(
      [] {
        const std::vector<int> pageable(kCount, 1);
        DeviceInts to;
        Stream stream;
        launch_add_one(pageable.data(), to.data, stream);
        CUDA_CHECK(cudaStreamSynchronize(stream));
      },
      "kernel add_one on stream 1 reads 1024 bytes of the host's pageable memory, which the device cannot "
      "reach: "
      "give it device memory, or pinned memory (cudaMallocHost, cudaHostRegister)");
  if (!instrumented()) return;
  check_blamed_always(
      [] {
        DeviceInts from;
        std::vector<int> pageable(kCount);
        launch_add_one(from.data, pageable.data(), nullptr);
      },
      "kernel add_one on the legacy stream writes 1024 bytes of the host's pageable memory");
}

TEST_CASE("a kernel may read and write pinned and registered memory of the host") {
  check_never_blamed([] {
    PinnedInts from(41);
    std::vector<int> to(kCount);
    CUDA_CHECK(cudaHostRegister(to.data(), kBytes, cudaHostRegisterDefault));
    Stream stream;
    launch_add_one(from.data, to.data(), stream);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(to[kCount - 1] == 42);
    CUDA_CHECK(cudaHostUnregister(to.data()));
  });
}

TEST_CASE("a kernel that reads with __ldg what it writes is named, with the line") {
  if (!instrumented()) SKIP("plain stores are seen in the instrumented build");
  const auto run = [](int shift) {
    DeviceInts memory;
    Stream stream;
    CUDA_CHECK(cudaMemsetAsync(memory.data, 0, kBytes, stream));
    ladder::launch(reads_as_read_only, {.name = "shift", .grid = 1, .block = 64, .stream = stream},
                   static_cast<const int*>(memory.data), memory.data + shift);
    CUDA_CHECK(cudaStreamSynchronize(stream));
  };
  check_blamed_always(
      [&] { run(32); },
      "kernel shift on stream 1 reads the buffer of 1024 bytes of cudaMalloc with __ldg and writes "
      "it itself, both from byte 128 on: __ldg is for data that nobody writes while the kernel "
      "runs\n  at streams/test_whose_memory.cu:");
  check_never_blamed([&] { run(64); });
}
