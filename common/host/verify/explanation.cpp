/// @file
/// Tries mistakes one after the other: each must explain every example.
#include "common/host/verify/explanation.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "common/host/problem/bf16.hpp"

namespace ladder {
namespace {

/// All lessons' tiles are multiples of this along M and N, and most are as wide along K.
constexpr int kTileWidth = 64;
constexpr int kChunk = 8;  ///< a copy's elements along K: what is missing is a multiple of it
constexpr int kMaxTiles = 512, kMaxPairs = 64 * 64;  ///< that are tried
constexpr size_t kMinExamples = 12;
constexpr int kMaxAhead = 8;    ///< slots of a ring
constexpr int kMostAway = 512;  ///< rows or columns

/// The products of an example.
struct Products {
  std::vector<double> sums;  ///< of the first i chunks along K
  std::vector<double>
      of_tiles;  ///< [tile of A, tile of B]: one tile's columns of A times another's rows of B
};

constexpr int64_t kPanelRow = 128, kStepOfProduct = 16;

/// Where a wgmma's descriptors find elements of an operand that lies in panels of 128 bytes, in bytes.
struct Strides {
  int64_t step;  ///< from the 16 of k that one wgmma takes to the next 16
  int64_t eight = 8 * kPanelRow;
  int64_t panel = kTileWidth * kPanelRow;  ///< of B
};
constexpr Strides kRightOfA{kStepOfProduct * 2}, kRightOfB{kStepOfProduct * kPanelRow};

class Explainer {
 public:
  Explainer(std::vector<WrongElement> examples, const WrongElements& wrong, const Reference& reference,
            bool is_exact, const MadeBy& made_by, const std::vector<__nv_bfloat16>& a,
            const std::vector<__nv_bfloat16>& b)
      : examples_(std::move(examples)),
        wrong_(wrong),
        reference_(reference),
        shape_(reference.shape),
        is_exact_(is_exact),
        may_be_staged_(made_by.may_be_staged),
        zero_copies_(made_by.zero_copies),
        multiplied_by_(made_by.multiplied_by),
        offsets_of_a_(made_by.offsets_of_a),
        offsets_of_b_(made_by.offsets_of_b),
        a_(a),
        b_(b) {
    tiles_ = (shape_.k + kTileWidth - 1) / kTileWidth;
    chunks_ = (shape_.k + kChunk - 1) / kChunk;
    for (const WrongElement& example : examples_) products_.push_back(multiply(example));
  }

  /// The first that explains all examples, from the plainest on; empty if none does.
  std::string explain() {
    std::string text = explain_by_range();
    if (text.empty()) text = explain_by_one_tile();
    if (text.empty()) text = explain_by_stale_operand();
    if (text.empty()) text = explain_by_shift_along_k();
    if (text.empty()) text = explain_by_walk();
    if (text.empty()) text = explain_by_every_other_tile();
    if (text.empty()) text = explain_by_counts_of_tiles();
    if (text.empty()) text = explain_by_step_along_k();
    if (text.empty()) text = explain_by_repeated_part();
    if (text.empty()) text = explain_by_thread_along_k();
    if (text.empty()) text = explain_by_pitch();
    if (text.empty()) text = explain_by_transposition();
    if (text.empty()) text = explain_by_exchanged_coordinates();
    if (text.empty()) text = explain_by_swizzle();
    if (text.empty()) text = explain_by_descriptor();
    if (text.empty()) text = explain_by_shift();
    if (text.empty()) text = explain_by_added_tile();
    if (text.empty()) text = explain_by_sums_of_other_tile();
    if (text.empty()) text = explain_by_other_tile_of_c();
    if (text.empty()) text = explain_by_transposed_squares();
    if (text.empty()) text = explain_by_place_in_tile();
    return text;
  }

  /// Several sizes may explain the own examples, as of steps that leave the matrix. The text with the one
  /// that explains these, too: from now on that counts. Empty if there is none.
  std::string choose(const std::vector<std::vector<WrongElement>>& tiles) {
    for (const Candidate& candidate : candidates_) {
      remake_ = candidate.remake;
      if (std::all_of(tiles.begin(), tiles.end(), [&](const auto& tile) { return also_explains(tile); }))
        return candidate.text;
    }
    if (!candidates_.empty()) remake_ = candidates_.front().remake;
    return "";
  }

  /// C holds what belongs so many columns to the left, in the same rows; 0 or less where it does not.
  int columns_left() const { return columns_left_; }

  /// From which slot on must each K tile have come out of a ring of so many slots that hold the first K
  /// tiles? -1 if no slot explains the examples.
  int first_slot_of(int slots) const {
    for (int first = 0; first < slots; ++first)
      if (is_explained_by([&](size_t e) {
            double change = 0;
            for (int i = 0; i < tiles_; ++i) change += of_tile(e, (first + i) % slots) - of_tile(e, i);
            return change;
          }))
        return first;
    return -1;
  }
  int tiles() const { return tiles_; }

  /// Would what explained the own examples make these, too? It may look plainer there: where the other
  /// operand's elements lie outside, products are missing.
  bool also_explains(const std::vector<WrongElement>& examples) const {
    return remake_ && std::all_of(examples.begin(), examples.end(),
                                  [&](const WrongElement& e) { return is_got(e, remake_(e)); });
  }

 private:
  using Remake = std::function<double(const WrongElement&)>;
  struct Candidate {
    std::string text;
    Remake remake;
  };
  /// Is every example what `remake` makes? It is kept for the examples of other tiles: it must hold copies.
  bool is_made_by(const Remake& remake) {
    if (!std::all_of(examples_.begin(), examples_.end(),
                     [&](const WrongElement& e) { return is_got(e, remake(e)); }))
      return false;
    remake_ = remake;
    return true;
  }

  /// Is all of C, right elements included, what `remake` makes? Of a large one a part is looked at.
  bool makes_all_of_c(const Remake& remake) const {
    constexpr int64_t kMostProducts = 1 << 25;
    const auto count = static_cast<int64_t>(reference_.values.size());
    const int64_t step = count * shape_.k / kMostProducts | 1;  // odd: it meets all columns
    for (int64_t at = 0; at < count; at += step) {
      const double right = reference_.values[static_cast<size_t>(at)];
      const float got = wrong_.got(at, to_float(to_bf16(static_cast<float>(right))));
      const WrongElement e{reference_.rows[static_cast<size_t>(at / shape_.n)],
                           static_cast<int>(at % shape_.n), right, got};
      if (!std::isnan(got) && !is_got(e, remake(e))) return false;
    }
    return true;
  }

  Products multiply(const WrongElement& example) const {
    Products products;
    const auto value_of_a = [&](int64_t k) {
      return k < shape_.k ? double{to_float(a_[static_cast<size_t>(example.row * int64_t{shape_.k} + k)])}
                          : 0;
    };
    const auto value_of_b = [&](int64_t k) {
      return k < shape_.k ? double{to_float(b_[static_cast<size_t>(k * shape_.n + example.column)])} : 0;
    };
    products.sums.push_back(0);
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      double sum = products.sums.back();
      for (int k = chunk * kChunk; k < (chunk + 1) * kChunk; ++k) sum += value_of_a(k) * value_of_b(k);
      products.sums.push_back(sum);
    }
    if (tiles_ * tiles_ > kMaxPairs) return products;
    for (int i = 0; i < tiles_; ++i)
      for (int j = 0; j < tiles_; ++j) {
        double sum = 0;
        for (int k = 0; k < kTileWidth; ++k)
          sum += value_of_a(i * kTileWidth + k) * value_of_b(j * kTileWidth + k);
        products.of_tiles.push_back(sum);
      }
    return products;
  }

  /// @param value NaN if it is not known
  bool is_got(const WrongElement& example, double value) const {
    if (std::isnan(value)) return true;
    if (is_exact_) return to_float(to_bf16(static_cast<float>(value))) == static_cast<float>(example.got);
    return std::abs(example.got - value) <= std::abs(value) / 256 + 0.01;  // a typical product is 1
  }
  double of_range(size_t e, int first, int end) const {
    return products_[e].sums[static_cast<size_t>(end)] - products_[e].sums[static_cast<size_t>(first)];
  }
  double of_tile(size_t e, int tile) const {
    constexpr int kChunks = kTileWidth / kChunk;
    return of_range(e, tile * kChunks, std::min((tile + 1) * kChunks, chunks_));
  }
  /// Does the right sum, changed by `change(example)`, make every example?
  template <class Change>
  bool is_explained_by(const Change& change) const {
    for (size_t e = 0; e < examples_.size(); ++e)
      if (!is_got(examples_[e], products_[e].sums.back() + change(e))) return false;
    return true;
  }
  std::string tile(int i) const { return fmt::format("K tile {} (of {}, 64 wide)", i, tiles_); }
  const char* why_stale(int taken, int due) const {
    return taken > due         ? "a slot was overwritten before it was read, or the wrong tile was loaded"
           : due + 1 == tiles_ ? "the last K tile was never loaded, a slot was read before it was filled "
                                 "again, or the wrong tile was loaded"
                               : "a slot was read before it was filled again, or the wrong tile was loaded";
  }

  /// Of two parts of K, one behind the other, the first is one tile longer where their number is odd; does
  /// the second begin where it would if they were equal?
  std::string why_parts_overlap(int taken, int due) const {
    if (tiles_ < 3 || tiles_ % 2 == 0 || taken != tiles_ / 2 || due != tiles_ - 1) return "";
    return fmt::format(
        "; or two blocks, or groups of threads, take parts of K one behind the other, tiles 0 to {} and {} "
        "to {}: tile {} counts twice, and tile {} never",
        taken, taken, due - 1, taken, due);
  }

  /// One K tile is taken in place of another.
  std::string explain_by_one_tile() {
    if (tiles_ > kMaxTiles) return "";
    for (int i = 0; i < tiles_; ++i) {
      for (int j = 0; j < tiles_; ++j) {
        if (j == i || !is_explained_by([&](size_t e) { return of_tile(e, j) - of_tile(e, i); })) continue;
        return fmt::format("{} was multiplied in place of K tile {}: {}{}", tile(j), i, why_stale(j, i),
                           why_parts_overlap(j, i));
      }
    }
    return "";
  }

