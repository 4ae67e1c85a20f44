/// @file
/// The check of exercise 04.4, by every schedule: matrices that fill their boxes, whose boxes extend beyond
/// them, and whose last boxes lie outside.
#include EXERCISE

#include <functional>

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
  // What C is where a box of a begins elsewhere. TMA fills what lies outside with zeros.
  const auto with_a_of = [&](int more_rows, int more_columns) {
    return [&, more_rows, more_columns](size_t place) {
      const int row = int(place) / columns, column = int(place) % columns;
      const int row_of_a = row + more_rows, column_of_a = column + more_columns;
      const bool is_inside = row_of_a >= 0 && row_of_a < rows && column_of_a >= 0 && column_of_a < columns;
      const float of_a = is_inside ? a[row_of_a * columns + column_of_a] : 0;
      return of_a + b[row * exercise::kNarrow + column % exercise::kNarrow];
    };
  };
  std::vector<ladder::exercise::Alternative> alternatives = {
      {"each of them is the element of b alone, as if a were 0 there: does its box of a lie outside of the "
       "matrix, too far down or too far right? tma_load takes the column first",
       with_a_of(rows, columns)}};
  const auto with_b_of = [&](const std::function<int(int row)>& row_of_b) {
    return [&, row_of_b](size_t place) {
      const int row = row_of_b(int(place) / columns), column = int(place) % columns % exercise::kNarrow;
      return a[place] + (row < rows ? b[row * exercise::kNarrow + column] : 0);
    };
  };
  alternatives.push_back(
      {"each of them is the element of a alone, as if b were 0 there: does its box of b "
       "lie outside of b, too far right or too far down? tma_load takes the column first",
       with_b_of([=](int) { return rows; })});
  alternatives.push_back(
      {"each of them has the element of b of the first strip: at which row does the box of "
       "b begin?",
       with_b_of([](int row) { return row % exercise::kRows; })});
  for (const int away : {exercise::kBox, exercise::kColumns})
    for (const int sign : {1, -1}) {
      alternatives.push_back({fmt::format("each of them has the element of a {} rows {}: at which row "
                                          "does its box begin?",
                                          away, sign > 0 ? "below" : "above"),
                              with_a_of(sign * away, 0)});
      alternatives.push_back({fmt::format("each of them has the element of a {} columns further {}: "
                                          "at which column does its box begin?",
                                          away, sign > 0 ? "right" : "left"),
                              with_a_of(0, sign * away)});
    }
  c.expect_equal(expected, 0, alternatives);
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
