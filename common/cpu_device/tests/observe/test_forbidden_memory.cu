/// @file
/// Loads and stores of global memory that no allocation covers are named, with the place in the source; and
/// those that one covers raise no alarm.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "common/cpu_device/observe/forbidden_memory.hpp"
#include "common/cpu_device/tests/kernel_test.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace forbidden_memory_test {
namespace {

constexpr int kCount = 100;
const char* const kBuffer = "the buffer of 400 bytes of cudaMalloc";

/// Device memory for `count` numbers.
struct Buffer {
  explicit Buffer(int count = kCount) {
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&numbers), sizeof(int) * static_cast<size_t>(count)) ==
            cudaSuccess);
  }
  ~Buffer() { cudaFree(numbers); }
  int* numbers = nullptr;
};

/// What one thread is blamed for.
std::string blame(const std::function<void()>& body, const Schedule& schedule = {}) {
  const CheckRaces check_races;  // so that the accesses of all blocks are seen
  return failure({.block = 1}, schedule, body);
}

/// An address far from what the compiler could know.
template <class T>
T* hidden(T* pointer) {
  asm volatile("" : "+r"(pointer));
  return pointer;
}

}  // namespace

TEST_CASE("a load behind the end is named, with thread, place and schedule") {
  const Buffer buffer;
  int sum = 0;
  const std::string text =
      blame([&] { sum += hidden(buffer.numbers)[kCount]; }, Schedule::parse("random:17"));
  CHECK_THAT(text, ContainsSubstring("kernel 'test': a load of 4 bytes reaches 4 bytes beyond the end of ") &&
                       ContainsSubstring(kBuffer) && ContainsSubstring("in block (0,0,0) warp 0 lane 0") &&
                       ContainsSubstring("test_forbidden_memory.cu:") &&
                       ContainsSubstring("\n  schedule random:17 ("));
}

TEST_CASE("a store before the beginning is named") {
  const Buffer buffer;
  CHECK_THAT(blame([&] { hidden(buffer.numbers)[-1] = 1; }),
             ContainsSubstring("a store of 4 bytes begins 4 bytes before ") && ContainsSubstring(kBuffer));
}

TEST_CASE("a load of 16 bytes that straddles the end is named") {
  const Buffer buffer(kCount + 2);
  uint4 value;
  const std::string text =
      blame([&] { value = *reinterpret_cast<const uint4*>(hidden(buffer.numbers) + kCount); });
  CHECK_THAT(text, ContainsSubstring("bytes beyond the end of the buffer of 408 bytes of cudaMalloc"));
}

TEST_CASE("of a matrix that has a name, row and column of what lies outside are told") {
  if (!instrumented()) SKIP("plain loads are seen in the instrumented build");
  const Buffer buffer;  // 10 rows of 10
  name_matrix(buffer.numbers, "B", 10, 10, sizeof(int));
  const auto load = [&](int row, int column) {
    int value;
    return blame([&] { value = hidden(buffer.numbers)[row * 10 + column]; });
  };
  CHECK_THAT(load(9, 10),
             ContainsSubstring("of cudaMalloc, which holds B, 10 x 10: column 10 of its last row, or column "
                               "0 of row 10: is the column, or the row, not tested?\n"));
  CHECK_THAT(load(40, 3), ContainsSubstring("which holds B, 10 x 10: column 3 of row 40\n"));
  CHECK_THAT(load(-1, 9), ContainsSubstring("of cudaMalloc, which holds B, 10 x 10\n"));
  CHECK(load(9, 9) == "");
}

namespace {

/// Two words of 8 bytes, at any multiple of 8.
struct Words {
  uint64_t first, second;
};

}  // namespace

TEST_CASE("an access whose type asks for more alignment is named, and where it begins") {
  if (!instrumented()) SKIP("plain loads are seen in the instrumented build");
  const Buffer buffer;
  const auto bytes = [&](size_t offset) { return reinterpret_cast<char*>(hidden(buffer.numbers)) + offset; };
  const std::string of_buffer = " of the buffer of 400 bytes of cudaMalloc, ";
  uint4 value;
  const auto load = [&](size_t offset) {
    return blame([&] { value = *reinterpret_cast<const uint4*>(bytes(offset)); });
  };
  const std::string word = "kernel 'test': a load of 16 bytes is not aligned to 16 bytes: it begins at byte ";
  CHECK_THAT(load(36), ContainsSubstring(word + "36" + of_buffer + "4 modulo 16\n  at ") &&
                           ContainsSubstring("test_forbidden_memory.cu:") &&
                           ContainsSubstring("in block (0,0,0) warp 0 lane 0\n  schedule "));
#ifdef __x86_64__
  CHECK_THAT(load(40), ContainsSubstring(word + "40" + of_buffer + "8 modulo 16\n  at "));
#endif
  CHECK(load(48) == "");
  CHECK_THAT(blame([&] { *reinterpret_cast<uint64_t*>(bytes(12)) = 1; }),
             ContainsSubstring("a store of 8 bytes is not aligned to 8 bytes: it begins at byte 12"));
  CHECK_THAT(blame([&] { *reinterpret_cast<int*>(bytes(6)) = 1; }),
             ContainsSubstring("6" + of_buffer + "2 modulo 4"));
  CHECK_THAT(
      failure({.block = 1, .shared_bytes = 64}, {},
              [&] {
                auto* shared = static_cast<char*>(shared_storage(64, 16, Location::current()));
                *reinterpret_cast<uint4*>(hidden(shared) + 20) = {};
              }),
      ContainsSubstring("a store of 16 bytes is not aligned to 16 bytes: it begins at byte 20 of shared "
                        "memory, 4 modulo 16"));
}