  /// Neighbouring products are missing, or counted twice. Where several ranges explain all, some of their
  /// products are zero: the one that begins or ends with a K tile is meant.
  std::string explain_by_range() {
    struct Range {
      int first, end;
      bool is_twice;
    };
    std::vector<Range> found;
    if (tiles_ > kMaxTiles) return "";
    for (int first = 0; first < chunks_; ++first) {
      for (int end = first + 1; end <= chunks_; ++end) {
        for (const bool is_twice : {false, true}) {
          if (is_explained_by([&](size_t e) { return (is_twice ? 1 : -1) * of_range(e, first, end); }))
            found.push_back({first, end, is_twice});
        }
      }
    }
    if (found.empty()) return "";
    constexpr int kChunks = kTileWidth / kChunk;
    const auto begins_or_ends_a_tile = [&](const Range& range) {
      return (range.first % kChunks == 0) + (range.end % kChunks == 0 || range.end == chunks_);
    };
    const Range range =
        *std::max_element(found.begin(), found.end(), [&](const Range& one, const Range& other) {
          return begins_or_ends_a_tile(one) < begins_or_ends_a_tile(other);
        });
    const int first = range.first * kChunk, last = std::min(range.end * kChunk, shape_.k) - 1;
    if (range.first == 0 && range.end == chunks_) {
      return range.is_twice ? "C holds twice the product: all sums are counted twice, or were not cleared"
                            : "C holds zeros: all products are missing" +
                                  (zero_copies_.empty() ? "" : ": " + zero_copies_);
    }
    std::string text = range.is_twice ? fmt::format("C has the products of k = {} to {} twice", first, last)
                                      : fmt::format("C lacks the products of k = {} to {}", first, last);
    const int i = first / kTileWidth;
    const int next = last + 1;
    if (!range.is_twice && first == 0 && next > kTileWidth && next % kTileWidth == 0)
      return text + fmt::format(": do the sums begin anew with K tile {} (of {}, 64 wide)?",
                                next / kTileWidth, tiles_);
    if (!range.is_twice && first == 0 && next % kStepOfProduct == 0 && next % kTileWidth && next < shape_.k)
      return text + fmt::format(": do the sums begin anew with k = {}?", next);
    const bool is_one_tile = first % kTileWidth == 0 &&
                             (last + 1 == (i + 1) * kTileWidth || (last + 1 == shape_.k && i + 1 == tiles_));
    if (is_one_tile && i + 1 == tiles_) {
      return text + ", the last K tile" +
             (shape_.k % kTileWidth ? ": is the number of K tiles rounded down? It must be rounded up" : "");
    }
    if (is_one_tile) return text + ": " + tile(i);
    const bool is_all_of_one_step = first == kTileWidth && (last + 1) % kTileWidth == 0 &&
                                    last + 1 < shape_.k && shape_.k <= last + 1 + kTileWidth;
    if (!range.is_twice && is_all_of_one_step)
      text += fmt::format(": does k go on by {} a step, not by {}?", last + 1, kTileWidth);
    const bool lies_beyond_the_edge = range.is_twice && shape_.k % kTileWidth &&
                                      first % kTileWidth == shape_.k % kTileWidth &&
                                      (last + 1) % kTileWidth == 0;
    if (lies_beyond_the_edge && first / kTileWidth == last / kTileWidth) {
      text += ": beyond K the slot of the last K tile still holds " + tile(i) + ", where zeros must be";
    }
    return text;
  }

  /// One operand's tile is that of another K tile.
  std::string explain_by_stale_operand() {
    if (products_.front().of_tiles.empty()) return "";
    for (int due = 0; due < tiles_; ++due) {
      for (int taken = 0; taken < tiles_; ++taken) {
        if (taken == due) continue;
        for (const bool is_a : {true, false}) {
          const auto index = static_cast<size_t>(is_a ? taken * tiles_ + due : due * tiles_ + taken);
          if (!is_explained_by([&](size_t e) { return products_[e].of_tiles[index] - of_tile(e, due); }))
            continue;
          return fmt::format("{} of {} was multiplied in place of K tile {}: {}", tile(taken),
                             is_a ? "A" : "B", due, why_stale(taken, due));
        }
      }
    }
    return "";
  }

  /// Every K tile is taken in place of the one some places before or after it, where there is one.
  std::string explain_by_shift_along_k() {
    if (tiles_ > kMaxTiles) return "";
    for (int ahead = -kMaxAhead; ahead <= kMaxAhead; ++ahead) {
      const auto is_taken = [&](int i) { return i >= 0 && i < tiles_; };
      if (!ahead || !is_explained_by([&](size_t e) {
            double change = 0;
            for (int i = 0; i < tiles_; ++i)
              if (is_taken(i + ahead)) change += of_tile(e, i + ahead) - of_tile(e, i);
            return change;
          }))
        continue;
      return fmt::format("every K tile was taken {} too {}: {}", std::abs(ahead),
                         ahead < 0 ? "late" : "early", why_stale(ahead, 0));
    }
    return "";
  }

  /// Of every two K tiles, or four, some are missing: those of another block, or warpgroup.
  std::string explain_by_every_other_tile() {
    if (tiles_ > kMaxTiles) return "";
    for (const int period : {2, 4})
      for (int first = 0; first < period && period <= tiles_; ++first)
        for (const bool is_missing : {true, false}) {
          const auto change = [&](size_t e) {
            double sum = 0;
            for (int i = 0; i < tiles_; ++i)
              if ((i % period == first) == is_missing) sum -= of_tile(e, i);
            return sum;
          };
          if (!is_explained_by(change)) continue;
          const std::string said =
              fmt::format("C {} the products of K tiles {}, {}, ... (every {} of {}, 64 wide)",
                          is_missing ? "lacks" : "has only", first, first + period,
                          period == 2 ? "second" : "fourth", tiles_);
          // What lacks one of two has only the other, as the half of C that a second block stores.
          const bool has_only_one = !is_missing || period == 2;
          if (!has_only_one) return said;
          // A step that is too long would leave out products of all of C.
          return said + ": does " +
                 (wrong_.are_in_all_tiles()
                      ? fmt::format("k advance by {} a step, or does ", period * kTileWidth)
                      : "") +
                 "nobody add to the sums that are stored what other threads have multiplied" +
                 (wrong_.are_in_all_tiles() ? "?" : ", or are too few sums sent or added?");
        }
    return "";
  }

