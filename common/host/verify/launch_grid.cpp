/// @file
/// Compares the grid of a launch with the tiles that its blocks have written.
#include "common/host/verify/launch_grid.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ladder {
namespace {

/// What a block has written: the smallest box around it, and how many elements.
struct Box {
  int first_row, first_column, last_row, last_column;
  int64_t count = 0;
};

struct Tiling {
  std::map<BlockIndex, Box> boxes;
  int rows = 1, columns = 1;  ///< of a tile
  int down = 0, across = 0;   ///< tiles of C
};

int tiles_over(int size, int tile) { return (size + tile - 1) / tile; }

/// Nothing unless each block wrote one tile, and all tiles are alike.
std::optional<Tiling> find_tiling(const Shape& shape, const WriterOf& writer_of) {
  Tiling tiling;
  for (int row = 0; row < shape.m; ++row)
    for (int column = 0; column < shape.n; ++column) {
      const std::optional<BlockIndex> writer = writer_of(row, column);
      if (!writer) continue;
      Box& box = tiling.boxes.try_emplace(*writer, Box{row, column, row, column}).first->second;
      box.first_column = std::min(box.first_column, column);
      box.last_row = std::max(box.last_row, row);
      box.last_column = std::max(box.last_column, column);
      ++box.count;
    }
  if (tiling.boxes.empty()) return {};
  for (const auto& [block, box] : tiling.boxes) {
    tiling.rows = std::max(tiling.rows, box.last_row - box.first_row + 1);
    tiling.columns = std::max(tiling.columns, box.last_column - box.first_column + 1);
  }
  tiling.down = tiles_over(shape.m, tiling.rows), tiling.across = tiles_over(shape.n, tiling.columns);
  for (const auto& [block, box] : tiling.boxes) {
    const int row_end = std::min(box.first_row + tiling.rows, shape.m),
              column_end = std::min(box.first_column + tiling.columns, shape.n);
    const int64_t area = int64_t{row_end - box.first_row} * (column_end - box.first_column);
    if (box.first_row % tiling.rows || box.first_column % tiling.columns || box.count != area) return {};
  }
  return tiling;
}

/// Do the blocks' tiles have rows and columns without a gap? Else a block has left a part of its own out.
bool has_gaps(const Tiling& tiling) {
  std::set<int> rows, columns;
  for (const auto& [block, box] : tiling.boxes) {
    rows.insert(box.first_row / tiling.rows);
    columns.insert(box.first_column / tiling.columns);
  }
  return *rows.rbegin() >= static_cast<int>(rows.size()) ||
         *columns.rbegin() >= static_cast<int>(columns.size());
}

/// Does each block with a tile have it at this place of the grid?
bool is_placed(const Tiling& tiling, bool x_is_row) {
  return std::all_of(tiling.boxes.begin(), tiling.boxes.end(), [&](const auto& entry) {
    const auto& [block, box] = entry;
    const auto row = static_cast<unsigned>(box.first_row / tiling.rows),
               column = static_cast<unsigned>(box.first_column / tiling.columns);
    return x_is_row ? block.x == row && block.y == column : block.x == column && block.y == row;
  });
}

std::string range(const char* what, int first, int end) {
  return first + 1 == end ? fmt::format("{} {}", what, first)
                          : fmt::format("{}s {} to {}", what, first, end - 1);
}

/// "no block wrote tile columns 2 to 4 (C has 2 rows and 5 columns of tiles as blocks wrote, of
/// 32 x 32)": that need not be all of a tile.
std::string missing_tiles(const Tiling& tiling, const Shape& shape) {
  std::set<std::pair<int, int>> there;
  for (const auto& [block, box] : tiling.boxes)
    there.insert({box.first_row / tiling.rows, box.first_column / tiling.columns});
  int down = 0, across = 0;
  while (there.count({down, 0})) ++down;
  while (there.count({0, across})) ++across;
  std::string which;
  if (there.size() == size_t(down) * across) {
    if (down < tiling.down) which = range("tile row", down, tiling.down);
    if (across < tiling.across)
      which += (which.empty() ? "" : ", nor ") + range("tile column", across, tiling.across);
  } else {
    const size_t missing = size_t(tiling.down) * tiling.across - there.size();
    for (int row = 0; row < tiling.down && which.empty(); ++row)
      for (int column = 0; column < tiling.across && which.empty(); ++column)
        if (!there.count({row, column}))
          which = missing == 1 ? fmt::format("the tile in tile row {}, tile column {}", row, column)
                               : fmt::format("{} tiles, the first in tile row {}, tile column {}", missing,
                                             row, column);
  }
  // Where C ends within the first tile, how far the tile goes on is not known.
  const auto some = [](int count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  const std::string size = tiling.rows == shape.m      ? some(tiling.columns, "column")
                           : tiling.columns == shape.n ? some(tiling.rows, "row")
                                                       : fmt::format("{} x {}", tiling.rows, tiling.columns);
  return fmt::format("no block wrote {} (C has {} and {} of tiles as blocks wrote, of {})", which,
                     some(tiling.down, "row"), some(tiling.across, "column"), size);
}

}  // namespace

std::string explain_by_grid(const WrongElements& wrong, const Shape& shape, const LaunchedGrid& grid,
                            const WriterOf& writer_of) {
  if (!wrong.are_all_unwritten() || !grid.x || grid.z != 1) return "";
  const std::optional<Tiling> found = find_tiling(shape, writer_of);
  if (!found) return "";
  const Tiling& tiling = *found;
  // A tile that is as large as C along one side may be larger.
  if (tiling.rows == shape.m && tiling.columns == shape.n) return "";
  if (has_gaps(tiling)) return "";
  const int64_t all = int64_t{tiling.down} * tiling.across, blocks = int64_t{grid.x} * grid.y;
  const std::string launch = "the launch" + (grid.place.empty() ? "" : " at " + grid.place);
  const auto down = static_cast<unsigned>(tiling.down), across = static_cast<unsigned>(tiling.across);
  const auto is_rounded_down = [](unsigned has, int size, int tile) { return has == unsigned(size / tile); };
  if (grid.y == 1 && tiling.down > 1 && blocks < all && tiling.boxes.size() == size_t(blocks)) {
    const int64_t rows = shape.m / tiling.rows, columns = shape.n / tiling.columns;
    const bool rounds =
        blocks == rows * tiling.across || blocks == tiling.down * columns || blocks == rows * columns;
    return missing_tiles(tiling, shape) +
           fmt::format(": {} gives {} blocks, and where each computes one tile, C needs {}{}", launch, blocks,
                       all, rounds ? ": is a number of tiles rounded down? It must be rounded up" : "");
  }
  const bool is_normal = is_placed(tiling, /*x_is_row=*/false),
             is_exchanged = is_placed(tiling, /*x_is_row=*/true);
  if (is_normal && is_exchanged && tiling.boxes.size() == 1 && (tiling.down == 1 || tiling.across == 1)) {
    const bool is_enough = blocks >= all;
    return missing_tiles(tiling, shape) +
           fmt::format(": {} gives a grid of {} x {} blocks, {}", launch, grid.x, grid.y,
                       is_enough ? "and only the first of them wrote a tile of C: are "
                                   "x and y exchanged, here or in the kernel?"
                                 : fmt::format("and where each computes one tile, C needs {}", all));
  }
  if (is_normal == is_exchanged) return "";
  const unsigned needs_x = is_normal ? across : down, needs_y = is_normal ? down : across;
  if (grid.x >= needs_x && grid.y >= needs_y) return "";
  // The blocks that are there have all done their part.
  if (tiling.boxes.size() != size_t(std::min(grid.x, needs_x)) * std::min(grid.y, needs_y)) return "";
  const bool lacks_x = grid.x < needs_x, lacks_y = grid.y < needs_y;
  const int size_x = is_normal ? shape.n : shape.m, size_y = is_normal ? shape.m : shape.n;
  const int tile_x = is_normal ? tiling.columns : tiling.rows,
            tile_y = is_normal ? tiling.rows : tiling.columns;
  const bool rounds = (!lacks_x || is_rounded_down(grid.x, size_x, tile_x)) &&
                      (!lacks_y || is_rounded_down(grid.y, size_y, tile_y));
  const bool are_turned = grid.x == needs_y && grid.y == needs_x;
  return missing_tiles(tiling, shape) + ": " + launch +
         fmt::format(" gives a grid of {} x {} blocks, and where blockIdx.x is the tile {}, C needs {} x {}",
                     grid.x, grid.y, is_normal ? "column" : "row", needs_x, needs_y) +
         (are_turned ? ": are x and y exchanged?"
          : rounds   ? ": is a number of tiles rounded down? It must be rounded up"
                     : "");
}

}  // namespace ladder
