/// @file
/// Compares the tiles that blocks load with those that they store.
#include "common/host/verify/tile_walks.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "common/host/problem/bf16.hpp"

namespace ladder {
namespace {

using MovedBox = WorkOfKernels::MovedBox;

/// Rows of A, or columns of B, or tiles of either size.
struct Span {
  int first = 0, end = 0;
  int size() const { return end - first; }
};
using Walk = std::vector<Span>;
using TilePlace = std::pair<int, int>;  ///< row and column, in tiles

/// One for each thread; of boxes of one operand. A thread begins another tile where k goes back.
std::vector<Walk> walks_of_loads(const std::vector<MovedBox>& boxes, bool of_a) {
  struct State {
    Walk walk;
    int k = 0;
  };
  std::map<unsigned, State> threads;
  for (const MovedBox& box : boxes) {
    State& state = threads[box.thread];
    const int first = of_a ? box.row : box.column, k = of_a ? box.column : box.row;
    const Span span{first, first + (of_a ? box.rows : box.columns)};
    if (state.walk.empty() || k < state.k) state.walk.push_back(span);
    Span& last = state.walk.back();
    last = {std::min(last.first, span.first), std::max(last.end, span.end)};
    state.k = k;
  }
  std::vector<Walk> walks;
  for (auto& [thread, state] : threads) walks.push_back(std::move(state.walk));
  return walks;
}

/// Several threads bring parts of each tile. Nothing unless all make as many tiles, of one size.
std::optional<Walk> join(const std::vector<Walk>& walks) {
  if (walks.empty()) return {};
  Walk joined = walks.front();
  for (const Walk& walk : walks) {
    if (walk.size() != joined.size()) return {};
    for (size_t i = 0; i < walk.size(); ++i)
      joined[i] = {std::min(joined[i].first, walk[i].first), std::max(joined[i].end, walk[i].end)};
  }
  const int size = joined.front().size();
  const auto is_tile = [&](const Span& one) { return one.size() == size && one.first % size == 0; };
  if (!std::all_of(joined.begin(), joined.end(), is_tile)) return {};
  return joined;
}

/// The tiles of a block, in the order of those who store; each thread may store a part of each tile. Nothing
/// unless all go the same way.
std::optional<std::vector<TilePlace>> walk_of_stores(const std::vector<MovedBox>& boxes, int height,
                                                     int width) {
  std::map<unsigned, std::vector<TilePlace>> threads;
  for (const MovedBox& box : boxes) {
    const TilePlace at{box.row / height, box.column / width};
    const TilePlace end{(box.row + box.rows - 1) / height, (box.column + box.columns - 1) / width};
    if (at != end || box.row < 0 || box.column < 0) return {};
    std::vector<TilePlace>& walk = threads[box.thread];
    if (walk.empty() || walk.back() != at) walk.push_back(at);
  }
  const std::vector<TilePlace>& first = threads.begin()->second;
  if (!std::all_of(threads.begin(), threads.end(), [&](const auto& one) { return one.second == first; }))
    return {};
  return first;
}

struct BoxesOfBlock {
  std::vector<MovedBox> a, b, c;
};

struct Pair {
  unsigned block;
  size_t number;
  TilePlace loaded, stored;
};

struct Pairs {
  int height = 0, width = 0;  ///< of a tile
  std::vector<Pair> all;
};

/// What each block has loaded for its first tile, its second, ..., and stored as such. Nothing where that
/// cannot be told.
std::optional<Pairs> pair_tiles(const std::map<unsigned, BoxesOfBlock>& blocks) {
  Pairs pairs;
  for (const auto& [number, boxes] : blocks) {
    if (boxes.c.empty()) continue;  // its sums go to another block
    const std::optional<Walk> rows = join(walks_of_loads(boxes.a, /*of_a=*/true)),
                              columns = join(walks_of_loads(boxes.b, /*of_a=*/false));
    if (!rows || !columns || rows->size() != columns->size()) return {};
    const int height = rows->front().size(), width = columns->front().size();
    if (!pairs.all.empty() && (pairs.height != height || pairs.width != width)) return {};
    pairs.height = height, pairs.width = width;
    const auto stored = walk_of_stores(boxes.c, height, width);
    if (!stored || stored->size() != rows->size()) return {};
    for (size_t i = 0; i < stored->size(); ++i)
      pairs.all.push_back(
          {number, i, {(*rows)[i].first / height, (*columns)[i].first / width}, (*stored)[i]});
  }
  return pairs;
}

/// Does every element of C hold what belongs to the tile that was loaded for it?
bool explains_all(const Pairs& pairs, const WrongElements& wrong, const Reference& reference) {
  const int64_t m = reference.shape.m, n = reference.shape.n;
  const auto right_at = [&](int64_t row, int64_t column) {
    return row < m && column < n
               ? to_float(
                     to_bf16(static_cast<float>(reference.values[static_cast<size_t>(row * n + column)])))
               : 0.0F;
  };
  std::multimap<TilePlace, TilePlace> loaded_for;  // a tile may be stored twice
  for (const Pair& pair : pairs.all) loaded_for.insert({pair.stored, pair.loaded});
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column) {
      const float got = wrong.got(row * n + column, right_at(row, column));
      if (std::isnan(got)) continue;  // no tile was stored here
      const auto [begin, end] = loaded_for.equal_range(
          {static_cast<int>(row / pairs.height), static_cast<int>(column / pairs.width)});
      if (std::none_of(begin, end, [&](const auto& entry) {
            return got == right_at(entry.second.first * int64_t{pairs.height} + row % pairs.height,
                                   entry.second.second * int64_t{pairs.width} + column % pairs.width);
          }))
        return false;
    }
  return true;
}

std::string ordinal(size_t number) {
  const char* const ends[] = {"th", "st", "nd", "rd"};
  const size_t last = number % 10;
  return fmt::format("{}{}", number, last > 3 || number / 10 % 10 == 1 ? "th" : ends[last]);
}

std::map<unsigned, BoxesOfBlock> boxes_of_blocks(const std::vector<MovedBox>& boxes,
                                                 const Matrices& matrices) {
  std::map<unsigned, BoxesOfBlock> blocks;
  for (const MovedBox& box : boxes) {
    BoxesOfBlock& block = blocks[box.block];
    if (box.is_load && box.matrix == matrices.a) block.a.push_back(box);
    if (box.is_load && box.matrix == matrices.b) block.b.push_back(box);
    if (!box.is_load && box.matrix == matrices.c) block.c.push_back(box);
  }
  return blocks;
}

/// What a block multiplies first.
struct FirstTile {
  unsigned block;
  Span rows, columns;
};

/// How many spans there are; 0 if they leave a gap.
size_t count_side_by_side(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& one, const Span& other) { return one.first < other.first; });
  size_t count = 1;
  for (size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].first > spans[i - 1].end) return 0;
    count += spans[i].first != spans[i - 1].first;
  }
  return count;
}