  /// Each K tile counts once, twice or never: the whole numbers that make all examples, by least squares.
  std::string explain_by_counts_of_tiles() {
    constexpr int kMostTiles = 16, kMostTimes = 8;
    const auto n = static_cast<size_t>(tiles_);
    if (!is_exact_ || tiles_ < 2 || tiles_ > kMostTiles || examples_.size() < n + 4) return "";
    std::vector<std::vector<double>> rows(n, std::vector<double>(n + 1));  // the normal equations
    for (size_t e = 0; e < examples_.size(); ++e)
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j)
          rows[i][j] += of_tile(e, static_cast<int>(i)) * of_tile(e, static_cast<int>(j));
        rows[i][n] += of_tile(e, static_cast<int>(i)) * examples_[e].got;
      }
    for (size_t i = 0; i < n; ++i) {  // Gauss-Jordan; the matrix is positive definite, or has no solution
      if (rows[i][i] < 1e-6) return "";
      for (size_t other = 0; other < n; ++other) {
        const double factor = other == i ? 0 : rows[other][i] / rows[i][i];
        for (size_t j = i; j <= n; ++j) rows[other][j] -= factor * rows[i][j];
      }
    }
    std::vector<double> times;
    for (size_t i = 0; i < n; ++i) times.push_back(std::round(rows[i][n] / rows[i][i]));
    if (*std::min_element(times.begin(), times.end()) < 0 ||
        *std::max_element(times.begin(), times.end()) > kMostTimes || !is_explained_by([&](size_t e) {
          double change = 0;
          for (int i = 0; i < tiles_; ++i) change += (times[static_cast<size_t>(i)] - 1) * of_tile(e, i);
          return change;
        }))
      return "";
    std::string said;
    for (int count = kMostTimes; count >= 0; --count) {
      std::string which;
      for (int i = 0; i < tiles_; ++i)
        if (times[static_cast<size_t>(i)] == count) which += (which.empty() ? "" : ", ") + std::to_string(i);
      if (which.empty()) continue;
      said += said.empty() ? "C has the products of K tiles " : ", of ";
      said += which + (count == 0   ? " never"
                       : count == 1 ? " once"
                       : count == 2 ? " twice"
                                    : fmt::format(" {} times", count));
    }
    const bool is_shared_wrongly = std::find(times.begin(), times.end(), 0) != times.end() &&
                                   *std::max_element(times.begin(), times.end()) == 2;
    return said + fmt::format(" ({} K tiles, 64 wide)", tiles_) +
           (is_shared_wrongly ? ": do two blocks, or two groups of threads, take the same ones, or does one "
                                "add its own sums in place of the other's?"
                              : "");
  }

  /// K tile i is loaded from another k than 64 i: the step is not multiplied by the tile's width, or by
  /// another one.
  std::string explain_by_step_along_k() {
    if (tiles_ < 2 || tiles_ > kMaxTiles) return "";
    const int64_t m = shape_.m, n = shape_.n, k = shape_.k;
    for (const int64_t width : {1, 8, 16, 32, 128, 256})
      for (const auto& [which, of_a, of_b] :
           {std::tuple{"A and B", true, true}, {"A", true, false}, {"B", false, true}}) {
        const bool makes_all =
            std::all_of(examples_.begin(), examples_.end(), [&, a = of_a, b = of_b](const auto& e) {
              double sum = 0;
              for (int64_t i = 0; i < int64_t{tiles_} * kTileWidth; ++i) {
                const int64_t there = i / kTileWidth * width + i % kTileWidth;
                sum += element(a_, e.row, a ? there : i, m, k, k) *
                       element(b_, b ? there : i, e.column, k, n, n);
              }
              return is_got(e, sum);
            });
        if (!makes_all) continue;
        return width == 1
                   ? fmt::format(
                         "K tile i of {} was loaded from k = i on, not from {} i: the number of a step must "
                         "be multiplied by the width of a K tile",
                         which, kTileWidth)
                   : fmt::format(
                         "K tile i of {} was loaded from k = {} i on, not from {} i: a step along K must be "
                         "as wide as a K tile",
                         which, width, kTileWidth);
      }
    return "";
  }

  /// All parts of a K tile are loaded from the place of one of them.
  std::string explain_by_repeated_part() {
    for (const int64_t width : {64, 32, 16, 8})
      for (const int64_t part : {32, 16, 8, 1})
        for (int64_t taken = 0; part < width && taken < width; taken += part)
          for (const bool is_a : {true, false}) {
            if (!is_made_along_k(is_a, [=](const WrongElement&, int64_t i) {
                  return i / width * width + taken + i % part;
                }))
              continue;
            const std::string what = is_a ? "column" : "row";
            return fmt::format(
                "of each {} of {}, {} taken for all {}: the k of the load lacks what tells one part of the "
                "tile from the next, or each part is multiplied from the same place",
                width == kTileWidth ? "K tile" : fmt::format("{} {}s", width, what), is_a ? "A" : "B",
                part == 1 ? fmt::format("{} {} was", what, taken)
                          : fmt::format("{}s {} to {} were", what, taken, taken + part - 1),
                width);
          }
    return "";
  }

  /// All products of a K tile take an operand from the same k: it is the column, or the row, that the thread
  /// has in the tile of C.
  std::string explain_by_thread_along_k() {
    for (const int64_t width : {32, 16, 64, 8})
      for (const int64_t side : {width, int64_t{8}, int64_t{16}, int64_t{32}, int64_t{64}, int64_t{128}})
        for (const bool is_a : {false, true})
          for (const bool is_row : {is_a, !is_a}) {
            if (!is_made_along_k(is_a, [=](const WrongElement& e, int64_t i) {
                  return i / width * width + (is_row ? e.row : e.column) % side;
                }))
              continue;
            if (!makes_all_of_c(remake_)) {
              remake_ = nullptr;
              continue;
            }
            const char *const matrix = is_a ? "A" : "B", *const own = is_row ? "row (y)" : "column (x)";
            // With its other coordinate a thread is right where it loads.
            return fmt::format(
                "in {} j of C, {} k + j % {} of {} was taken for all {} from k on (k = 0, {}, "
                "...): is the thread's {} taken {}for each k in turn where {} is multiplied?",
                is_row ? "row" : "column", is_a ? "column" : "row", side, matrix, width, width, own,
                is_a == is_row ? fmt::format("for its {} where {} is loaded, or ",
                                             is_row ? "column (x)" : "row (y)", matrix)
                               : "",
                matrix);
          }
    return "";
  }

  /// Does every sum take one operand from another k, `instead(element, k)`?
  template <class Instead>
  bool is_made_along_k(bool is_a, const Instead& instead) {
    const int64_t m = shape_.m, n = shape_.n, k = shape_.k;
    return is_made_by([=, this](const WrongElement& e) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i)
        sum += element(a_, e.row, is_a ? instead(e, i) : i, m, k, k) *
               element(b_, is_a ? i : instead(e, i), e.column, k, n, n);
      return sum;
    });
  }

  /// The element of a matrix of `rows` x `columns` that is stored there; 0 outside.
  static double element(const std::vector<__nv_bfloat16>& matrix, int64_t row, int64_t column, int64_t rows,
                        int64_t columns, int64_t pitch) {
    const int64_t index = row * pitch + column;
    const bool is_inside = row >= 0 && row < rows && column >= 0 && column < columns && index >= 0 &&
                           index < static_cast<int64_t>(matrix.size());
    return is_inside ? double{to_float(matrix[static_cast<size_t>(index)])} : 0;
  }

  /// The tiles of one operand do not follow K: they stay where they are, or go along the other side.
  std::string explain_by_walk() {
    const int64_t m = shape_.m, n = shape_.n, k = shape_.k;
    if (tiles_ < 2) return "";
    const auto makes_all = [&](const auto& product) {
      return is_made_by([=](const WrongElement& e) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) sum += product(e, i);
        return sum;
      });
    };
    for (const int64_t step : {0, 64, 128, 256}) {
      if (makes_all([=, this](const WrongElement& e, int64_t i) {
            const int64_t column = e.column + i / kTileWidth * step;
            return element(a_, e.row, i, m, k, k) * element(b_, i % kTileWidth, column, k, n, n);
          }))
        return walk("B", "down", "columns further right", step);
      if (makes_all([=, this](const WrongElement& e, int64_t i) {
            const int64_t row = e.row + i / kTileWidth * step;
            return element(a_, row, i % kTileWidth, m, k, k) * element(b_, i, e.column, k, n, n);
          }))
        return walk("A", "right", "rows further down", step);
    }
    return explain_by_exchanged_walks();
  }

  /// Both operands stay at the first K tile and go along the other side: each goes the other one's way.
  std::string explain_by_exchanged_walks() {
    const int64_t m = shape_.m, n = shape_.n, k = shape_.k;
    for (const int64_t width : {16, 32, 64})
      for (const int64_t down : {16, 32, 64, 128, 256})
        for (const int64_t right : {16, 32, 64, 128, 256}) {
          const int64_t steps = (k + width - 1) / width;
          if (steps < 2 || !is_made_by([=, this](const WrongElement& e) {
                double sum = 0;
                for (int64_t i = 0; i < steps * width; ++i)
                  sum += element(a_, e.row + i / width * down, i % width, m, k, k) *
                         element(b_, i % width, e.column + i / width * right, k, n, n);
                return sum;
              }))
            continue;
          candidates_.push_back(
              {fmt::format(
                   "every K tile of A and of B was loaded from k = 0 to {}, of A {} rows further down each "
                   "time, "
                   "of B {} columns further right: A's tiles must go right from step to step, and B's down",
                   width - 1, down, right),
               remake_});
        }
    return candidates_.empty() ? "" : candidates_.front().text;
  }

  static std::string walk(const char* matrix, const char* along_k, const char* further, int64_t step) {
    return fmt::format(
        "every K tile of {} was loaded from k = 0 to {}{}: its tiles must go {} from step to step, along "
        "K",
        matrix, kTileWidth - 1, step ? fmt::format(", {} {} each time", step, further) : "", along_k);
  }

  /// The i-th factor of a wrong element's sum, of A or of B.
  using Factor = std::function<double(const WrongElement&, int64_t)>;

  Factor right_a() const {
    return [this](const WrongElement& e, int64_t i) {
      return element(a_, e.row, i, shape_.m, shape_.k, shape_.k);
    };
  }
  Factor right_b() const {
    return [this](const WrongElement& e, int64_t i) {
      return element(b_, i, e.column, shape_.k, shape_.n, shape_.n);
    };
  }
  /// Whether these factors give every wrong element.
  bool makes_all(const Factor& a, const Factor& b) {
    return is_made_by([=, this](const WrongElement& e) {
      double sum = 0;
      for (int64_t i = 0; i < shape_.k; ++i) sum += a(e, i) * b(e, i);
      return sum;
    });
  }

  /// The pitch of A or B is another one.
  std::string explain_by_pitch() {
    const int64_t m = shape_.m, n = shape_.n, k = shape_.k;
    const auto pitches = [&](int64_t right) {
      std::vector<std::pair<std::string, int64_t>> all;
      for (const auto& [name, pitch] : {std::pair<const char*, int64_t>{"M", m}, {"N", n}, {"K", k}})
        if (pitch != right) all.emplace_back(fmt::format("{} = {}", name, pitch), pitch);
      return all;
    };
    for (const bool is_cut : {false, true}) {  // at the pitch, as at an edge
      for (const auto& [name, pitch] : pitches(n))
        if (makes_all(right_a(), [=, this, p = pitch](const WrongElement& e, int64_t i) {
              return element(b_, i, e.column, is_cut ? n : m * n * k, is_cut ? p : n, p);
            }))
          return fmt::format("B was read with the pitch {}, and its rows are N = {} long", name, n);
      for (const auto& [name, pitch] : pitches(k))
        if (makes_all(
                [=, this, p = pitch](const WrongElement& e, int64_t i) {
                  return element(a_, e.row, i, is_cut ? k : m * n * k, is_cut ? p : k, p);
                },
                right_b()))
          return fmt::format("A was read with the pitch {}, and its rows are K = {} long", name, k);
    }
    return "";
  }

  /// A, B or squares of their tiles are transposed.
  std::string explain_by_transposition() {
    const int64_t m = shape_.m, n = shape_.n, k = shape_.k;
    if (makes_all(right_a(),
                  [=, this](const WrongElement& e, int64_t i) { return element(b_, e.column, i, k, n, n); }))
      return "B was read transposed";
    if (makes_all([=, this](const WrongElement& e, int64_t i) { return element(a_, i, e.row, m, k, k); },
                  right_b()))
      return "A was read transposed";
    // Squares, or all of a tile that is a square.
    for (const int64_t width : {8, 16, 32, 64, 128}) {
      const auto exchanged = [=](int64_t to, int64_t from) { return to / width * width + from % width; };
      for (const bool is_a : {true, false})
        if (makes_all(is_a ? Factor([=, this](const WrongElement& e, int64_t i) {
                        return element(a_, exchanged(e.row, i), exchanged(i, e.row), m, k, k);
                      })
                           : right_a(),
                      is_a ? right_b() : Factor([=, this](const WrongElement& e, int64_t i) {
                        return element(b_, exchanged(i, e.column), exchanged(e.column, i), k, n, n);
                      })))
          return fmt::format(
              "each square of {} x {} elements of {} was multiplied transposed: the indices of row and "
              "column are exchanged where its tile is read from shared memory, or where it is stored there",
              width, width, is_a ? "A" : "B");
    }
    return "";
  }

  /// A box of A begins at a tile's row and a K tile, one of B at a K tile and a panel of columns.
  std::string explain_by_exchanged_coordinates() {
    const int64_t m = shape_.m, n = shape_.n, k = shape_.k;
    for (const int64_t height : {64, 128, 256})
      if (makes_all(
              [=, this](const WrongElement& e, int64_t i) {
                const int64_t row = e.row / height * height, column = i / kTileWidth * kTileWidth;
                return element(a_, column + e.row - row, row + i - column, m, k, k);
              },
              right_b()))
        return "A's tiles were loaded from places with row and column exchanged: tma_load takes the column "
               "first";
    if (makes_all(right_a(), [=, this](const WrongElement& e, int64_t i) {
          const int64_t row = i / kTileWidth * kTileWidth, column = e.column / kTileWidth * kTileWidth;
          return element(b_, column + i - row, row + e.column - column, k, n, n);
        }))
      return "B's tiles were loaded from places with row and column exchanged: tma_load takes the column "
             "first";
    return explain_by_exchanged_origin();
  }

  /// Of the wrong elements, and of C as a whole: else right ones would be wrong, too.
  bool makes_all_and_c(const Factor& a, const Factor& b) {
    const bool makes_wrong_ones = makes_all(a, b);
    if (makes_wrong_ones && makes_all_of_c(remake_)) return true;
    if (makes_wrong_ones) remake_ = nullptr;
    return false;
  }

  /// The first tile of A, or of B, alone: the others follow it along K, as they should.
  std::string explain_by_exchanged_origin() {
    const int64_t m = shape_.m, n = shape_.n, k = shape_.k;
    for (const int64_t side : {128, 64, 256, 32, 16}) {
      const auto begin = [side](int64_t at) { return at / side * side; };
      if (makes_all_and_c(
              [=, this](const WrongElement& e, int64_t i) {
                return element(a_, e.row % side, begin(e.row) + i, m, k, k);
              },
              right_b()))
        return "a tile of C that begins at row r was computed with A from row 0 and column r on: are row and "
               "column of A's first tile exchanged?";
      if (makes_all_and_c(right_a(), [=, this](const WrongElement& e, int64_t i) {
            return element(b_, begin(e.column) + i, e.column % side, k, n, n);
          }))
        return "a tile of C that begins at column c was computed with B from row c and column 0 on: are row "
               "and column of B's first tile exchanged?";
    }
    for (const int64_t side : {128, 64, 256, 32, 16}) {
      const auto begin = [side](int64_t at) { return at / side * side; };
      if (makes_all_and_c([=, this](const WrongElement& e,
                                    int64_t i) { return element(a_, e.row, begin(e.column) + i, m, k, k); },
                          right_b()))
        return "a tile of C that begins at column c was computed with A from column c on, not from column 0: "
               "does A's first tile begin at k = 0?";
      if (makes_all_and_c(right_a(), [=, this](const WrongElement& e, int64_t i) {
            return element(b_, begin(e.row) + i, e.column, k, n, n);
          }))
        return "a tile of C that begins at row r was computed with B from row r on, not from row 0: does B's "
               "first tile begin at k = 0?";
    }
    return "";
  }

  /// The rows of a tile have eight chunks, and in row r chunk c lies at place c ^ (r % 8), or is taken from
  /// there, but not both.
  std::string explain_by_swizzle() {
    const int64_t m = shape_.m, n = shape_.n, k = shape_.k;
    const auto swizzled = [](int64_t row, int64_t column) { return column ^ (row % 8 * kChunk); };
    constexpr const char* kText =
        "tiles of {} are swizzled where they are stored and not where they are read, or the other way round: "
        "in rows "
        "1 to 7 of every 8, chunks of 16 bytes are exchanged";
    if (makes_all([=, this](const WrongElement& e,
                            int64_t i) { return element(a_, e.row, swizzled(e.row, i), m, k, k); },
                  right_b()))
      return fmt::format(kText, "A");
    if (makes_all(right_a(), [=, this](const WrongElement& e, int64_t i) {
          return element(b_, i, swizzled(i, e.column), k, n, n);
        }))
      return fmt::format(kText, "B");
    if (is_made_by([=, this](const WrongElement& e) { return product_at(e.row, swizzled(e.row, e.column)); }))
      return fmt::format(kText, "C");
    return "";
  }

  /// A's element of row `row` and k = `i` where descriptors have these strides, of a tile of so many rows;
  /// NaN behind the tile.
  double read_a(const Strides& strides, int64_t tile_rows, int64_t row, int64_t i) const {
    const int64_t first = row / kTileWidth * kTileWidth, in_tile = first % tile_rows;  // of a warpgroup
    const int64_t k = i % kTileWidth, eight = row % kTileWidth / 8;
    const int64_t byte = in_tile * kPanelRow + eight * strides.eight + row % 8 * kPanelRow +
                         k / kStepOfProduct * strides.step + k % kStepOfProduct * 2;
    const int64_t row_read = byte / kPanelRow;
    if (row_read >= tile_rows) return NAN;
    return element(a_, first - in_tile + row_read, i - k + byte % kPanelRow / 2, shape_.m, shape_.k,
                   shape_.k);
  }
  /// Likewise of B, of a tile of so many columns; NaN also in panels beyond B.
  double read_b(const Strides& strides, int64_t tile_columns, int64_t i, int64_t column) const {
    const int64_t k = i % kTileWidth, in_tile = column % tile_columns;
    const int64_t byte = in_tile / kTileWidth * strides.panel + k / kStepOfProduct * strides.step +
                         k % kStepOfProduct / 8 * strides.eight + k % 8 * kPanelRow +
                         in_tile % kTileWidth * 2;
    const int64_t panel = byte / kRightOfB.panel, row = byte % kRightOfB.panel / kPanelRow;
    const int64_t first = column - in_tile + panel * kTileWidth;  // a panel beyond B may not be loaded at all
    const bool is_behind = panel * kTileWidth >= tile_columns;    // its last panel may be wider than the tile
    if (is_behind || first >= shape_.n) return NAN;
    return element(b_, i - k + row, first + byte % kPanelRow / 2, shape_.k, shape_.n, shape_.n);
  }

  /// An offset of a descriptor, which the device knows, or what is added to it is another one.
  std::string explain_by_descriptor() {
    if (multiplied_by_.empty()) return "";
    constexpr int64_t kLargestTried = 4096;
    for (const bool is_a : {true, false}) {
      const char* const matrix = is_a ? "A" : "B";
      const Strides right = is_a ? kRightOfA : kRightOfB;
      for (int64_t bytes = 0; bytes <= kLargestTried; bytes = bytes ? 2 * bytes : 16) {
        Strides strides = right;
        strides.step = bytes;
        const std::string text = try_strides(
            is_a, strides,
            fmt::format("the next 16 {} of {} {} bytes further on, and they lie {} bytes further on: "
                        "what a step along K adds to {}'s matrix descriptor is wrong",
                        is_a ? "columns" : "rows", matrix, bytes, right.step, matrix));
        if (!text.empty()) return text;
      }
      const auto [leading, stride] = is_a ? offsets_of_a_ : offsets_of_b_;
      constexpr unsigned kNotKnown = ~0u;
      Strides strides = right;
      if (stride != kNotKnown) strides.eight = stride;
      if (leading != kNotKnown) strides.panel = leading;
      constexpr const char* kOne =
          "the next {} of {} {} bytes further on, and they lie {} bytes further on: the {} offset in {}'s "
          "matrix descriptor is wrong";
      const bool is_exchanged = strides.eight == right.panel && strides.panel == right.eight;
      const std::string text = try_strides(
          is_a, strides,
          strides.panel == right.panel
              ? fmt::format(kOne, "8 rows", matrix, stride, right.eight, "stride", matrix)
          : strides.eight == right.eight
              ? fmt::format(kOne, "64 columns", matrix, leading, right.panel, "leading", matrix)
              : fmt::format(
                    "the next 8 rows of {} {} bytes further on and the next 64 columns {}, and they lie {} "
                    "and {} bytes further on: the leading and the stride offset in {}'s matrix descriptor "
                    "are {}",
                    matrix, stride, leading, right.eight, right.panel, matrix,
                    is_exchanged ? "exchanged" : "wrong"));
      if (!text.empty()) return text;
    }
    return "";
  }

  /// A sentence if they explain C, of `taken`; else empty.
  std::string try_strides(bool is_a, const Strides& strides, const std::string& taken) {
    const int64_t end = int64_t{tiles_} * kTileWidth;
    const Strides right = is_a ? kRightOfA : kRightOfB;
    if (strides.step == right.step && strides.eight == right.eight && strides.panel == right.panel) return "";
    constexpr int64_t kWidest = 256, kRowsOfWarpgroup = 64, kColumnsOfProduct = 8;
    for (int64_t tile = kWidest; tile >= kTileWidth; tile -= is_a ? kRowsOfWarpgroup : kColumnsOfProduct) {
      const Remake remake = [=, this](const WrongElement& e) {
        double sum = 0;
        for (int64_t i = 0; i < end && !std::isnan(sum); ++i) {
          const double other = is_a ? right_b()(e, i) : right_a()(e, i);
          if (other == 0) continue;  // whatever the one is
          sum += other * (is_a ? read_a(strides, tile, e.row, i) : read_b(strides, tile, i, e.column));
        }
        return sum;
      };
      if (!is_made_by(remake)) continue;
      const auto known = std::count_if(examples_.begin(), examples_.end(),
                                       [&](const WrongElement& e) { return !std::isnan(remake(e)); });
      if (static_cast<size_t>(known) >= kMinExamples && makes_all_of_c(remake))
        return multiplied_by_ + " took " + taken;
      remake_ = nullptr;
    }
    return "";
  }

  /// Rows of A, or columns of B, of some places away.
  std::string explain_by_shift() {
    const int64_t m = shape_.m, n = shape_.n, k = shape_.k;
    for (int64_t away = kChunk; away < std::max(m, n) && away <= kMostAway; away += kChunk)
      for (const int64_t by : {-away, away}) {
        if (away % kTileWidth == 0) continue;  // perhaps a tile of C: see explain_by_other_tile_of_c

        // The same sums come out if C's are staged or stored so far away.
        constexpr const char* kText =
            "C holds what belongs {} {} {}: the {} is off where {} is loaded or multiplied, or where the "
            "sums are {}stored";
        if (makes_all(right_a(), [=, this](const WrongElement& e, int64_t i) {
              return element(b_, i, e.column + by, k, n, n);
            })) {
          columns_left_ = -by;
          return fmt::format(kText, away, "columns", by < 0 ? "to the left" : "to the right", "column", "B",
                             staged_or_);
        }
        if (makes_all(
                [=, this](const WrongElement& e, int64_t i) { return element(a_, e.row + by, i, m, k, k); },
                right_b()))
          return fmt::format(kText, away, "rows", by < 0 ? "further up" : "further down", "row", "A",
                             staged_or_);
      }
    return "";
  }

  /// Of C, as far as it was compared; 0 outside.
  double product_at(int64_t row, int64_t column) const {
    if (row < 0 || row >= shape_.m || column < 0 || column >= shape_.n) return 0;
    return reference_.values[static_cast<size_t>(row * int64_t{shape_.n} + column)];
  }

  /// "64 rows up and 128 columns to the right": the same for each tile that is as wrong as this one, unlike
  /// the row and the column there. In tiles.
  static std::string displacement(int down, int right) {
    std::string text;
    if (down) text = fmt::format("{} rows {}", std::abs(down) * kTileWidth, down < 0 ? "up" : "down");
    if (down && right) text += " and ";
    if (right)
      text += fmt::format("{} columns to the {}", std::abs(right) * kTileWidth, right < 0 ? "left" : "right");
    return text;
  }
  /// "64 columns away": where two tiles exchange what is theirs, one's is to the right, the other's to the
  /// left.
  static std::string distance(int down, int right) {
    std::string text;
    if (down) text = fmt::format("{} rows", std::abs(down) * kTileWidth);
    if (down && right) text += " and ";
    if (right) text += fmt::format("{} columns", std::abs(right) * kTileWidth);
    return text + " away";
  }

  /// C has the sums of another tile, too.
  std::string explain_by_added_tile() {
    if (reference_.sampled()) return "";
    const int rows = (shape_.m + kTileWidth - 1) / kTileWidth,
              columns = (shape_.n + kTileWidth - 1) / kTileWidth;
    for (int down = 1 - rows; down < rows; ++down)
      for (int right = 1 - columns; right < columns; ++right) {
        if (!down && !right) continue;
        if (!is_explained_by([&](size_t e) {
              return product_at(examples_[e].row + down * kTileWidth,
                                examples_[e].column + right * kTileWidth);
            }))
          continue;
        return "C has the sums of this tile and of the one " + displacement(down, right) +
               ": the sums of a block's tile before were not cleared";
      }
    return "";
  }

  /// The element of C, of every second K tile.
  double half_at(int64_t row, int64_t column, int first_tile) const {
    double sum = 0;
    for (int64_t k = 0; k < shape_.k; ++k)
      if (k / kTileWidth % 2 == first_tile)
        sum += element(a_, row, k, shape_.m, shape_.k, shape_.k) *
               element(b_, k, column, shape_.k, shape_.n, shape_.n);
    return sum;
  }

  /// Two blocks share K; half of the sums that were added are those of another tile of C.
  std::string explain_by_sums_of_other_tile() {
    constexpr int kMostTilesAway = 4;
    if (tiles_ < 2 || tiles_ > kMaxTiles) return "";
    for (const int own : {0, 1}) {
      for (int down = -kMostTilesAway; down <= kMostTilesAway; ++down)
        for (int right = -kMostTilesAway; right <= kMostTilesAway; ++right)
          for (const int other : {0, 1}) {
            if (!down && !right) continue;
            const auto added = [=, this](const WrongElement& e) {
              return half_at(e.row + down * kTileWidth, e.column + right * kTileWidth, other);
            };
            const bool adds_any =
                std::any_of(examples_.begin(), examples_.end(), [&](const auto& e) { return added(e) != 0; });
            if (!adds_any ||
                !is_made_by([=, this](const auto& e) { return half_at(e.row, e.column, own) + added(e); }))
              continue;
            return fmt::format(
                "C has the products of every second K tile (of {}, 64 wide), and to them those of the {} K "
                "tiles {} are added: {}",
                tiles_, own == other ? "same" : "other", distance(down, right),
                own == other || down
                    ? "sums of the wrong block, or of the wrong columns"
                    : "a block loads the columns of B, or sends or adds the sums, in another order "
                      "than its peer means");
          }
    }
    return explain_by_sums_of_other_thread();
  }

  /// Half of the sums that were added are those of another thread of the warpgroup. Its fragment has rows and
  /// columns whose distance from those of the own one is a power of two, as that of the threads.
  std::string explain_by_sums_of_other_thread() {
    struct Exchange {
      int thread, row, column;
    };
    // Four threads hold a row of 8 columns, a warp 16 rows.
    for (const auto& [thread, row, column] :
         {Exchange{1, 0, 2}, {2, 0, 4}, {4, 1, 0}, {8, 2, 0}, {16, 4, 0}, {32, 16, 0}, {64, 32, 0}})
      for (const int own : {0, 1}) {
        if (!is_made_by([=, this, row = row, column = column](const WrongElement& e) {
              return half_at(e.row, e.column, own) + half_at(e.row ^ row, e.column ^ column, 1 - own);
            }))
          continue;
        return fmt::format(
            "C has the products of every second K tile (of {}, 64 wide), and to them those of the other K "
            "tiles are added with {} exchanged that are {} apart: thread t takes, or sends, the sums of "
            "thread t ^ {}",
            tiles_, row ? "rows" : "columns", row ? row : column, thread);
      }
    return "";
  }

  /// One operand's tile holds the other's elements, or its own as if its rows were as wide as a panel.
  std::string explain_by_place_in_tile() {
    const int64_t m = shape_.m, n = shape_.n, k = shape_.k;
    constexpr const char* kOther =
        "in place of a tile of {}, elements of {} were multiplied, in the order in which the {} x {} of its "
        "tile follow each other: is {}'s tile stored where {}'s belongs?";
    for (const int64_t width : {128, 64, 256}) {
      for (const int64_t height : {128, 64, 256}) {
        if (makes_all_and_c(right_a(), [=, this](const WrongElement& e, int64_t i) {
              const int64_t at = i % kTileWidth * width + e.column % width;
              return element(a_, e.row / height * height + at / kTileWidth,
                             i / kTileWidth * kTileWidth + at % kTileWidth, m, k, k);
            }))
          return fmt::format(kOther, "B", "A", height, kTileWidth, "A", "B");
        if (makes_all_and_c(
                [=, this](const WrongElement& e, int64_t i) {
                  const int64_t at = e.row % height * kTileWidth + i % kTileWidth;
                  return element(b_, i / kTileWidth * kTileWidth + at / width,
                                 e.column / width * width + at % width, k, n, n);
                },
                right_b()))
          return fmt::format(kOther, "A", "B", kTileWidth, width, "B", "A");
      }
      const int64_t panels = width / kTileWidth;
      if (panels > 1 && makes_all_and_c(right_a(), [=, this](const WrongElement& e, int64_t i) {
            const int64_t row =
                e.column % width / kTileWidth * kTileWidth + i % kTileWidth;  // of 64 elements
            return element(b_, i / kTileWidth * kTileWidth + row / panels,
                           e.column / width * width + row % panels * kTileWidth + e.column % kTileWidth, k, n,
                           n);
          }))
        return fmt::format(
            "row r of each K tile of B, {} wide, lies in rows {} r {} {} r + {} of its panels, {} wide: is "
            "{} "
            "taken for the tile's width where B is stored to shared memory?",
            width, panels, panels == 2 ? "and" : "to", panels, panels - 1, kTileWidth, kTileWidth);
    }
    return "";
  }

  /// Squares of C are transposed: fragments were stored, or operands loaded, with rows for columns.
  std::string explain_by_transposed_squares() {
    if (reference_.sampled()) return "";
    for (const int width : {8, 16, 64}) {
      const auto is_transposed = [&](const WrongElement& e) {
        return is_got(e, product_at(e.row / width * width + e.column % width,
                                    e.column / width * width + e.row % width));
      };
      if (std::all_of(examples_.begin(), examples_.end(), is_transposed))
        return fmt::format("squares of {} x {} elements of C are transposed", width, width);
    }
    return explain_by_exchanged_sums();
  }

  /// A thread has the sums of rows and of columns that lie some way apart. Those of row i and column j are
  /// those of row j and column i.
  std::string explain_by_exchanged_sums() {
    for (const int apart : {2, 4, 8, 16, 32})
      for (const int sums : {2, 4, 8, 16}) {
        const int width = apart * sums;
        const auto exchanged = [=](int to, int from) {
          return to / width * width + from % width / apart * apart + to % apart;
        };
        if (!is_made_by([=, this](const WrongElement& e) {
              return product_at(exchanged(e.row, e.column), exchanged(e.column, e.row));
            }))
          continue;
        candidates_.push_back(
            {fmt::format("in squares of {} x {} elements of C, block (i, j) of {} x {} elements holds what "
                         "belongs to block (j, i): the row and the column of a thread's sums are exchanged "
                         "where they are multiplied, or where they are stored",
                         width, width, apart, apart),
             remake_});
      }
    return candidates_.empty() ? "" : candidates_.front().text;
  }

  /// What is off where only one coordinate is. A mistake of the store alone leaves a place without its sums:
  /// it is none if the place where they belong holds them, too.
  std::string why_of_other_tile(int down, int right) const {
    if (down && right)
      return may_be_staged_
                 ? ": the tile was loaded, multiplied, staged or stored with an index that is off, or "
                   "overwritten before it was stored"
                 : ": the tile was loaded, multiplied or stored with an index that is off";
    const bool both_hold_it = std::all_of(examples_.begin(), examples_.end(), [&](const WrongElement& e) {
      const int row = e.row + down * kTileWidth, column = e.column + right * kTileWidth;
      return row >= 0 && row < shape_.m && column >= 0 && column < shape_.n && !wrong_.is_wrong(row, column);
    });
    std::string text = fmt::format(": {}the {}s are right: the {} is off where {} is loaded or multiplied",
                                   both_hold_it ? "both places hold it, and " : "", down ? "column" : "row",
                                   down ? "row" : "column", down ? "A" : "B");
    if (may_be_staged_)
      return text + ", or where the sums are staged" + (both_hold_it ? "" : " or stored") +
             ", or a staging tile held other sums when it was stored";
    return text + (both_hold_it ? "" : ", or where the sums are stored");
  }

  /// The elements are right, but belong to another place of C.
  std::string explain_by_other_tile_of_c() {
    if (reference_.sampled()) return "";
    const int rows = (shape_.m + kTileWidth - 1) / kTileWidth,
              columns = (shape_.n + kTileWidth - 1) / kTileWidth;
    for (int down = 1 - rows; down < rows; ++down) {
      for (int right = 1 - columns; right < columns; ++right) {
        const auto is_of_that_place = [&](const WrongElement& example) {
          const int row = example.row + down * kTileWidth, column = example.column + right * kTileWidth;
          const bool is_inside = row >= 0 && row < shape_.m && column >= 0 && column < shape_.n;
          // What lies outside is zero.
          return is_got(
              example,
              is_inside ? reference_.values[static_cast<size_t>(row * int64_t{shape_.n} + column)] : 0);
        };
        if (!std::all_of(examples_.begin(), examples_.end(), is_of_that_place)) continue;
        if (!down) columns_left_ = -right * kTileWidth;
        return "C holds what belongs " + displacement(down, right) + why_of_other_tile(down, right);
      }
    }
    return "";
  }

  const std::vector<WrongElement> examples_;
  const WrongElements& wrong_;
  const Reference& reference_;
  const Shape& shape_;
  const bool is_exact_, may_be_staged_;
  const std::string zero_copies_, multiplied_by_;
  const std::array<unsigned, 2> offsets_of_a_, offsets_of_b_;
  const char* const staged_or_ = may_be_staged_ ? "staged or " : "";
  const std::vector<__nv_bfloat16>&a_, &b_;
  int tiles_ = 0, chunks_ = 0;
  std::vector<Products> products_;
  std::vector<Candidate> candidates_;
  int columns_left_ = 0;
  Remake remake_;  ///< of what explains all examples; empty if that can be tried on no others
};

}  // namespace

