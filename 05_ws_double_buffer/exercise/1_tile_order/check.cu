/// @file
/// The check of exercise 05.1: every tile once, and waves that share what they read.
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
std::vector<ladder::TileIndex> tiles_of(const Order& order) {
  const int count = order.rows * order.columns;
  ladder::DeviceBuffer<float> rows(count), columns(count);
  exercise::launch_list_tiles(rows.data(), columns.data(), order.rows, order.columns, order.group);
  const auto row = ladder::download(rows.data(), count), column = ladder::download(columns.data(), count);
  std::vector<ladder::TileIndex> tiles;
  for (int i = 0; i < count; ++i) tiles.push_back({static_cast<int>(row[i]), static_cast<int>(column[i])});
  return tiles;
}

/// @throws NotYet unless every tile comes once
void expect_all_tiles(const Order& order) {
  std::map<std::pair<int, int>, int> index_of;
  const std::vector<ladder::TileIndex> tiles = tiles_of(order);
  for (int i = 0; i < static_cast<int>(tiles.size()); ++i) {
    const auto [row, column] = tiles[i];
    const std::string what =
        fmt::format("with {} x {} tiles in groups of {}, index {} is tile ({}, {}), which ", order.rows,
                    order.columns, order.group, i, row, column);
    expect(row >= 0 && row < order.rows && column >= 0 && column < order.columns, what + "is outside");
    const auto [before, is_new] = index_of.insert({{row, column}, i});
    expect(is_new, fmt::format("{}index {} is already", what, before->second));
  }
}

/// Rows and columns of tiles that the waves of `wave` tiles need, each counted once for a wave.
int strips_read(const Order& order, int wave) {
  const std::vector<ladder::TileIndex> tiles = tiles_of(order);
  int strips = 0;
  for (size_t first = 0; first < tiles.size(); first += wave) {
    std::set<int> rows, columns;
    for (size_t i = first; i < first + wave && i < tiles.size(); ++i) {
      rows.insert(tiles[i].row);
      columns.insert(tiles[i].column);
    }
    strips += static_cast<int>(rows.size() + columns.size());
  }
  return strips;
}

void check() {
  for (const Order& order : {Order{4, 4, 2}, Order{5, 3, 2}, Order{7, 9, 4}, Order{3, 8, 16}, Order{6, 5, 1}})
    expect_all_tiles(order);
  // Waves of 16 tiles: squares of 4 x 4, which need 4 rows and 4 columns.
  constexpr Order kSquare{16, 16, 4};
  constexpr int kWave = 16, kFewest = 16 * (4 + 4);
  const int strips = strips_read(kSquare, kWave);
  expect(strips <= kFewest,
         fmt::format("every tile is computed once, but waves of 16 tiles read {} strips of A and B, where "
                     "groups of 4 need {}: which way do you walk within a group?",
                     strips, kFewest));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
