/// @file
/// The check of exercise 01.3: each number against the addresses of all lanes, and those against the CPU
/// device's counters.
#include EXERCISE

#include <fmt/core.h>
#include <set>

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using namespace exercise;
using ladder::exercise::expect, ladder::exercise::expect_predicted;

constexpr int kWarps = kM / kRows * (kN / kColumns);
constexpr int kLanes = kRows * kColumns;

/// The sectors of 32 bytes that all warps request, in one step or in all. @param byte_of offset of the byte
/// that the thread of C's element (row, column) accesses in step k
template <class ByteOf>
int sectors(int steps, ByteOf byte_of) {
  int count = 0;
  for (int first_row = 0; first_row < kM; first_row += kRows)
    for (int first_column = 0; first_column < kN; first_column += kColumns)
      for (int k = 0; k < steps; ++k) {
        std::set<int> touched;
        for (int lane = 0; lane < kLanes; ++lane)
          touched.insert(byte_of(first_row + lane / kColumns, first_column + lane % kColumns, k) / 32);
        count += static_cast<int>(touched.size());
      }
  return count;
}

constexpr int kBytes = sizeof(__nv_bfloat16);
int of_a(int row, int, int k) { return kBytes * (row * kK + k); }
int of_c(int row, int column, int) { return kBytes * (row * kN + column); }
template <int kRowPitch>
int of_b(int, int column, int k) {
  return kBytes * (k * kRowPitch + column);
}

/// @throws NotYet unless the CPU device counts as many
void count(int pitch, int read, int written) {
  const std::vector<__nv_bfloat16> a(kM * kK), b(kK * pitch);
  const ladder::DeviceBuffer<__nv_bfloat16> a_device(a), b_device(b);
  ladder::DeviceBuffer<__nv_bfloat16> c(kM * kN);
  const auto counters =
      ladder::exercise::counted([&] { launch_gemm(a_device.data(), b_device.data(), c.data(), pitch); });
  if (!counters) return;
  const int counted_read = static_cast<int>(counters->global_read_sectors),
            counted_written = static_cast<int>(counters->global_write_sectors);
  expect(
      counted_read == read && counted_written == written,
      fmt::format("the kernel was changed: with a pitch of {} the CPU device counts {} sectors read and {} "
                  "written, not {} and {}",
                  pitch, counted_read, counted_written, read, written));
}

void check() {
  const int a = sectors(kK, of_a), b = sectors(kK, of_b<kPitch>), wide_b = sectors(kK, of_b<kWidePitch>),
            c = sectors(1, of_c);
  count(kPitch, a + b, c);
  count(kWidePitch, a + wide_b, c);

  constexpr int kRowSectors = kRows * kK * kBytes / 32;  // rows 0 to 3 of A, or 4 to 7: whole sectors
  const char* const one_step = "that counts one step of all warps; there are as many steps as A has columns";
  const char* const one_warp = "that counts one warp; how many warps cover C?";
  const char* const each_lane = "you counted a request for each lane; lanes in one sector share it";
  const char* const cached =
      "you counted every byte once; here a warp that needs a sector again requests it "
      "again";
  expect_predicted(
      "kSectorsOfA", kSectorsOfA, a,
      {{a / kRows, "you counted one sector for a warp's load, but its lanes lie in four rows of C"},
       {a / kK, one_step},
       {a / kWarps, one_warp},
       {kWarps * kRowSectors,
        "you counted each sector of a warp's rows once; the next step requests it again"},
       {kWarps * kK * kRowSectors,
        "that counts all sectors of a warp's four rows; in one step each row needs one element"},
       {kWarps * kK * kLanes, each_lane},
       {kM * kK * kBytes / 32, cached}});
  expect_predicted(
      "kSectorsOfB", kSectorsOfB, b,
      {{kWarps * kK * 2, "a warp with 32 columns requests that many; this one has 8, of 2 bytes each"},
       {kWarps * kK * kRows,
        "you counted B once for each row of the warp; lanes below each other read the "
        "same element"},
       {b / kK, one_step},
       {b / kWarps, one_warp},
       {kWarps * kK * kLanes, each_lane},
       {kK * kN * kBytes / 32, cached}});
  expect_predicted(
      "kSectorsOfWideB", kSectorsOfWideB, wide_b,
      {{b, "a row is 104 bytes now, so rows begin anywhere in a sector: which rows' 16 bytes straddle two?"},
       {3 * b / 2, "fewer rows straddle two sectors: where do rows 0 to 3 begin?"},
       {2 * b, "not every row's 16 bytes straddle two sectors: where do rows 0 to 3 begin?"},
       {wide_b / kK, one_step},
       {wide_b / kWarps, one_warp}});
  expect_predicted(
      "kSectorsOfC", kSectorsOfC, c,
      {{c * kK, "you counted C in every step; the sum is stored once"},
       {kWarps, "you counted one sector for a warp, but its lanes lie in four rows of C"},
       {kWarps * 2, "a warp with one row and 32 columns requests that many; this one has four rows"},
       {c / kWarps, one_warp},
       {kWarps * kLanes, each_lane},
       {kM * kN * kBytes / 32, "two warps share each sector of C, and each of them writes its half"}});
}

}  // namespace

int main(int argc, char** argv) {
  return ladder::exercise::run_check(argc, argv, [] { ladder::exercise::all_predicted(check); });
}