namespace {

/// What explains the examples of a tile, or of its first row.
struct Found {
  std::string where, fact, advice;  ///< the fact is empty if nothing explains them
  std::shared_ptr<Explainer> explainer;

  void say(const std::string& text) {
    const size_t colon = text.find(": ");
    fact = text.substr(0, colon);
    advice = colon == text.npos ? "" : text.substr(colon);
  }
};

std::string place_of_tile(const WrongElement& example) {
  return fmt::format("in tile row {}, tile column {}: ", example.row / kTileWidth,
                     example.column / kTileWidth);
}

Found find(const std::vector<WrongElement>& examples, const WrongElements& wrong, const Reference& reference,
           bool is_exact, const MadeBy& made_by, const std::vector<__nv_bfloat16>& a,
           const std::vector<__nv_bfloat16>& b) {
  std::vector<WrongElement> of_one_row;
  for (const WrongElement& example : examples)
    if (example.row == examples[0].row) of_one_row.push_back(example);
  const WrongElement& first = examples[0];
  for (const std::vector<WrongElement>* chosen : {&examples, &std::as_const(of_one_row)}) {
    if (chosen->size() < kMinExamples) continue;
    const auto explainer = std::make_shared<Explainer>(*chosen, wrong, reference, is_exact, made_by, a, b);
    const std::string text = explainer->explain();
    if (!text.empty()) {
      Found found;
      found.where = chosen == &examples ? place_of_tile(first) : fmt::format("in row {}: ", first.row);
      found.say(text);
      found.explainer = explainer;
      return found;
    }
    if (of_one_row.size() == examples.size()) break;
  }
  return {};
}

/// The K tiles repeat from the first one on: as many are ever multiplied as a ring has slots. Said if the
/// slot at which a tile of C begins differs from one to the next, or if two or more K tiles are missing: one
/// may be stale.
std::string explain_by_ring(const std::vector<WrongElement>& first_tile,
                            const std::vector<std::vector<WrongElement>>& others,
                            const std::function<Explainer(const std::vector<WrongElement>&)>& explainer_of) {
  if (first_tile.size() < kMinExamples) return "";
  const Explainer of_first = explainer_of(first_tile);
  const int tiles = of_first.tiles();
  std::vector<Explainer> of_others;
  for (int slots = 2; slots < std::min(kMaxAhead + 1, tiles) && tiles <= kMaxTiles; ++slots) {
    std::set<int> begins = {of_first.first_slot_of(slots)};
    if (*begins.begin() < 0) continue;
    for (size_t i = 0; i < others.size() && *begins.begin() >= 0; ++i) {
      if (of_others.size() == i) of_others.push_back(explainer_of(others[i]));
      begins.insert(of_others[i].first_slot_of(slots));
    }
    const bool is_counted_by_slot = begins.size() > 1;
    if (*begins.begin() < 0 || (!is_counted_by_slot && (*begins.begin() > 0 || slots + 1 == tiles))) continue;
    return fmt::format(
        "only K tiles 0 to {} (of {}, 64 wide) are multiplied, some of them several times: k repeats after "
        "{} steps{}, as the slots of a ring do: is the k of the load computed from the slot, not from the "
        "step{}?",
        slots - 1, tiles, slots, is_counted_by_slot ? ", also from one tile of C to the next" : "",
        is_counted_by_slot ? "" : ", or are the slots not filled again");
  }
  return "";
}

/// Each tile of C was made with row and column exchanged, of both operands or of one. That must explain all
/// elements, those that are right, too.
std::string explain_by_exchanged_tiles(const std::vector<std::vector<WrongElement>>& tiles,
                                       const WrongElements& wrong, const Reference& reference,
                                       bool is_exact) {
  const int m = reference.shape.m, n = reference.shape.n;
  if (!is_exact || reference.sampled()) return "";
  const auto is_inside = [=](int row, int column) { return row < m && column < n; };
  const auto product_at = [&](int row, int column) {
    return is_inside(row, column) ? reference.values[static_cast<size_t>(row * int64_t{n} + column)] : 0;
  };
  const auto is_product = [&](double value, int row, int column) {
    return static_cast<float>(value) == to_float(to_bf16(static_cast<float>(product_at(row, column))));
  };
  constexpr int kSmallTile = 64, kThreadsSums = 16;
  struct Exchange {
    int height, width;
    bool of_offsets, of_a, of_b;
    int row(int row, int column) const {
      return of_a ? column / width * (of_offsets ? width : height) + row % height : row;
    }
    int column(int row, int column) const {
      return of_b ? row / height * (of_offsets ? height : width) + column % width : column;
    }
  };
  const auto explains_all = [&](const Exchange& one) {
    std::set<std::pair<int, int>> distances;  // one alone has a plainer cause
    for (const auto& examples : tiles)
      for (const WrongElement& e : examples) {
        const int row = one.row(e.row, e.column), column = one.column(e.row, e.column);
        if (!is_product(e.got, row, column)) return false;
        distances.insert(is_inside(row, column) ? std::pair(row - e.row, column - e.column)
                                                : std::pair(m, n));
      }
    for (int row = 0; row < m; ++row)
      for (int column = 0; column < n; ++column)
        if (!wrong.is_wrong(row, column) &&
            !is_product(to_float(to_bf16(static_cast<float>(product_at(row, column)))), one.row(row, column),
                        one.column(row, column)))
          return false;
    const bool reaches_inside = distances.size() > distances.count({m, n});
    return distances.size() > 1 && reaches_inside;
  };
  for (const int height : {64, 128, 256, 32, 16})
    for (const int width : {64, 128, 256, 32, 16}) {
      // The same as squares of a thread's sums: see explain_by_exchanged_sums.
      const int smaller = std::min(height, width);
      if (smaller < kSmallTile && std::max(m, n) <= kThreadsSums * smaller) continue;
      for (const bool of_offsets : {false, true})
        for (const auto& [of_a, of_b] : {std::pair{true, true}, {true, false}, {false, true}}) {
          // Of one tile along the other side all hold what belongs to the first.
          if ((!of_a && m <= height) || (!of_b && n <= width)) continue;
          if (!explains_all({height, width, of_offsets, of_a, of_b})) continue;
          const std::string size = fmt::format("tiles of {} x {} elements", height, width);
          if (!of_a || !of_b)
            return fmt::format(
                "in {}, the tile of C at (i, j) holds the product of {} from {} on: is the tile's {} where "
                "{} "
                "is loaded?",
                size, of_a ? "A's rows" : "B's columns",
                of_a ? fmt::format("{} j", of_offsets ? width : height)
                     : fmt::format("{} i", of_offsets ? height : width),
                of_a ? "column taken for its row" : "row taken for its column", of_a ? "A" : "B");
          if (of_offsets && height != width)
            return fmt::format(
                "in {}, the tile of C that begins at row r and column c holds what begins at row c and "
                "column r: are the two exchanged where it is loaded or stored?",
                size);
          return fmt::format(
              "in {}, the tile of C at (i, j) holds that of (j, i): are the tile's row and column exchanged "
              "where it is loaded or stored?",
              size);
        }
    }
  return "";
}

/// In each tile of C every piece of columns holds what belongs to the first piece. That must explain all
/// elements, those that are right, too, and the first piece of more than one tile must be right: or the tiles
/// would be what repeats.
std::string explain_by_repeated_columns(const std::vector<std::vector<WrongElement>>& tiles,
                                        const WrongElements& wrong, const Reference& reference, bool is_exact,
                                        const MadeBy& made_by) {
  const int n = reference.shape.n;
  const bool is_of_descriptor = made_by.offsets_of_b[0] == 0;  // see explain_by_descriptor
  if (!is_exact || is_of_descriptor) return "";
  const auto value_at = [&](size_t row, int column) {
    return to_float(to_bf16(static_cast<float>(reference.values[row * static_cast<size_t>(n) + column])));
  };
  const auto explains_all = [&](int piece, int tile) {
    const auto source = [=](int column) { return column / tile * tile + column % tile % piece; };
    for (const auto& examples : tiles)
      for (const WrongElement& e : examples) {
        const auto row = static_cast<size_t>(
            std::lower_bound(reference.rows.begin(), reference.rows.end(), e.row) - reference.rows.begin());
        if (static_cast<float>(e.got) != value_at(row, source(e.column))) return false;
      }
    for (size_t row = 0; row < reference.rows.size(); ++row)
      for (int column = 0; column < n; ++column)
        if (!wrong.is_wrong(static_cast<int64_t>(row), column) &&
            value_at(row, column) != value_at(row, source(column)))
          return false;
    return true;
  };
  for (int piece = 8; piece <= 128; piece *= 2)
    for (int tile = 2 * piece; tile <= 256 && tile < n; tile *= 2) {
      if (!explains_all(piece, tile)) continue;
      const std::string fact = fmt::format(
          "of every {} columns of C, each {} hold what belongs to the first {}", tile, piece, piece);
      const std::string place = made_by.staged_at.empty() ? "" : " (" + made_by.staged_at + ")";
      if (!made_by.may_be_staged)
        return fact + ": is the column of a piece missing where B is loaded or multiplied?";
      if (!made_by.loads_all_of_b)
        return fact + ": is the column of a piece missing where sums are staged" + place +
               ", or where B is loaded?";
      return fact +
             ", and all columns of B were loaded: is the column of a piece missing where sums are staged" +
             place + "?";
    }
  return "";
}

/// Tiles of C hold what begins at another place: the number of a tile is multiplied by another width than the
/// tile's. That must explain all elements, those that are right, too.
std::string explain_by_width_of_tiles(const std::vector<std::vector<WrongElement>>& tiles,
                                      const WrongElements& wrong, const Reference& reference, bool is_exact) {
  if (!is_exact) return "";
  constexpr int kLargestTile = 256;  ///< what repeats is no piece of it
  const int m = reference.shape.m, n = reference.shape.n;
  const auto value_at = [&](size_t compared, int column) {
    return column < n
               ? to_float(to_bf16(static_cast<float>(
                     reference.values[compared * static_cast<size_t>(n) + static_cast<size_t>(column)])))
               : 0;
  };
  const auto is_made = [&](float got, size_t compared, int column, bool is_row, int source) {
    if (!is_row) return got == value_at(compared, source);
    return got == (source < m ? value_at(static_cast<size_t>(source), column) : 0);
  };
  const auto explains_all = [&](bool is_row, int width, int instead) {
    const auto source = [=](int i) { return i / width * instead + i % width; };
    std::set<int> distances;  // one alone has other causes
    for (const auto& examples : tiles)
      for (const WrongElement& e : examples) {
        const int at = is_row ? e.row : e.column, from = source(at);
        const auto compared = static_cast<size_t>(
            std::lower_bound(reference.rows.begin(), reference.rows.end(), e.row) - reference.rows.begin());
        if (!is_made(static_cast<float>(e.got), compared, e.column, is_row, from)) return false;
        if (from < (is_row ? m : n)) distances.insert(from - at);
      }
    // That something else is off by one less than a tile, is no chance.
    if (distances.size() < (instead == 1 ? 1 : 2)) return false;
    for (size_t compared = 0; compared < reference.rows.size(); ++compared)
      for (int column = 0; column < n; ++column)
        if (!wrong.is_wrong(static_cast<int64_t>(compared), column) &&
            !is_made(value_at(compared, column), compared, column, is_row,
                     source(is_row ? reference.rows[compared] : column)))
          return false;
    return true;
  };
  for (const bool is_row : {false, true}) {
    if (is_row && reference.sampled()) continue;
    for (const int width : {64, 128, 192, 256, 32, 16})
      for (const int instead : {0, 1, 8, 16, 32, 64, 128, 192, 256, 512}) {
        if (instead == width || ((is_row ? m : n) <= kLargestTile && instead != 1) ||
            !explains_all(is_row, width, instead))
          continue;
        const char *const side = is_row ? "row" : "column", *const matrix = is_row ? "A" : "B";
        const std::string taken =
            instead ? fmt::format("{} {}", side, instead == 1 ? "t" : fmt::format("{} t", instead))
                    : fmt::format("{} 0", side);
        return fmt::format(
            "in tiles of {} {}s, tile t of C, at {} {} t, holds what begins at {}: is {} loaded from {} "
            "there?",
            width, side, side, width, taken, matrix, taken);
      }
  }
  return "";
}

/// Of C, as bf16 rounds it; 0 outside. Rows only where all were compared.
class RightC {
 public:
  explicit RightC(const Reference& reference) : reference_(reference) {}
  int rows() const { return reference_.shape.m; }
  int columns() const { return reference_.shape.n; }
  float at(int row, int column) const {
    if (row < 0 || row >= rows() || column < 0 || column >= columns()) return 0;
    const auto compared =
        reference_.sampled()
            ? std::lower_bound(reference_.rows.begin(), reference_.rows.end(), row) - reference_.rows.begin()
            : row;
    const auto at =
        static_cast<size_t>(compared) * static_cast<size_t>(columns()) + static_cast<size_t>(column);
    return to_float(to_bf16(static_cast<float>(reference_.values[at])));
  }

