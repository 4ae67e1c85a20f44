/// @file
/// The check of exercise 05.5: every tile once, and waves that share their strips.
#include EXERCISE

#include <fmt/core.h>
#include <map>
#include <set>

#include "common/exercise/check.hpp"

namespace {

using ladder::exercise::expect;

struct Order {
  int rows, columns, group;
};

/// The learner's order of the tiles.
std::vector<exercise::Tile> tiles_of(const Order& order) {
  const int count = order.rows * order.columns;
  ladder::DeviceBuffer<float> rows(count), columns(count);
  exercise::launch_list_tiles(rows.data(), columns.data(), order.rows, order.columns, order.group);
  const auto row = ladder::download(rows.data(), count), column = ladder::download(columns.data(), count);
  std::vector<exercise::Tile> tiles;
  for (int i = 0; i < count; ++i) tiles.push_back({static_cast<int>(row[i]), static_cast<int>(column[i])});
  return tiles;
}

/// @throws NotYet unless every tile occurs once
void expect_all_tiles(const Order& order) {
  std::map<std::pair<int, int>, int> index_of;
  const std::vector<exercise::Tile> tiles = tiles_of(order);
  for (int i = 0; i < static_cast<int>(tiles.size()); ++i) {
    const auto [row, column] = tiles[i];
    const std::string what =
        fmt::format("with {} x {} tiles in groups of {}, index {} is tile ({}, {}), which ", order.rows,
                    order.columns, order.group, i, row, column);
    expect(row >= 0 && row < order.rows && column >= 0 && column < order.columns, what + "is outside");
    const auto [before, is_new] = index_of.insert({{row, column}, i});
    expect(is_new, fmt::format("{}is also the tile of index {}", what, before->second));
  }
}

/// Strips of A and B that L2 loads from memory: each wave of `wave` tiles loads the strips that the wave
/// before has not left in L2. L2 has room for `room` strips; a wave that needs more leaves none.
int strips_loaded(const Order& order, int wave, size_t room) {
  const std::vector<exercise::Tile> tiles = tiles_of(order);
  std::set<int> rows_in_l2, columns_in_l2;
  int strips = 0;
  for (size_t first = 0; first < tiles.size(); first += wave) {
    std::set<int> rows, columns;
    for (size_t i = first; i < first + wave && i < tiles.size(); ++i) {
      rows.insert(tiles[i].row);
      columns.insert(tiles[i].column);
    }
    for (const int row : rows) strips += !rows_in_l2.contains(row);
    for (const int column : columns) strips += !columns_in_l2.contains(column);
    const bool fits = rows.size() + columns.size() <= room;
    rows_in_l2 = fits ? rows : std::set<int>{};
    columns_in_l2 = fits ? columns : std::set<int>{};
  }
  return strips;
}

void check() {
  for (const Order& order : {Order{4, 4, 2}, Order{5, 3, 2}, Order{7, 9, 4}, Order{3, 8, 16}, Order{6, 5, 1}})
    expect_all_tiles(order);
  // Waves of 16 tiles are squares of 4 x 4. Only the first needs new strips of both A and B.
  constexpr Order kSquare{16, 16, 4};
  constexpr int kWave = 16, kWaves = 16, kRoom = 8, kMin = 4 + 4 * kWaves;
  const int strips = strips_loaded(kSquare, kWave, kRoom);
  expect(
      strips <= kMin,
      fmt::format(
          "every tile is computed once, but waves of {} tiles need {} strips of A and B that are not in L2, "
          "where {} are enough: which waves need new strips of both?",
          kWave, strips, kMin));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