TEST_CASE("an access that its type allows raises no alarm, wherever it begins") {
  const Buffer buffer;
  Words words;
  int number;
  CHECK(blame([&] {
          char* const bytes = reinterpret_cast<char*>(hidden(buffer.numbers));
          words = *reinterpret_cast<const Words*>(bytes + 8);
          *reinterpret_cast<Words*>(bytes + 24) = words;
          std::memcpy(&number, bytes + 3, sizeof number);
        }) == "");
}

TEST_CASE("memory that was freed is named") {
  int* numbers;
  {
    const Buffer buffer;
    numbers = buffer.numbers;
  }
  CHECK_THAT(
      blame([&] { hidden(numbers)[3] = 1; }),
      ContainsSubstring("a store of 4 bytes touches the buffer of 400 bytes of cudaMalloc, which was freed"));
}

TEST_CASE("pinned memory has ends, too") {
  int* numbers = nullptr;
  REQUIRE(cudaMallocHost(reinterpret_cast<void**>(&numbers), sizeof(int) * kCount) == cudaSuccess);
  CHECK(blame([&] { hidden(numbers)[kCount - 1] = 1; }) == "");
  CHECK_THAT(
      blame([&] { hidden(numbers)[kCount + 1] = 1; }),
      ContainsSubstring("reaches 8 bytes beyond the end of the pinned memory of 400 bytes of the host"));
  REQUIRE(cudaFreeHost(numbers) == cudaSuccess);
}

TEST_CASE("memory of a pool is guarded up to the next multiple of 256 bytes") {
  int* numbers = nullptr;
  REQUIRE(cudaMallocAsync(reinterpret_cast<void**>(&numbers), sizeof(int) * kCount, nullptr) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(blame([&] { hidden(numbers)[kCount - 1] = 1; }) == "");
  CHECK_THAT(blame([&] { hidden(numbers)[kCount] = 1; }),
             ContainsSubstring("reaches 4 bytes beyond the end of the buffer of 400 bytes allocated on"));
  REQUIRE(cudaFreeAsync(numbers, nullptr) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("the last byte and the first raise no alarm, on any fixed schedule") {
  const Buffer buffer;
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK(blame(
              [&] {
                auto* bytes = reinterpret_cast<char*>(hidden(buffer.numbers));
                bytes[0] = 1;
                bytes[sizeof(int) * kCount - 1] = 1;
                *reinterpret_cast<uint4*>(bytes + sizeof(int) * kCount - sizeof(uint4)) = {};
              },
              schedule) == "");
  }
}

TEST_CASE("memory of the host raises no alarm, not even where memory of the device was freed") {
  for (int i = 0; i < 200; ++i) {
    { const Buffer freed(i + 1); }
    std::vector<int> numbers(static_cast<size_t>(i) + 1);
    int on_stack = 0;
    const std::string text = blame([&] {
      std::iota(numbers.begin(), numbers.end(), 0);
      on_stack += *hidden(numbers.data());
    });
    REQUIRE(text == "");
  }
}

TEST_CASE("more buffers than are remembered raise no alarm") {
  std::vector<Buffer> buffers(12);
  int sum = 0;
  CHECK(blame([&] {
          for (int round = 0; round < 3; ++round) {
            for (const Buffer& buffer : buffers) sum += *hidden(buffer.numbers) = round;
          }
        }) == "");
}

TEST_CASE("without race checks the accesses of the first block are seen") {
  const Buffer buffer;
  CHECK_THAT(failure({.block = 32}, {}, [&] { hidden(buffer.numbers)[kCount + threadIdx.x] = 1; }),
             ContainsSubstring("beyond the end of"));
}

TEST_CASE("an access is described by its distance from the allocation") {
  const ForbiddenZone behind{1100, 1200, 1000, 100, "x", false};
  const auto at = [](uintptr_t address) { return reinterpret_cast<const void*>(address); };
  CHECK(behind.describe(at(1099), 2) == "reaches 1 bytes beyond the end of x");
  CHECK(behind.describe(at(1100), 4) == "reaches 4 bytes beyond the end of x");
  const ForbiddenZone before{900, 1000, 1000, 100, "x", false};
  CHECK(before.describe(at(998), 4) == "begins 2 bytes before x");
  CHECK(ForbiddenZone{1000, 1100, 1000, 100, "x", true}.describe(at(1000), 4) ==
        "touches x, which was freed");
}

}  // namespace forbidden_memory_test