 private:
  const Reference& reference_;
};

/// Which row, or column, belongs where row or column i is; outside of C there are zeros.
using Source = std::function<int(int)>;

/// Do all elements, those that are right, too, hold what belongs to the source's row, or column?
bool holds_what_belongs(const Source& source, bool is_row,
                        const std::vector<std::vector<WrongElement>>& tiles, const WrongElements& wrong,
                        const Reference& reference) {
  const RightC right(reference);
  const auto is_held = [&](float value, int row, int column) {
    return value == (is_row ? right.at(source(row), column) : right.at(row, source(column)));
  };
  for (const auto& examples : tiles)
    for (const WrongElement& e : examples)
      if (!is_held(static_cast<float>(e.got), e.row, e.column)) return false;
  for (size_t compared = 0; compared < reference.rows.size(); ++compared)
    for (int column = 0; column < reference.shape.n; ++column) {
      const int row = reference.rows[compared];
      if (!wrong.is_wrong(static_cast<int64_t>(compared), column) &&
          !is_held(right.at(row, column), row, column))
        return false;
    }
  return true;
}

/// "where A is loaded, or multiplied (wgmma at core.cuh:35), or where sums are staged".
std::string places_of(bool is_row, const MadeBy& made_by, bool is_stored) {
  return fmt::format("where {} is loaded, or multiplied{}{}", is_row ? "A" : "B",
                     made_by.multiplied_by.empty() ? "" : " (" + made_by.multiplied_by + ")",
                     made_by.may_be_staged
                         ? is_stored ? ", or where sums are staged or stored" : ", or where sums are staged"
                     : is_stored ? ", or where sums are stored"
                                 : "");
}

/// In each tile of C every piece of rows holds what belongs to one of them, as where all warpgroups take the
/// same rows of A. That must explain all elements, and of more than one tile: or tiles would be what repeats.
std::string explain_by_repeated_rows(const std::vector<std::vector<WrongElement>>& tiles,
                                     const WrongElements& wrong, const Reference& reference, bool is_exact,
                                     const MadeBy& made_by) {
  if (!is_exact || reference.sampled()) return "";
  for (int piece = 128; piece >= 16; piece /= 2)
    for (int tile = 2 * piece; tile <= 256 && tile < reference.shape.m; tile += piece)
      for (int taken = 0; taken < tile / piece; ++taken) {
        const auto source = [=](int row) { return row / tile * tile + taken * piece + row % piece; };
        if (tile % piece || !holds_what_belongs(source, true, tiles, wrong, reference)) continue;
        const std::string fact = fmt::format(
            "of every {} rows of C, each {} hold what belongs to the {} {}", tile, piece,
            taken == 0                  ? "first"
            : taken == tile / piece - 1 ? "last"
                                        : fmt::format("{} from row {} on, those", piece, taken * piece),
            piece);
        if (piece % kTileWidth == 0 && made_by.warpgroups_share_operands)
          return fact +
                 fmt::format(
                     ", and all warpgroups of a block took A and B from the same places in shared memory: is "
                     "the warpgroup's row missing in A's matrix descriptor{}?",
                     made_by.multiplied_by.empty() ? "" : " (" + made_by.multiplied_by + ")");
        return fact + ": is the row that tells one piece from the next missing " +
               places_of(true, made_by, false) + "?";
      }
  return "";
}

/// Of two neighbouring pieces of a tile each holds what belongs to the other.
std::string explain_by_exchanged_pieces(const std::vector<std::vector<WrongElement>>& tiles,
                                        const WrongElements& wrong, const Reference& reference, bool is_exact,
                                        const MadeBy& made_by) {
  if (!is_exact) return "";
  for (const bool is_row : {true, false}) {
    const int size = is_row ? reference.shape.m : reference.shape.n;
    if (is_row && reference.sampled()) continue;
    for (const int piece : {64, 128, 32, 16}) {
      const auto is_seen = [&](int half) {
        return std::any_of(tiles.begin(), tiles.end(), [&](const std::vector<WrongElement>& examples) {
          return std::any_of(examples.begin(), examples.end(), [&](const WrongElement& e) {
            const int at = is_row ? e.row : e.column;
            return at / piece % 2 == half && (at ^ piece) < size;
          });
        });
      };
      const char* const what = is_row ? "row" : "column";
      if (is_seen(0) && is_seen(1) &&
          holds_what_belongs([=](int i) { return i ^ piece; }, is_row, tiles, wrong, reference))
        return fmt::format(
            "of every {} {}s of C, the first {} hold what belongs to the others, and the others what belongs "
            "to the first: are two parts of a tile exchanged {}?",
            2 * piece, what, piece, places_of(is_row, made_by, true));
    }
  }
  return "";
}

/// All of C holds what belongs some tiles away, and zeros where that is outside.
std::string explain_by_moved_c(const std::vector<std::vector<WrongElement>>& tiles,
                               const WrongElements& wrong, const Reference& reference, bool is_exact) {
  if (!is_exact) return "";
  for (const bool is_row : {true, false}) {
    const int size = is_row ? reference.shape.m : reference.shape.n;
    if (is_row && reference.sampled()) continue;
    for (int away = kTileWidth; away < size && away <= kMostAway; away += kTileWidth)
      for (const int by : {away, -away}) {
        bool is_inside = false, is_outside = false;
        for (const auto& examples : tiles)
          for (const WrongElement& e : examples) {
            const int source = (is_row ? e.row : e.column) + by;
            (source >= 0 && source < size ? is_inside : is_outside) = true;
          }
        // Where nothing lies outside, that a tile holds another one has been seen already.
        if (!is_inside || !is_outside ||
            !holds_what_belongs([=](int i) { return i + by; }, is_row, tiles, wrong, reference))
          continue;
        return fmt::format(
            "all of C holds what belongs {} {}s further {}, and zeros where that lies outside C: is {} added "
            "to, or "
            "missing in, the {} where {} is loaded or multiplied?",
            away, is_row ? "row" : "column",
            is_row   ? by > 0 ? "down" : "up"
            : by > 0 ? "right"
                     : "left",
            away, is_row ? "row" : "column", is_row ? "A" : "B");
      }
  }
  return "";
}

/// In each tile of C the rows, the columns or both lie in another order, as where a thread's sums lie apart
/// where they are multiplied and side by side where they are stored.
std::string explain_by_order_in_tiles(const WrongElements& wrong, const Reference& reference, bool is_exact) {
  constexpr int64_t kMostElements = int64_t{1} << 22;
  const int m = reference.shape.m, n = reference.shape.n;
  if (!is_exact || reference.sampled() || int64_t{m} * n > kMostElements) return "";
  const RightC right(reference);
  const auto is_held = [&](int row, int column, int source_row, int source_column) {
    const int64_t at = int64_t{row} * n + column;
    return !wrong.is_unwritten(at) &&
           wrong.got(at, right.at(row, column)) == right.at(source_row, source_column);
  };
  // Place p of a tile holds what belongs to place order[p].
  const auto source = [](const std::vector<int>& order, int i) {
    const int size = static_cast<int>(order.size());
    return i / size * size + order[static_cast<size_t>(i % size)];
  };
  const auto strided = [](int size, int side) {  // as `size / side` threads with `side` sums each
    std::vector<int> order;
    for (int i = 0; i < size; ++i) order.push_back(i % side * (size / side) + i / side);
    return order;
  };
  const auto say_strided = [](const char* what, int size, int side) {
    return fmt::format("in each {} {}s of C, {} {} y + i holds what belongs to {} {} i + y (i < {})", size,
                       what, what, side, what, size / side, side);
  };
  constexpr const char* kAsked =
      ": do a thread's sums lie apart where they are multiplied and side by side where they are stored, or "
      "the "
      "other way round?";
  std::vector<std::pair<int, int>> sides = {{1, 1}};  // nothing is moved
  for (const int size : {16, 32, 64, 128, 256})
    for (int side = 2; side < size; side *= 2) sides.emplace_back(size, side);
  for (const auto& [height, of_rows] : sides)
    for (const auto& [width, of_columns] : sides) {
      if ((height == 1 && width == 1) || height > m || width > n) continue;
      const std::vector<int> rows = strided(height, of_rows), columns = strided(width, of_columns);
      bool holds = true;
      for (int row = 0; row < m && holds; ++row)
        for (int column = 0; column < n && holds; ++column)
          holds = is_held(row, column, source(rows, row), source(columns, column));
      if (!holds) continue;
      const std::string of_row = height > 1 ? say_strided("row", height, of_rows) : "",
                        of_column = width > 1 ? say_strided("column", width, of_columns) : "";
      return of_row + (of_row.empty() || of_column.empty() ? "" : ", and ") + of_column + kAsked;
    }
  for (const bool is_row : {true, false})
    for (const int size : {16, 32, 64, 128, 256}) {
      const int lines = is_row ? m : n, length = is_row ? n : m;
      if (size >= lines) continue;
      const auto holds = [&](int at, int from) {
        for (int first = 0; first + at < lines; first += size)
          for (int i = 0; i < length; ++i)
            if (!(is_row ? is_held(first + at, i, first + from, i) : is_held(i, first + at, i, first + from)))
              return false;
        return true;
      };
      std::vector<int> order;
      std::set<int> taken;
      for (int at = 0; at < size && static_cast<int>(order.size()) == at; ++at)
        for (int from = 0; from < size; ++from)
          if (!taken.count(from) && holds(at, from)) {
            order.push_back(from), taken.insert(from);
            break;
          }
      if (static_cast<int>(order.size()) < size) continue;
      std::string which;
      int said = 0;
      const char* const what = is_row ? "row" : "column";
      for (int at = 0; at < size && said < 2; ++at)
        if (order[static_cast<size_t>(at)] != at)
          which += fmt::format("{}{} {} holds what belongs to {} {}", said++ ? ", " : "", what, at, what,
                               order[static_cast<size_t>(at)]);
      return fmt::format(
          "in each {} {}s of C, the {}s lie in another order: {} and so on: are they in one order where {} "
          "is "
          "loaded or multiplied, and in another where sums are stored?",
          size, what, what, which, is_row ? "A" : "B");
    }
  return "";
}

/// Two blocks share a pair of tiles, and the pair's number is not multiplied by 2.
std::string explain_by_number_of_pair(const std::vector<std::vector<WrongElement>>& tiles,
                                      const WrongElements& wrong, const Reference& reference, bool is_exact) {
  const int rows = reference.shape.m;
  if (!is_exact || reference.sampled()) return "";
  for (const int height : {64, 128, 256}) {
    const auto source = [=](int row) {
      return (row / height / 2 + row / height % 2) * height + row % height;
    };
    // Tile 3 is the second one that is wrong.
    if (rows > 3 * height && holds_what_belongs(source, true, tiles, wrong, reference))
      return fmt::format(
          "tile t of C, of {} rows, holds what belongs to tile t / 2 + t % 2: where A is loaded, is the "
          "number of a "
          "pair of tiles not multiplied by 2, or are tiles of {} rows taken from row {} t?",
          height, 2 * height, height);
  }
  return "";
}

/// Halves of the K tiles of one operand are exchanged, or one is taken twice: two blocks load them.
std::string explain_by_halves_along_k(const std::vector<std::vector<WrongElement>>& tiles,
                                      const Reference& reference, bool is_exact,
                                      const std::vector<__nv_bfloat16>& a,
                                      const std::vector<__nv_bfloat16>& b) {
  const int64_t n = reference.shape.n, k = reference.shape.k;
  constexpr int64_t kHalf = kTileWidth / 2;
  if (!is_exact || k <= kHalf) return "";
  const auto is_made = [&](const WrongElement& e, bool is_a, const std::function<int64_t(int64_t)>& instead) {
    double sum = 0;
    for (int64_t i = 0; i < (k + kTileWidth - 1) / kTileWidth * kTileWidth; ++i) {
      const int64_t of_a = is_a ? instead(i) : i, of_b = is_a ? i : instead(i);
      if (of_a < k && of_b < k)
        sum += double{to_float(a[static_cast<size_t>(e.row * k + of_a)])} *
               double{to_float(b[static_cast<size_t>(of_b * n + e.column)])};
    }
    return to_float(to_bf16(static_cast<float>(sum))) == static_cast<float>(e.got);
  };
  const auto makes_all = [&](bool is_a, const std::function<int64_t(int64_t)>& instead) {
    return std::all_of(tiles.begin(), tiles.end(), [&](const std::vector<WrongElement>& examples) {
      return std::all_of(examples.begin(), examples.end(),
                         [&](const WrongElement& e) { return is_made(e, is_a, instead); });
    });
  };
  // Exchanged in either operand, the halves make the same sums.
  if (makes_all(false, [](int64_t i) { return i ^ kHalf; }))
    return "k = 0 to 31 of each K tile of A was multiplied by k = 32 to 63 of B's, and the other way round: "
           "do two "
           "blocks, or two loads, bring each half of a K tile, of A or of B, to the place of the other half?";
  for (const bool is_a : {false, true}) {
    const char *const matrix = is_a ? "A" : "B", *const what = is_a ? "columns" : "rows";
    for (const int64_t even : {int64_t{0}, kHalf}) {
      const auto instead = [=](int64_t i) {
        return i / kTileWidth * kTileWidth + (i / kTileWidth % 2 ? kHalf - even : even) + i % kHalf;
      };
      if (k > kTileWidth && makes_all(is_a, instead))
        return fmt::format(
            "of every second K tile of {}, {} {} to {} were taken for all 64, and of the others {} to {}: is "
            "the half that a block loads that of its part of K, not its own?",
            matrix, what, even, even + kHalf - 1, kHalf - even, kTileWidth - 1 - even);
    }
  }
  return "";
}

/// Halves of K tiles of B were loaded from the neighbouring 64 columns: by two blocks that order them
/// otherwise.
std::string explain_by_panels_of_halves(const std::vector<std::vector<WrongElement>>& tiles,
                                        const Reference& reference, bool is_exact,
                                        const std::vector<__nv_bfloat16>& a,
                                        const std::vector<__nv_bfloat16>& b) {
  const int64_t n = reference.shape.n, k = reference.shape.k;
  constexpr int64_t kHalf = kTileWidth / 2;
  if (!is_exact || n <= kTileWidth || k <= kHalf) return "";
  struct Halves {
    const char* which;
    bool first_of_even, second_of_even, first_of_odd, second_of_odd;
    bool are_taken(int64_t i) const {
      const bool is_second = i / kHalf % 2;
      return i / kTileWidth % 2 ? is_second ? second_of_odd : first_of_odd
             : is_second        ? second_of_even
                                : first_of_even;
    }
  };
  for (const Halves& halves : {Halves{"rows 32 to 63 of each K tile", false, true, false, true},
                               {"rows 0 to 31 of each K tile", true, false, true, false},
                               {"rows 32 to 63 of K tiles 0, 2, ... and rows 0 to 31 of K tiles 1, 3, ...",
                                false, true, true, false},
                               {"rows 0 to 31 of K tiles 0, 2, ... and rows 32 to 63 of K tiles 1, 3, ...",
                                true, false, false, true}}) {
    const auto is_made = [&](const WrongElement& e) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t column = halves.are_taken(i) ? e.column ^ kTileWidth : e.column;
        if (column < n)
          sum += double{to_float(a[static_cast<size_t>(e.row * k + i)])} *
                 double{to_float(b[static_cast<size_t>(i * n + column)])};
      }
      return to_float(to_bf16(static_cast<float>(sum))) == static_cast<float>(e.got);
    };
    if (std::all_of(tiles.begin(), tiles.end(), [&](const std::vector<WrongElement>& examples) {
          return std::all_of(examples.begin(), examples.end(), is_made);
        }))
      return fmt::format(
          "of B, {} were taken from the other 64 columns of every 128: do the blocks that load the two "
          "halves of a "
          "K tile order its panels of 64 columns differently?",
          halves.which);
  }
  return "";
}

