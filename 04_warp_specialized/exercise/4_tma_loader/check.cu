/// @file
/// The check of exercise 04.4: matrices that fill their boxes, that stick out of them, and whose last boxes
/// hold nothing of the matrix at all, by every schedule.
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
  // Two tiles whose copies land late, with no race check: a barrier that waits for too few bytes is then
  // named as that.
  ladder::use_schedule({}, "round-robin/late");
  add(64, 256);
  for (const auto& [rows, columns] : {std::pair{64, 128}, {40, 200}, {150, 408}, {70, 136}})
    ladder::exercise::on_every_schedule([rows = rows, columns = columns] { add(rows, columns); });
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