bool make_up_a_box(const std::vector<FirstTile>& tiles) {
  std::vector<Span> rows, columns;
  for (const FirstTile& tile : tiles) rows.push_back(tile.rows), columns.push_back(tile.columns);
  const size_t down = count_side_by_side(rows), across = count_side_by_side(columns);
  return down && across && down * across <= tiles.size();
}

}  // namespace

std::string explain_by_tiles_of_cluster(const std::vector<MovedBox>& boxes, unsigned blocks_of_cluster,
                                        const Matrices& matrices) {
  if (blocks_of_cluster < 2) return "";
  std::map<unsigned, std::vector<FirstTile>> clusters;
  for (const auto& [number, boxes_of_block] : boxes_of_blocks(boxes, matrices)) {
    const std::optional<Walk> rows = join(walks_of_loads(boxes_of_block.a, /*of_a=*/true)),
                              columns = join(walks_of_loads(boxes_of_block.b, /*of_a=*/false));
    if (!rows || !columns) return "";
    clusters[number / blocks_of_cluster].push_back({number, rows->front(), columns->front()});
  }
  for (const auto& [number, tiles] : clusters) {
    if (tiles.size() != blocks_of_cluster || make_up_a_box(tiles)) continue;
    const FirstTile& first = tiles.front();
    const auto distance = [&](const FirstTile& tile) {
      return std::abs(tile.rows.first - first.rows.first) +
             std::abs(tile.columns.first - first.columns.first);
    };
    const FirstTile& other = *std::max_element(
        tiles.begin(), tiles.end(),
        [&](const FirstTile& one, const FirstTile& two) { return distance(one) < distance(two); });
    const auto name = [](const FirstTile& tile) {
      return fmt::format("rows {} to {} of A and columns {} to {} of B", tile.rows.first, tile.rows.end - 1,
                         tile.columns.first, tile.columns.end - 1);
    };
    return fmt::format(
        "for its first tile block {} loads {}, and block {} of the same cluster {}: should they take tiles "
        "side "
        "by side? Then the walk must count clusters, not blocks",
        first.block, name(first), other.block, name(other));
  }
  return "";
}

std::string explain_by_walks(const WrongElements& wrong, const Reference& reference,
                             const std::vector<MovedBox>& boxes, const Matrices& matrices) {
  if (reference.sampled()) return "";
  const std::optional<Pairs> pairs = pair_tiles(boxes_of_blocks(boxes, matrices));
  if (!pairs) return "";
  const auto differs = [](const Pair& pair) { return pair.loaded != pair.stored; };
  const auto first = std::find_if(pairs->all.begin(), pairs->all.end(), differs);
  if (first == pairs->all.end() || !explains_all(*pairs, wrong, reference)) return "";
  const std::string number = ordinal(first->number + 1);
  return fmt::format(
      "block {} loaded tile row {}, tile column {} (of {} x {}) as its {} tile, and stored tile row {}, tile "
      "column {} as its {} ({} of {} tiles differ so): do those who load and those who store walk over the "
      "same tiles, in the same order?",
      first->block, first->loaded.first, first->loaded.second, pairs->height, pairs->width, number,
      first->stored.first, first->stored.second, number,
      std::count_if(pairs->all.begin(), pairs->all.end(), differs), pairs->all.size());
}

}  // namespace ladder