/// Tiles of C that hold what belongs to the left, at distances that are multiples of the least: pieces of
/// columns that begin too close to each other. Nothing if something else is wrong, too.
std::string why_columns_spread(const std::vector<Found>& all) {
  std::set<int> distances;
  for (const Found& one : all) {
    const int columns = one.explainer ? one.explainer->columns_left() : 0;
    if (columns <= 0) return "";
    distances.insert(columns);
  }
  const int least = *distances.begin();
  if (distances.size() < 2 || least >= kTileWidth ||
      std::any_of(distances.begin(), distances.end(), [&](int distance) { return distance % least; }))
    return "";
  return fmt::format(
      ": each {} columns of C begin {} columns too far left behind the ones before: the column that tells "
      "one piece of a tile from the next is off where the sums are staged or stored, or where B is loaded",
      kTileWidth, least);
}

}  // namespace

namespace {

/// Right sums at wrong places of C, and halves of K tiles: each explains all that was compared.
std::string explain_by_places_of_c(const std::vector<std::vector<WrongElement>>& tiles,
                                   const WrongElements& wrong, const Reference& reference, bool is_exact,
                                   const MadeBy& made_by, const std::vector<__nv_bfloat16>& a,
                                   const std::vector<__nv_bfloat16>& b) {
  size_t count = 0;
  for (const std::vector<WrongElement>& examples : tiles) count += examples.size();
  if (count < kMinExamples) return "";
  std::string text = is_exact ? explain_pitch_of_c(wrong, reference) : "";
  if (text.empty()) text = explain_by_repeated_rows(tiles, wrong, reference, is_exact, made_by);
  if (text.empty()) text = explain_by_exchanged_pieces(tiles, wrong, reference, is_exact, made_by);
  if (text.empty()) text = explain_by_moved_c(tiles, wrong, reference, is_exact);
  if (text.empty()) text = explain_by_number_of_pair(tiles, wrong, reference, is_exact);
  if (text.empty()) text = explain_by_halves_along_k(tiles, reference, is_exact, a, b);
  if (text.empty()) text = explain_by_panels_of_halves(tiles, reference, is_exact, a, b);
  return text;
}

}  // namespace

