/// @file
/// The check of exercise 04.4, by every schedule: matrices that fill their boxes, whose boxes extend beyond
/// them, and whose last boxes lie outside.
#include EXERCISE

#include "common/exercise/check.hpp"

namespace {

/// @throws NotYet unless C is right
void add(int rows, int columns) {
  const auto a = ladder::exercise::small_integers<float>(rows * columns, 1);
  const auto b = ladder::exercise::small_integers<float>(rows * exercise::kNarrow, 2);
  std::vector<__nv_bfloat16> expected;
  for (int i = 0; i < rows * columns; ++i) {
    const int row = i / columns, column = i % columns;
    expected.push_back(ladder::to_bf16(a[i] + b[row * exercise::kNarrow + column % exercise::kNarrow]));
  }
  const ladder::DeviceBuffer<__nv_bfloat16> a_device(std::vector<__nv_bfloat16>(a.begin(), a.end())),
      b_device(std::vector<__nv_bfloat16>(b.begin(), b.end()));
  ladder::exercise::Output<__nv_bfloat16> c("C", expected.size(), columns);
  exercise::launch_add(a_device.data(), b_device.data(), c.data(), rows, columns);
  c.expect_equal(expected);
}

void check() {
  // Two tiles whose copies land late, without the race check, so that the report names a barrier that expects
  // too few bytes.
  ladder::use_schedule({}, "round-robin/late");
  add(64, 256);
  for (const auto& [rows, columns] : {std::pair{64, 128}, {40, 200}, {150, 408}, {70, 136}})
    ladder::exercise::on_every_schedule([rows = rows, columns = columns] { add(rows, columns); });
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
