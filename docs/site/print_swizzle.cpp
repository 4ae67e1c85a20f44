/// @file
/// Prints where the swizzled tile keeps its chunks, as JSON for make_figures.py: for each of the first eight
/// rows the place of each chunk within the row, in the order of its columns, as the lessons' own header lays
/// it out.
#include <cstdio>

#include "common/device/swizzled_tile.cuh"

int main() {
  using Tile = ladder::SwizzledTile<8, 64>;
  static Tile tile;
  std::printf("{\"chunk_bytes\": %d, \"places\": [",
              static_cast<int>(Tile::kChunk * sizeof(tile.panels[0][0][0])));
  for (int row = 0; row < Tile::kRows; ++row) {
    std::printf("%s[", row ? ", " : "");
    for (int chunk = 0; chunk < Tile::kChunksPerRow; ++chunk) {
      const auto elements = tile.chunk(row, chunk * Tile::kChunk) - tile.panels[0][row];
      std::printf("%s%d", chunk ? ", " : "", static_cast<int>(elements / Tile::kChunk));
    }
    std::printf("]");
  }
  std::printf("]}\n");
}