std::string explain_pitch_of_c(const WrongElements& wrong, const Reference& reference) {
  const int64_t m = reference.shape.m, n = reference.shape.n, k = reference.shape.k;
  constexpr int64_t kMostElements = int64_t{1} << 22;
  if (reference.sampled() || m < 2 || m * n > kMostElements) return "";
  const auto right_at = [&](int64_t at) {
    return to_float(to_bf16(static_cast<float>(reference.values[static_cast<size_t>(at)])));
  };
  const auto is_held = [&](int64_t at, int64_t pitch) {
    const int64_t row = at / pitch, column = at % pitch;
    // Whose store is bounded by M and N exchanged stores sums of rows or columns that lie outside.
    if (row >= m || column >= n) return wrong.is_unwritten(at) || wrong.got(at, right_at(at)) == 0;
    return !wrong.is_unwritten(at) && wrong.got(at, right_at(at)) == right_at(row * n + column);
  };
  for (int64_t pitch = 8; pitch <= 2 * n; ++pitch) {
    if (pitch == n) continue;
    int64_t at = 0;
    while (at < m * n && is_held(at, pitch)) ++at;
    if (at < m * n) continue;
    const char* const is = pitch == m                                    ? ", and M is that"
                           : pitch == k                                  ? ", and K is that"
                           : pitch == 64 || pitch == 128 || pitch == 256 ? ": is that the tile's width?"
                                                                         : "";
    return fmt::format(
        "element (i, j) of C was stored at element {} i + j, and rows of C are N = {} long: the pitch of C "
        "is {} "
        "where sums are stored{}",
        pitch, n, pitch, is);
  }
  return "";
}

