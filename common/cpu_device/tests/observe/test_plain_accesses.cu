/// @file
/// What the hooks of plain loads and stores see besides races and ends of memory: null pointers, loops that
/// wait for a store, and host functions; and what they call a byte of shared memory.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/cpu_device/tests/stream_test.hpp"
#include "common/device/shared_storage.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace plain_accesses_test {
namespace {

/// Device memory for a volatile number, which is 0.
struct Flag {
  Flag() {
    REQUIRE(cudaMalloc(&memory, sizeof(int)) == cudaSuccess);
    REQUIRE(cudaMemset(memory, 0, sizeof(int)) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  }
  ~Flag() { cudaFree(memory); }
  volatile int& value() const { return *static_cast<volatile int*>(memory); }
  void* memory = nullptr;
};

template <class T>
T* hidden(T* pointer) {
  asm volatile("" : "+r"(pointer));
  return pointer;
}

}  // namespace

TEST_CASE("a null pointer in a kernel is named with its line, and the process goes on") {
  struct Pair {
    int first, second;
  };
  const std::string store = failure({.block = 64}, {}, [] {
    if (threadIdx.x == 40) hidden<Pair>(nullptr)->second = 1;
    block_barrier(Location::current());
  });
  CHECK_THAT(store, ContainsSubstring("a store of 4 bytes follows a null pointer, to address 0x4\n  at ") &&
                        ContainsSubstring("test_plain_accesses.cu:") &&
                        ContainsSubstring("in block (0,0,0) warp 1 lane 8"));
  int sum = 0;
  CHECK_THAT(failure({.block = 1}, {}, [&] { sum += *hidden<int>(nullptr); }),
             ContainsSubstring("a load of 4 bytes follows a null pointer\n  at "));
  CHECK_THAT(failure({.block = 1, .shared_bytes = 16}, {},
                     [] {
                       copy_async(shared_storage(16, 16, Location::current()), nullptr, 16, 16,
                                  Location::current());
                     }),
             ContainsSubstring("follows a null pointer"));
  CHECK(failure({.block = 1}, {}, [&] { sum += 1; }) == "");
}

TEST_CASE("a loop of plain loads lets the thread run that ends it") {
  for (const Schedule& schedule : fixed_schedules()) {
    const Flag flag;
    CHECK(failure({.block = 64}, schedule, [&] {
            if (threadIdx.x == 63) flag.value() = 1;
            if (threadIdx.x % 32 == 0)
              while (flag.value() == 0) {
              }
          }) == "");
  }
}

TEST_CASE("threads that hand a turn to each other by plain loads and stores end") {
  const Flag turn;
  CHECK(failure({.block = 64}, Schedule::parse("lowest-first/late"), [&] {
          if (threadIdx.x % 32) return;
          const int own = static_cast<int>(threadIdx.x) / 32;
          for (int round = 0; round < 300; ++round) {
            while (turn.value() % 2 != own) {
            }
            turn.value() = turn.value() + 1;
          }
        }) == "");
}

TEST_CASE(
    "a loop of plain loads that nobody ends is named with its thread, its line and how often it looked") {
  const Flag flag;
  const std::string text = failure({.block = 64}, {}, [&] {
    if (threadIdx.x == 40)
      while (flag.value() == 0) {
      }
  });
  CHECK_THAT(text, ContainsSubstring("deadlock: every running thread polls and nothing changes") &&
                       ContainsSubstring("warp 1 lane 8 waits at test_plain_accesses.cu:") &&
                       ContainsSubstring("in a loop that loads the same again and again, ") &&
                       ContainsSubstring(" times, and finds no change"));
}

namespace {

/// A download in one stream, and a host function in another that adds up what it brings, or what lies behind.
void add_downloaded(bool waits, int first) {
  static const int* numbers;
  Stream copies, others;
  Event downloaded;
  DeviceInts from;
  PinnedInts to;
  CUDA_CHECK(cudaMemset(from.data, 0, kBytes));
  CUDA_CHECK(cudaDeviceSynchronize());
  numbers = to.data + first;
  CUDA_CHECK(cudaMemcpyAsync(to.data, from.data, kBytes / 2, cudaMemcpyDeviceToHost, copies));
  CUDA_CHECK(cudaEventRecord(downloaded, copies));
  if (waits) CUDA_CHECK(cudaStreamWaitEvent(others, downloaded));
  CUDA_CHECK(cudaLaunchHostFunc(
      others,
      [](void*) {
        for (int i = 0; i < kCount / 2; ++i) asm volatile("" : : "r"(numbers[i]));
      },
      nullptr));
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

TEST_CASE("a host function that reads what a download brings, and does not wait for it, is named") {
  check_blamed_always(
      [] { add_downloaded(/*waits=*/false, 0); },
      "the host function on stream 2 reads the pinned memory of 1024 bytes of the host, from byte 0 "
      "on, which the download on stream 1 writes, and nothing orders them: a cudaStreamWaitEvent is "
      "missing");
  check_never_blamed([] { add_downloaded(/*waits=*/true, 0); });
  check_never_blamed([] { add_downloaded(/*waits=*/false, kCount / 2); });
}

TEST_CASE("a byte of the kernel's struct is called by its members, as the kernel calls the struct") {
  struct Inner {
    uint16_t panels[2][8][64];
  };
  struct Storage {
    float a[3];
    Inner b[4];
    uint64_t full;
  };
  const CheckRaces check_races;
  const auto race = [](size_t offset) {
    return failure({.block = 64, .shared_bytes = sizeof(Storage)}, {}, [&] {
      auto& storage = ladder::shared_storage<Storage>();
      reinterpret_cast<volatile char*>(&storage)[offset] = 1;
    });
  };
  const size_t third = offsetof(Storage, b) + 2 * sizeof(Inner);
  CHECK_THAT(race(third + 2 * ((1 * 8 + 5) * 64 + 3)),
             ContainsSubstring(" at storage.b[2].panels[1][5][3]: "));
  CHECK_THAT(race(4), ContainsSubstring(" at storage.a[1]: "));
  CHECK_THAT(race(offsetof(Storage, full)), ContainsSubstring(" at storage.full: "));
  struct Other {
    uint16_t not_known;
  };
  CHECK_THAT(failure({.block = 64, .shared_bytes = sizeof(Other)}, {},
                     [] { ladder::shared_storage<Other>().not_known = 1; }),
             ContainsSubstring(" at byte 0: "));
}

}  // namespace plain_accesses_test
