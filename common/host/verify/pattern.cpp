/// @file
/// What wrong elements have in common.
#include "common/host/verify/pattern.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "common/host/problem/bf16.hpp"
#include "common/host/verify/output_matrix.hpp"

namespace ladder {
namespace {

/// All lessons' tiles are multiples of this, and what one warpgroup multiplies has as many rows.
constexpr int64_t kTile = 64;
constexpr int64_t kTileWidths[] = {16, 32, 64, 128, 256};         ///< of lessons, and of learners' kernels
constexpr size_t kMaxExamples = 64;                               ///< of the first tile
constexpr size_t kMaxExamplesOfOthers = 24, kExamplesOfARow = 4;  ///< of every other tile
constexpr size_t kExamplesFromAllOver = 40;                       ///< of each tile
constexpr size_t kMaxTilesWithExamples = 4096;

std::string range_text(const char* what, int64_t first, int64_t last) {
  return first == last ? fmt::format("{} {}", what, first) : fmt::format("{}s {}-{}", what, first, last);
}

/// Which residues of the wrong rows, or columns, are left out: "columns 32-63 of every 64". Empty if none.
/// @param is_wrong of each row or column from `first` to the last
/// @param must_be_all no row or column of these residues may be right
std::string describe_period(const char* what, const std::vector<bool>& is_wrong, int64_t first,
                            bool must_be_all = false) {
  for (const int64_t period : {2, 4, 8, 16, 32, 64, 128, 256}) {
    if (static_cast<int64_t>(is_wrong.size()) < period + std::min(period / 2, kTile)) return "";
    std::vector<bool> residues(static_cast<size_t>(period));
    for (size_t i = 0; i < is_wrong.size(); ++i)
      if (is_wrong[i]) residues[static_cast<size_t>((first + static_cast<int64_t>(i)) % period)] = true;
    const auto begin = std::find(residues.begin(), residues.end(), true);
    const auto end = std::find(begin, residues.end(), false);
    const bool is_one_range = std::find(end, residues.end(), true) == residues.end();
    if (!is_one_range || end - begin == period) continue;
    size_t of_residues = 0;
    for (size_t i = 0; i < is_wrong.size(); ++i)
      of_residues += residues[static_cast<size_t>((first + static_cast<int64_t>(i)) % period)];
    if (must_be_all && static_cast<size_t>(std::count(is_wrong.begin(), is_wrong.end(), true)) != of_residues)
      continue;
    const int64_t from = begin - residues.begin(), to = end - residues.begin() - 1;
    if (period == 2) return fmt::format("{} {}s", from ? "odd" : "even", what);
    return range_text(what, from, to) + fmt::format(" of every {}", period);
  }
  return "";
}

}  // namespace

void WrongElements::add(int64_t compared_row, int64_t column, double expected, __nv_bfloat16 got) {
  const int64_t n = reference_.shape.n;
  if (is_wrong_.empty()) {
    is_wrong_.resize(reference_.values.size());
    got_.resize(reference_.values.size());
    unwritten_rows_.resize(static_cast<size_t>(reference_.shape.m));
    unwritten_columns_.resize(static_cast<size_t>(n));
  }
  is_wrong_[static_cast<size_t>(compared_row * n + column)] = true;
  got_[static_cast<size_t>(compared_row * n + column)] = got;
  ++count_;
  if (bf16_bits(got) == kPoisonBits) {
    ++unwritten_count_;
    unwritten_rows_[static_cast<size_t>(reference_.rows[static_cast<size_t>(compared_row)])] = true;
    unwritten_columns_[static_cast<size_t>(column)] = true;
  }
  const double value = to_float(got);
  if (std::isnan(value)) ++nan_count_;
  if (!std::isfinite(value)) return;
  const int row = reference_.rows[static_cast<size_t>(compared_row)];
  const std::pair<int64_t, int64_t> tile{row / kTile, column / kTile};
  if (examples_.empty()) first_tile_ = tile;
  const bool is_first = tile == first_tile_;
  if (!is_first && examples_.size() == kMaxTilesWithExamples && !examples_.count(tile)) return;
  std::vector<WrongElement>& examples = examples_[tile];
  if (examples.size() == (is_first ? kMaxExamples : kMaxExamplesOfOthers)) return;
  const bool row_has_enough =
      examples.size() >= kExamplesOfARow && examples.rbegin()[kExamplesOfARow - 1].row == row;
  if (!is_first && row_has_enough) return;
  examples.push_back({row, static_cast<int>(column), expected, value});
}

bool WrongElements::is_unwritten(int64_t at) const {
  return !is_wrong_.empty() && is_wrong_[static_cast<size_t>(at)] &&
         bf16_bits(got_[static_cast<size_t>(at)]) == kPoisonBits;
}

float WrongElements::got(int64_t at, float right) const {
  return !is_wrong_.empty() && is_wrong_[static_cast<size_t>(at)] ? to_float(got_[static_cast<size_t>(at)])
                                                                  : right;
}

std::vector<std::vector<WrongElement>> WrongElements::examples() const {
  std::vector<std::vector<WrongElement>> all;
  for (const auto& [tile, examples] : examples_) {
    all.push_back(examples);
    const std::vector<WrongElement> others = spread_over(tile);
    all.back().insert(all.back().end(), others.begin(), others.end());
  }
  const auto first =
      examples_.find(first_tile_);  // it is the first of its row of tiles, which has rows before others
  if (first == examples_.end()) return all;
  const auto at = all.begin() + std::distance(examples_.begin(), first);
  std::rotate(all.begin(), at, at + 1);
  return all;
}

std::vector<WrongElement> WrongElements::spread_over(const std::pair<int64_t, int64_t>& tile) const {
  const auto& rows = reference_.rows;
  const int64_t n = reference_.shape.n, first = tile.second * kTile, end = std::min(first + kTile, n);
  const auto begin_row = std::lower_bound(rows.begin(), rows.end(), tile.first * kTile);
  std::vector<WrongElement> all, chosen;
  for (auto row = begin_row; row != rows.end() && *row < (tile.first + 1) * kTile; ++row)
    for (int64_t column = first; column < end; ++column) {
      const auto at = static_cast<size_t>((row - rows.begin()) * n + column);
      const double got = to_float(got_[at]);
      if (is_wrong_[at] && std::isfinite(got))
        all.push_back({*row, static_cast<int>(column), reference_.values[at], got});
    }
  const size_t count = std::min(all.size(), kExamplesFromAllOver);
  for (size_t i = 0; i < count; ++i) {  // one of each part, at another place in each
    const size_t part = i * all.size() / count, length = (i + 1) * all.size() / count - part;
    chosen.push_back(all[part + i * 37 % length]);
  }
  return chosen;
}

WrongElements::Range WrongElements::range_of(const std::vector<bool>& wrong) {
  const auto last = std::find(wrong.rbegin(), wrong.rend(), true);
  return {std::find(wrong.begin(), wrong.end(), true) - wrong.begin(), wrong.rend() - last - 1};
}

bool WrongElements::are_in_all_tiles() const {
  if (reference_.sampled()) return true;
  const int64_t m = reference_.shape.m, n = reference_.shape.n, across = (n + kTile - 1) / kTile;
  std::vector<bool> has_some(static_cast<size_t>((m + kTile - 1) / kTile * across));
  for (size_t i = 0; i < is_wrong_.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / n, column = static_cast<int64_t>(i) % n;
    if (is_wrong_[i]) has_some[static_cast<size_t>(row / kTile * across + column / kTile)] = true;
  }
  return std::find(has_some.begin(), has_some.end(), false) == has_some.end();
}

std::string WrongElements::describe_tiles(const Range& rows, const Range& columns) const {
  const int64_t n = reference_.shape.n;
  std::set<std::pair<int64_t, int64_t>> tiles;
  for (size_t i = 0; i < reference_.rows.size(); ++i)
    for (int64_t j = columns.first; j <= columns.last; ++j)
      if (is_wrong_[i * static_cast<size_t>(n) + static_cast<size_t>(j)])
        tiles.insert({reference_.rows[i] / kTile, j / kTile});
  const int64_t tile_rows = (reference_.shape.m + kTile - 1) / kTile, tile_columns = (n + kTile - 1) / kTile;
  const auto all = static_cast<size_t>(tile_rows * tile_columns);
  if (tiles.size() == all) return fmt::format("all {} tiles of 64 x 64 have some", all);
  const Range down{rows.first / kTile, rows.last / kTile}, right{columns.first / kTile, columns.last / kTile};
  const bool is_box =
      tiles.size() == static_cast<size_t>((down.last - down.first + 1) * (right.last - right.first + 1));
  const std::string places = is_box ? range_text("tile row", down.first, down.last) + ", " +
                                          range_text("tile column", right.first, right.last)
                                    : fmt::format("the first is tile row {}, tile column {}",
                                                  tiles.begin()->first, tiles.begin()->second);
  return fmt::format("{} of {} tiles of 64 x 64 have some: {}", tiles.size(), all, places);
}

std::string WrongElements::describe_unwritten_corner() const {
  const int64_t m = reference_.shape.m, n = reference_.shape.n;
  if (unwritten_count_ != count_ || reference_.sampled()) return "";
  const auto is_wrong = [&](int64_t row, int64_t column) {
    return is_wrong_[static_cast<size_t>(row * n + column)];
  };
  int64_t rows = 0, columns = 0;  // that were written
  while (rows < m && !is_wrong(rows, 0)) ++rows;
  while (columns < n && !is_wrong(0, columns)) ++columns;
  if (!rows || rows == m || !columns || columns == n || count_ != m * n - rows * columns) return "";
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      if (is_wrong(row, column)) return "";
  const auto is_last = [](int64_t first, int64_t size) {
    return std::any_of(std::begin(kTileWidths), std::end(kTileWidths),
                       [&](int64_t width) { return first % width == 0 && size - first < width; });
  };
  return fmt::format("no thread wrote the rows from {} on, nor the columns from {} on{}; ", rows, columns,
                     is_last(rows, m) && is_last(columns, n)
                         ? ": does the grid have blocks for the last, partly filled tiles?"
                         : "");
}

std::string WrongElements::describe_unwritten_edge(const Range& rows, const Range& columns) const {
  const int64_t m = reference_.shape.m, n = reference_.shape.n;
  if (const std::string text = describe_unwritten_corner(); !text.empty()) return text;
  const bool is_whole = unwritten_count_ == count_ && !reference_.sampled() &&
                        count_ == (rows.last - rows.first + 1) * (columns.last - columns.first + 1);
  if (!is_whole) return "";
  // A question only where its mistake leaves out just these.
  const auto ends_early = [](const char* what, int64_t first, int64_t size, int64_t other_size) {
    bool is_last = false, is_exchanged = false;
    for (const int64_t width : kTileWidths) {
      is_last = is_last || (first % width == 0 && size - first < width);
      for (const int64_t other_width : {width, width == 256 ? 128 : width == 128 ? 256 : width}) {
        const bool are_as_many = first == (other_size + other_width - 1) / other_width * width;
        is_exchanged = is_exchanged || (width >= kTile && are_as_many && size - first != width);
      }
    }
    constexpr const char* kExchanged =
        "those before are as many tiles as lie along the other side: are rows and columns of tiles exchanged";
    const std::string question =
        is_last ? std::string(": does the grid have a block for the last, partly filled tile") +
                      (is_exchanged ? std::string("? Or, as ") + kExchanged + "?" : "?")
        : is_exchanged ? fmt::format(": {}?", kExchanged)
                       : "";
    return fmt::format("no thread wrote the {} from {} on{}; ", what, first, question);
  };
  if (rows.first == 0 && rows.last == m - 1 && columns.first > 0 && columns.last == n - 1)
    return ends_early("columns", columns.first, n, m);
  if (columns.first == 0 && columns.last == n - 1 && rows.first > 0 && rows.last == m - 1)
    return ends_early("rows", rows.first, m, n);
  return "";
}

std::string WrongElements::ask_for_tiles() const {
  const int64_t m = reference_.shape.m, n = reference_.shape.n;
  const int64_t smaller = std::min(m, n);
  if (reference_.sampled() || unwritten_count_ != m * n) return "";
  // Another shape asks for whole tiles of some size, and why nobody wrote them is not known.
  if (smaller >= *std::rbegin(kTileWidths) || smaller % kTile == 0) return "";
  return fmt::format(
      "; no thread wrote any element: C has {} {}, which may be less than the tile, or the pair of tiles, of "
      "a kernel: is the number of tiles rounded down, to 0? It must be rounded up",
      smaller, m == smaller ? "rows" : "columns");
}

std::string WrongElements::describe_unwritten_part() const {
  const auto count = [](const std::vector<bool>& some) { return std::count(some.begin(), some.end(), true); };
  const bool is_whole = count(unwritten_rows_) * count(unwritten_columns_) == unwritten_count_;
  if (unwritten_count_ == count_ || !is_whole || reference_.sampled()) return "";
  std::string text;
  const auto add = [&](const char* what, const std::vector<bool>& some) {
    const int64_t number = count(some);
    if (number == static_cast<int64_t>(some.size())) return;
    const Range range = range_of(some);
    std::string which = range_text(what, range.first, range.last);
    if (number != range.last - range.first + 1)
      which = describe_period(what, {some.begin() + range.first, some.begin() + range.last + 1}, range.first,
                              /*must_be_all=*/true);
    if (!which.empty()) text += (text.empty() ? ": those of " : ", of ") + which;
  };
  add("row", unwritten_rows_);
  add("column", unwritten_columns_);
  return text;
}

std::string WrongElements::describe() const {
  if (!count_) return "";
  const int64_t n = reference_.shape.n;
  std::vector<bool> wrong_rows(static_cast<size_t>(reference_.shape.m)),
      wrong_columns(static_cast<size_t>(n));
  for (size_t i = 0; i < is_wrong_.size(); ++i) {
    if (!is_wrong_[i]) continue;
    wrong_rows[static_cast<size_t>(reference_.rows[i / static_cast<size_t>(n)])] = true;
    wrong_columns[i % static_cast<size_t>(n)] = true;
  }
  const Range rows = range_of(wrong_rows), columns = range_of(wrong_columns);
  std::string text = describe_unwritten_edge(rows, columns) + describe_tiles(rows, columns) + "; " +
                     range_text("row", rows.first, rows.last) + ", " +
                     range_text("column", columns.first, columns.last);
  const auto add_period = [&](const char* what, const std::vector<bool>& wrong, const Range& range) {
    const std::string period =
        describe_period(what, {wrong.begin() + range.first, wrong.begin() + range.last + 1}, range.first);
    if (!period.empty()) text += ", and only " + period;
  };
  // The rows that are compared have a pattern of their own.
  if (!reference_.sampled()) add_period("row", wrong_rows, rows);
  add_period("column", wrong_columns, columns);
  if (unwritten_count_)
    text += fmt::format("; {} were never written, or are copies of what was not{}", unwritten_count_,
                        describe_unwritten_part()) +
            ask_for_tiles();
  if (nan_sum_count()) text += fmt::format("; {} were written, and are nan", nan_sum_count());
  return text;
}

}  // namespace ladder
