/// @file
/// The check of exercise 04.7: shapes for which the starter is right or wrong, by every schedule; and every
/// tile is loaded once.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/evidence.hpp"

namespace {

/// What y would be if the box of each tile began at the row that is its column, and the other way round; what
/// lies outside of a is zero.
std::vector<float> sums_of_exchanged_boxes(const std::vector<float>& a, int strips, int tiles) {
  std::vector<float> y(strips * exercise::kTile);
  for (int strip = 0; strip < strips; ++strip)
    for (int tile = 0; tile < std::min(tiles, strips); ++tile)
      for (int i = 0; i < exercise::kTile && strip < tiles; ++i)
        for (int j = 0; j < exercise::kTile; ++j)
          y[strip * exercise::kTile + i] +=
              a[(tile * exercise::kTile + i) * tiles * exercise::kTile + strip * exercise::kTile + j];
  return y;
}

/// @throws NotYet unless y is right
void add_rows(int strips, int tiles) {
  const int rows = strips * exercise::kTile, columns = tiles * exercise::kTile;
  const auto a = ladder::exercise::small_integers<float>(rows * columns, 1);
  std::vector<float> expected(rows);
  for (int i = 0; i < rows * columns; ++i) expected[i / columns] += a[i];
  const ladder::DeviceBuffer<__nv_bfloat16> a_device(std::vector<__nv_bfloat16>(a.begin(), a.end()));
  ladder::exercise::Output<float> y("y", rows);
  exercise::launch_add_rows(a_device.data(), y.data(), strips, tiles);
  ladder::exercise::expect_equal_or_explain<decltype(y), float>(
      y, expected, [&](const std::vector<float>& got) -> std::string {
        if (got != sums_of_exchanged_boxes(a, strips, tiles)) return "";
        return "y holds the sums of boxes whose row and column are exchanged, and zeros where such a box "
               "lies outside of a: ptx::tma_load takes the column first";
      });
}

void check() {
  for (const auto& [strips, tiles] : {std::pair{1, 3}, {3, 4}, {2, 3}, {4, 1}, {5, 2}})
    ladder::exercise::in_case(
        fmt::format("strips = {}, tiles = {}", strips, tiles), [strips = strips, tiles = tiles] {
          ladder::exercise::on_every_schedule([strips, tiles] { add_rows(strips, tiles); });
        });
  constexpr int kStrips = 4, kTiles = 3;
  const auto counters = ladder::exercise::counted([] { add_rows(kStrips, kTiles); });
  if (!counters) return;
  ladder::exercise::expect(counters->async_copies == kStrips * kTiles,
                           fmt::format("y is right, but {} tiles were loaded, and a has {}",
                                       counters->async_copies, kStrips * kTiles));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