std::string explain(const WrongElements& wrong, const Reference& reference, bool is_exact,
                    const std::vector<__nv_bfloat16>& a, const std::vector<__nv_bfloat16>& b,
                    const MadeBy& made_by) {
  constexpr size_t kTilesTried = 12, kFactsSaid = 3;
  const std::vector<std::vector<WrongElement>> tiles = wrong.examples();
  if (tiles.empty() || tiles.front().empty()) return "";
  if (const std::string text = explain_by_exchanged_tiles(tiles, wrong, reference, is_exact); !text.empty())
    return text;
  if (const std::string text = explain_by_repeated_columns(tiles, wrong, reference, is_exact, made_by);
      !text.empty())
    return text;
  if (const std::string text = explain_by_width_of_tiles(tiles, wrong, reference, is_exact); !text.empty())
    return text;
  if (const std::string text = explain_by_places_of_c(tiles, wrong, reference, is_exact, made_by, a, b);
      !text.empty())
    return text;
  const auto find_in = [&](const std::vector<WrongElement>& examples) {
    return find(examples, wrong, reference, is_exact, made_by, a, b);
  };
  std::vector<std::vector<WrongElement>> tried;  // beside the first: the last, and some between
  for (size_t i = 1; i < std::min(tiles.size(), kTilesTried); ++i) {
    const size_t at = tiles.size() <= kTilesTried ? i : i * (tiles.size() - 1) / (kTilesTried - 1);
    if (tiles[at].size() >= kMinExamples) tried.push_back(tiles[at]);
  }
  if (const std::string text = explain_by_ring(tiles.front(), tried,
                                               [&](const std::vector<WrongElement>& examples) {
                                                 return Explainer(examples, wrong, reference, is_exact,
                                                                  made_by, a, b);
                                               });
      !text.empty())
    return text;
  Found first = find_in(tiles.front());
  const auto explain_order = [&] { return explain_by_order_in_tiles(wrong, reference, is_exact); };
  if (first.fact.empty()) {
    const std::string text = explain_order();
    return text.empty() ? made_by.walks : text;
  }
  if (const std::string text = first.explainer->choose(tried); !text.empty()) first.say(text);
  std::vector<Found> others;
  bool all_alike = true;
  for (const std::vector<WrongElement>& tile : tried) {
    Found found = first;  // what explains the first tile may explain this one, too
    if (!first.explainer->also_explains(tile)) found = find_in(tile);
    if (found.fact.empty() || found.explainer == first.explainer) found.where = place_of_tile(tile[0]);
    all_alike &= !found.fact.empty() && found.advice == first.advice;
    others.push_back(std::move(found));
  }
  if (all_alike) return first.where + first.fact + first.advice;
  // What explains all tiles may look plainer in the first: where a column is 0, what is exchanged with it is.
  tried.push_back(tiles.front());
  for (const Found& other : others)
    if (other.explainer && other.explainer != first.explainer &&
        std::all_of(tried.begin(), tried.end(),
                    [&](const auto& tile) { return other.explainer->also_explains(tile); }))
      return other.where + other.fact + other.advice;
  if (const std::string text = explain_order(); !text.empty()) return text;
  if (!made_by.walks.empty()) return made_by.walks;
  // What a descriptor does, it does in all tiles.
  const auto forget_descriptor = [](Found& one) {
    if (one.fact.find(" took the next ") != one.fact.npos) one.fact = one.advice = "";
  };
  forget_descriptor(first);
  for (Found& other : others) forget_descriptor(other);
  const auto says_nothing = [](const Found& one) { return one.fact.empty(); };
  if (says_nothing(first) && std::all_of(others.begin(), others.end(), says_nothing)) return "";
  std::vector<Found> said = {first};
  for (const Found& other : others) {
    const bool is_new =
        std::none_of(said.begin(), said.end(), [&](const Found& one) { return one.fact == other.fact; });
    if (is_new && said.size() < kFactsSaid) said.push_back(other);
  }
  std::string text;
  for (const Found& one : said) {
    const auto is_same = [&](const Found& other) { return other.fact == one.fact; };
    const auto count = is_same(first) + std::count_if(others.begin(), others.end(), is_same);
    text += (text.empty() ? "" : "; ") + one.where + (one.fact.empty() ? "something else" : one.fact);
    if (count > 1 && !one.fact.empty())
      text += fmt::format(" (so in {} of {} tiles looked at)", count, others.size() + 1);
  }
  others.push_back(first);
  return text + why_columns_spread(others);
}

}  // namespace ladder
