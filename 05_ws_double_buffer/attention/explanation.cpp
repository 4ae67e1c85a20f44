/// @file
/// Which mistake explains a wrong O: rows are computed again with one, and compared with what came out.
#include "05_ws_double_buffer/attention/explanation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <optional>
#include <set>

#include "common/host/base/parallel.hpp"
#include "common/host/base/text.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/verify/output_matrix.hpp"
#include "common/host/verify/verdict.hpp"

namespace lesson05::attention {
namespace {

constexpr int kLanes = 4;                 ///< of a quad, which have a row together
constexpr size_t kRowsExamined = 12;      ///< of those that are wrong
constexpr int64_t kBlocksTriedAlone = 8;  ///< of keys: a mistake in a single one
constexpr int64_t kWarpgroupRows = 64, kTileRows = 128;

/// Where a block of K or V comes from. Outside of the array all is zero.
struct Source {
  int64_t matrix, block;
  bool is_v;
  int64_t further = 0;  ///< so many keys behind where the block begins
};

/// A row of Q: its head, the head of K and V that it should see, and the last block of keys that its tile
/// sees.
struct Query {
  int64_t head, kv_head, last_block;
};

/// Which panel of 64 dimensions stands in place of another one.
enum class Panels {
  kRight,
  kFirstTwice,
  kSecondTwice,
  kNextRow,  ///< 128 bytes behind a row of the first panel is the row below it, behind the last the second
             ///< panel
  kSecondOfNextRow  ///< the second panel is right, but 128 bytes too far: behind the last row lies another
                    ///< array
};

constexpr int kPanelDims = 64;  ///< a row of a panel, as TMA stores it
constexpr int kRowBytes = kPanelDims * int(sizeof(__nv_bfloat16)), kPanelBytes = kKeysOfBlock * kRowBytes;
constexpr int kStepOfProduct = 16;  ///< keys, or dimensions, that one wgmma sums up

/// Where descriptors find a block of K or V, in bytes. Of K one wgmma sums up dimensions, of V keys.
struct Strides {
  int step;  ///< from one wgmma's part to that of the next
  int eight = 8 * kRowBytes;
  int panel = kPanelBytes;

  int byte_of(bool is_v, int key, int d) const {
    const int in_panel = d / kPanelDims * panel;
    return is_v ? in_panel + key / kStepOfProduct * step + key % kStepOfProduct / 8 * eight +
                      key % 8 * kRowBytes + d % kPanelDims * 2
                : in_panel + key / 8 * eight + key % 8 * kRowBytes + d % kPanelDims / kStepOfProduct * step +
                      d % kStepOfProduct * 2;
  }
};

/// How a computation differs from the right one.
struct Mistake {
  std::string text;
  bool rescales_sums = true, rescales_row_sum = true, keeps_maximum = true;
  int lanes_of_maximum = 3, lanes_of_row_sum = 3;  ///< the distances of lanes that exchange what they have
  double scale = 1;                                ///< of scores, times 1 / sqrt(d)
  bool divides = true;                             ///< by the sum over a row
  bool is_masked = true, sees_zeros = false;
  bool stops_at_diagonal = false;  ///< as tiles of the last step do: a query sees no later block of keys
  int64_t later_keys = 0;          ///< that a query of a causal problem sees
  int64_t keys_at_end = 0;         ///< more than there are
  int64_t query_shift = 0;
  bool exchanges_warpgroups = false;                      ///< each takes the rows of Q of the other
  std::function<int64_t(const Query&)> q_head = nullptr;  ///< none: the right one
  Panels q_panels = Panels::kRight, k_panels = Panels::kRight, v_panels = Panels::kRight;
  int64_t tile_rows = 0;                                  ///< of Q, for Panels::kNextRow and kSecondOfNextRow
  bool leaves_rows_open = false;                          ///< those few that are made of another array
  std::optional<Strides> k_strides = {}, v_strides = {};  ///< none: the right ones
  std::function<Source(const Query&, Source)> k = nullptr, v = nullptr;  ///< none: the right ones
  std::function<int(const Query&, int64_t block)> times = nullptr;       ///< how often a block of keys counts
};

struct Computed {
  bool is_known = true;  ///< not where it is made of what lies behind a block
  std::vector<double> value = std::vector<double>(kDim), allowed = std::vector<double>(kDim);
};

/// The two lanes of `distances` (bit 0: lanes that differ by 1, bit 1: by 2) combine what they have.
template <class Combine>
void combine(double (&of_lane)[kLanes], int distances, const Combine& with) {
  for (const int distance : {1, 2}) {
    if (!(distances & distance)) continue;
    double before[kLanes];
    std::copy(of_lane, of_lane + kLanes, before);
    for (int lane = 0; lane < kLanes; ++lane) of_lane[lane] = with(before[lane], before[lane ^ distance]);
  }
}

using Row = std::array<double, kDim>;

/// Row `row` of matrix `matrix` of an array; zeros outside of it.
Row row_of(const Attention& p, const __nv_bfloat16* array, int64_t matrices, int64_t matrix, int64_t row) {
  Row result = {};
  if (matrix < 0 || matrix >= matrices || row < 0 || row >= p.length) return result;
  const __nv_bfloat16* const from = array + (matrix * p.length + row) * kDim;
  std::transform(from, from + kDim, result.begin(), [](__nv_bfloat16 x) { return ladder::to_float(x); });
  return result;
}

/// The row that `read` has at `row`, with these panels, of a tile that has `tile_rows` of them.
template <class Read>
Row with_panels(Panels panels, int64_t row, int64_t tile_rows, const Read& read) {
  constexpr int kHalf = kDim / 2;
  Row result = read(row);
  Row other = result;
  const bool is_last = panels == Panels::kNextRow && (row + 1) % tile_rows == 0;
  if (panels == Panels::kSecondOfNextRow) {
    other = read(row + 1);
    std::copy_n(other.begin() + kHalf, kHalf, result.begin() + kHalf);
  }
  if (panels == Panels::kNextRow) other = read(is_last ? row + 1 - tile_rows : row + 1);
  if (panels == Panels::kSecondTwice) std::copy_n(other.begin() + kHalf, kHalf, result.begin());
  if (panels == Panels::kFirstTwice || panels == Panels::kNextRow)
    std::copy_n(other.begin() + (is_last ? kHalf : 0), kHalf, result.begin() + kHalf);
  return result;
}

/// The key or value at place `key` of a block.
Row row_of(const Attention& p, const Source& from, int64_t key, Panels panels) {
  return with_panels(panels, key, kKeysOfBlock, [&](int64_t at) {
    return row_of(p, from.is_v ? p.v : p.k, int64_t{p.batch} * p.kv_heads, from.matrix,
                  from.block * kKeysOfBlock + from.further + at);
  });
}

/// A block of K or V as a product reads it.
class Block {
 public:
  Block(const Attention& p, const Source& from, int64_t keys, Panels panels,
        const std::optional<Strides>& strides) {
    const int64_t rows = strides ? kKeysOfBlock : keys;
    for (int64_t key = 0; key < rows; ++key) rows_.push_back(row_of(p, from, key, panels));
    if (!strides) return;
    const std::vector<Row> stored = rows_;
    rows_.resize(keys);
    for (int key = 0; key < int(keys); ++key)
      for (int d = 0; d < kDim; ++d) {
        const int byte = strides->byte_of(from.is_v, key, d);
        const int panel = byte / kPanelBytes, row = byte % kPanelBytes / kRowBytes;
        is_known_ &= panel < kDim / kPanelDims;
        rows_[key][d] = is_known_ ? stored[row][panel * kPanelDims + byte % kRowBytes / 2] : 0;
      }
  }
  const Row& operator[](int64_t key) const { return rows_[key]; }
  bool is_known() const { return is_known_; }

 private:
  std::vector<Row> rows_;
  bool is_known_ = true;
};

/// The block that holds the last key a tile of queries has to see.
int64_t last_block_of(const Attention& p, int64_t query) {
  return (p.causal ? query : p.length - 1) / kKeysOfBlock;
}

/// A row of O, as the kernels compute it block by block, with the mistake.
Computed compute(const Attention& p, int64_t row, const Mistake& mistake) {
  const int64_t head = row / p.length, query = row % p.length;
  const Query me{head, head / (p.heads / p.kv_heads), last_block_of(p, query)};
  Computed result;
  const int64_t query_read =
      mistake.exchanges_warpgroups ? query ^ kWarpgroupRows : query + mistake.query_shift;
  if (!mistake.exchanges_warpgroups && (query_read < 0 || query_read >= p.length)) return result;
  if (mistake.q_panels == Panels::kSecondOfNextRow && (query_read + 1) % mistake.tile_rows == 0)
    result.is_known = false;
  const Row q = with_panels(mistake.q_panels, query_read, mistake.tile_rows, [&](int64_t at) {
    return row_of(p, p.q, int64_t{p.batch} * p.heads, mistake.q_head ? mistake.q_head(me) : head, at);
  });
  const int64_t blocks = (p.length + kKeysOfBlock - 1) / kKeysOfBlock;
  const int64_t all = mistake.sees_zeros ? blocks * kKeysOfBlock : p.length + mistake.keys_at_end;
  int64_t end =
      p.causal && mistake.is_masked ? std::clamp<int64_t>(query + 1 + mistake.later_keys, 0, all) : all;
  if (mistake.stops_at_diagonal) end = std::min(end, (me.last_block + 1) * kKeysOfBlock);
  double largest[kLanes], row_sum[kLanes] = {};
  std::fill(largest, largest + kLanes, -INFINITY);
  for (int64_t block = 0; block * kKeysOfBlock < end; ++block) {
    const int times = mistake.times ? mistake.times(me, block) : 1;
    if (!times) continue;
    Source k{me.kv_head, block, false}, v{me.kv_head, block, true};
    if (mistake.k) k = mistake.k(me, k);
    if (mistake.v) v = mistake.v(me, v);
    const int64_t keys = std::min<int64_t>(kKeysOfBlock, end - block * kKeysOfBlock);
    const Block keys_read(p, k, keys, mistake.k_panels, mistake.k_strides),
        values_read(p, v, keys, mistake.v_panels, mistake.v_strides);
    result.is_known &= keys_read.is_known() && values_read.is_known();
    double score[kKeysOfBlock], most[kLanes];
    std::fill(most, most + kLanes, -INFINITY);
    for (int64_t key = 0; key < keys; ++key) {
      const Row& k_row = keys_read[key];
      score[key] = std::inner_product(q.begin(), q.end(), k_row.begin(), 0.0) * mistake.scale /
                   std::sqrt(double(kDim));
      double& of_lane = most[key % 8 / 2];
      of_lane = std::max(of_lane, score[key]);
    }
    combine(most, mistake.lanes_of_maximum, [](double a, double b) { return std::max(a, b); });
    double correction[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      if (mistake.keeps_maximum) most[lane] = std::max(most[lane], largest[lane]);
      correction[lane] = largest[lane] == -INFINITY ? 0 : std::exp(largest[lane] - most[lane]);
      largest[lane] = most[lane];
      if (mistake.rescales_row_sum) row_sum[lane] *= correction[lane];
    }
    for (int d = 0; d < kDim && mistake.rescales_sums; ++d) {
      result.value[d] *= correction[d % 8 / 2];
      result.allowed[d] *= correction[d % 8 / 2];
    }
    for (int64_t key = 0; key < keys; ++key) {
      const double weight = times * std::exp(score[key] - largest[key % 8 / 2]);
      row_sum[key % 8 / 2] += weight;
      const Row& v_row = values_read[key];
      for (int d = 0; d < kDim; ++d) {
        result.value[d] += weight * v_row[d];
        result.allowed[d] += weight * std::abs(v_row[d]);
      }
    }
  }
  combine(row_sum, mistake.lanes_of_row_sum, [](double a, double b) { return a + b; });
  for (int d = 0; d < kDim; ++d) {
    const double sum = mistake.divides ? row_sum[d % 8 / 2] : 1;
    result.value[d] /= sum;
    result.allowed[d] = rounding_of(result.allowed[d] / sum, result.value[d]);
  }
  return result;
}

/// All mistakes that are tried.
class Mistakes {
 public:
  explicit Mistakes(const Attention& p) : p_(p) {
    add_softmax();
    add_scale_and_mask();
    add_blocks();
    add_places();
    add_exchanged();
    add_panels();
    add_strides();
    add_heads();
    for (const int64_t by : {-kTileRows, -kWarpgroupRows, kWarpgroupRows, kTileRows})
      add(fmt::format("rows of O come from the rows of Q {} {}", std::abs(by), by < 0 ? "above" : "below"))
          .query_shift = by;
    add("of every 128 rows of O, the first 64 come from the last 64 of Q, and the last from the first: do "
        "two "
        "warpgroups take each other's rows, where Q is multiplied or where O is stored?")
        .exchanges_warpgroups = true;
  }
  const std::vector<Mistake>& list() const { return list_; }

 private:
  Mistake& add(std::string text) {
    list_.emplace_back().text = std::move(text);
    return list_.back();
  }

  void add_softmax() {
    add("O was not divided by the sum over a row (the denominator)").divides = false;
    const std::string rose = " by the correction when the maximum of a row rose";
    add("O was not multiplied" + rose).rescales_sums = false;
    add("the sum over a row (the denominator) was not multiplied" + rose).rescales_row_sum = false;
    Mistake& neither = add("neither O nor the sum over a row was multiplied" + rose +
                           ": is the correction made of the old maximum and the new?");
    neither.rescales_sums = neither.rescales_row_sum = false;
    const std::string own = "each block of keys is weighted with its own maximum, and ";
    Mistake& sums_only = add(own + "O is not corrected");
    sums_only.rescales_sums = sums_only.keeps_maximum = false;
    Mistake& nothing = add(own + "nothing is corrected");
    nothing.rescales_sums = nothing.rescales_row_sum = nothing.keeps_maximum = false;
    const char* const with[] = {"no other", "the one that differs by 1", "the one that differs by 2"};
    for (int distances = 0; distances < 3; ++distances) {
      const std::string only = fmt::format(" with {}; a row belongs to the four of a quad", with[distances]);
      Mistake& both = add("a lane combines its maximum and its sum" + only);
      both.lanes_of_maximum = both.lanes_of_row_sum = distances;
      add("a lane combines its sum" + only).lanes_of_row_sum = distances;
      add("a lane combines its maximum" + only).lanes_of_maximum = distances;
    }
  }

  void add_scale_and_mask() {
    const double d = std::sqrt(double(kDim));
    add("scores are not divided by sqrt(d)").scale = d;
    add("scores are divided by sqrt(d) twice").scale = 1 / d;
    add("the exponential is one to base 2, of scores not multiplied by log2(e)").scale = std::numbers::ln2;
    add("the exponential is one to base e, of scores multiplied by log2(e)").scale = std::numbers::log2e;
    add(fmt::format("keys from {} on count, zeros of TMA: their score of 0 has a weight; mask them",
                    p_.length))
        .sees_zeros = true;
    if (!p_.causal) {
      add("the mask of the end is off by one: queries see a zero behind the last key").keys_at_end = 1;
      add("the mask of the end is off by one: queries do not see the last key").keys_at_end = -1;
      return;
    }
    for (const bool stops : {false, true}) {
      const auto add_mask = [&](const char* text) -> Mistake& {
        Mistake& mistake = add(text);
        mistake.stops_at_diagonal = stops;
        return mistake;
      };
      add_mask("the causal mask is missing: queries see keys behind them").is_masked = false;
      add_mask("the causal mask is off by one: queries see one key too many").later_keys = 1;
      add_mask("the causal mask is that of 64 rows further down").later_keys = kWarpgroupRows;
    }
    add("the causal mask is off by one: queries do not see their own key").later_keys = -1;
    add("the causal mask is that of 64 rows further up").later_keys = -kWarpgroupRows;
    add("causal tiles stop before the block of keys that holds their diagonal").times =
        [](const Query& me, int64_t block) { return !me.last_block || block < me.last_block; };
  }

  using IsIn = std::function<bool(const Query&, int64_t block)>;

  /// In some blocks K or V is replaced by another tile.
  void add_replaced(const std::string& which, const IsIn& is_in) {
    const char* const names[] = {"the block before", "the same block", "the next block"};
    for (const bool of_v : {false, true}) {
      for (const bool is_v : {of_v, !of_v}) {
        for (const int64_t by : {-1, 0, 1}) {
          if (!by && of_v == is_v) continue;
          Mistake& mistake = add(fmt::format("{} used {} of {} in place of its own {}", which,
                                             is_v ? 'V' : 'K', names[by + 1], of_v ? 'V' : 'K'));
          (of_v ? mistake.v : mistake.k) = [=](const Query& me, Source from) {
            return is_in(me, from.block) ? Source{from.matrix, from.block + by, is_v} : from;
          };
        }
      }
    }
  }

  void add_blocks() {
    const int64_t blocks = (p_.length + kKeysOfBlock - 1) / kKeysOfBlock;
    add_replaced("each block of keys", [](const Query&, int64_t) { return true; });
    if (blocks > 1) {
      add_replaced("each block of keys but the last",
                   [=](const Query&, int64_t block) { return block + 1 < blocks; });
      add_replaced("each block of keys but the first", [](const Query&, int64_t block) { return block > 0; });
      if (p_.causal) {
        add_replaced("each block of keys but the last one of a tile",
                     [](const Query& me, int64_t block) { return block < me.last_block; });
        add_replaced("the last block of keys of a tile",
                     [](const Query& me, int64_t block) { return block == me.last_block; });
      }
    }
    for (int64_t one = 0; one < blocks; ++one) {
      if (one >= kBlocksTriedAlone && one + 1 < blocks) continue;
      const int64_t first = one * kKeysOfBlock, end = std::min<int64_t>(first + kKeysOfBlock, p_.length);
      const std::string name = fmt::format("block {} of keys ({} to {})", one, first, end - 1);
      add(name + " is missing").times = [=](const Query&, int64_t block) { return block != one; };
      add(name + " counts twice").times = [=](const Query&, int64_t block) { return 1 + (block == one); };
      if (blocks > 2) add_replaced(name, [=](const Query&, int64_t block) { return block == one; });
    }
  }

  /// A block is loaded from a row that is not its number times its height.
  void add_places() {
    const auto from_row = [](int64_t height, int64_t behind) {
      return [=](const Query&, Source from) {
        from.further = from.block * (height - kKeysOfBlock) + behind;
        return from;
      };
    };
    const auto add_height = [&](const char* name, int64_t height) -> Mistake& {
      const std::string row = height == 1 ? "i" : height ? fmt::format("{} i", height) : "0";
      return add(
          fmt::format("block i of {} was loaded from row {} on, not from row {} i", name, row, kKeysOfBlock));
    };
    for (const int64_t height : {0, 1, 32, 64, 256}) {
      Mistake& both = add_height("K and V", height);
      both.k = both.v = from_row(height, 0);
      add_height("K", height).k = from_row(height, 0);
      add_height("V", height).v = from_row(height, 0);
    }
    // Loads are numbered in the order of their use: a block of K, one of V, the next one of K, ...
    for (const int64_t height : {1, 128}) {
      const std::string row = fmt::format("{} i", 2 * height),
                        why = "is the row made of the number of a load, where K and V alternate?";
      Mistake& both =
          add(fmt::format("block i of K was loaded from row {} on, and that of V from row {} + {}, not both "
                          "from row {} i: {}",
                          row, row, height, kKeysOfBlock, why));
      both.k = from_row(2 * height, 0);
      both.v = from_row(2 * height, height);
      add(fmt::format("block i of V was loaded from row {} + {} on, not from row {} i: {}", row, height,
                      kKeysOfBlock, why))
          .v = from_row(2 * height, height);
    }
  }

  /// K and V stand in one ring: where loader and reader do not agree on the order, both are wrong at once.
  void add_exchanged() {
    Mistake& all = add("K and V are exchanged: scores are made of V, and O of K");
    all.k = [](const Query&, Source from) { return Source{from.matrix, from.block, true}; };
    all.v = [](const Query&, Source from) { return Source{from.matrix, from.block, false}; };
    const int64_t last_of_all = last_block_of(p_, p_.length - 1);
    for (const bool is_of_tile : {true, false}) {
      Mistake& order =
          add("K and V are loaded in another order than they are used: scores of a block of keys are made of "
              "V of the block before, and O of K of the next block");
      order.k = [](const Query&, Source from) {
        return from.block ? Source{from.matrix, from.block - 1, true} : from;
      };
      order.v = [=](const Query& me, Source from) {
        const int64_t last = is_of_tile ? me.last_block : last_of_all;
        return from.block < last ? Source{from.matrix, from.block + 1, false} : from;
      };
    }
  }

  void add_panels() {
    constexpr int kHalf = kDim / 2;
    for (const Panels panels : {Panels::kFirstTwice, Panels::kSecondTwice}) {
      const bool is_first = panels == Panels::kFirstTwice;
      const std::string first = fmt::format("0 to {}", kHalf - 1),
                        second = fmt::format("{} to {}", kHalf, kDim - 1),
                        text = fmt::format(" took dimensions {} twice, and not {},",
                                           is_first ? first : second, is_first ? second : first);
      add("the product Q K^T" + text + " of Q").q_panels = panels;
      add("the product Q K^T" + text + " of K").k_panels = panels;
      add("the product with V" + text + " of V").v_panels = panels;
      Mistake& scores = add("the product Q K^T" + text + " of Q and K");
      scores.q_panels = scores.k_panels = panels;
      Mistake& all = add("both products" + text + " of Q, K and V");
      all.q_panels = all.k_panels = all.v_panels = panels;
    }
    const std::string text = fmt::format(
        "the product Q K^T took dimensions 0 to {} of the next row in place of {} to {}: the offset of the "
        "second panel is missing from the descriptor of ",
        kHalf - 1, kHalf, kDim - 1);
    for (const int64_t tile_rows : {kWarpgroupRows, kTileRows}) {
      Mistake& mistake = add(text + "Q");
      mistake.q_panels = Panels::kNextRow;
      mistake.tile_rows = tile_rows;
    }
    for (const int64_t tile_rows : {kWarpgroupRows, kTileRows}) {
      Mistake& too_far = add(fmt::format(
          "the product Q K^T took dimensions {} to {} of the next row: the offset within the second "
          "panel in the descriptor of Q is {} bytes, the width of a panel, too large",
          kHalf, kDim - 1, kHalf * int(sizeof(__nv_bfloat16))));
      too_far.q_panels = Panels::kSecondOfNextRow;
      too_far.tile_rows = tile_rows;
      too_far.leaves_rows_open = p_.length > 1;  // the last of a tile
    }
    add(text + "K").k_panels = Panels::kNextRow;
  }

  void add_strides() {
    constexpr int kStepOfK = kStepOfProduct * 2, kStepOfV = kStepOfProduct * kRowBytes;
    constexpr int kLargestTried = 4096;
    const auto text = [](const char* product, const char* of, const char* what, int is, int must) {
      return fmt::format(
          "the product {} took the {} of {} {} bytes further on, where they lie {} bytes further on: {} is "
          "wrong",
          product, what, of, is, must,
          must == kStepOfK || must == kStepOfV ? "what is added to its descriptor"
                                               : "a stride of its descriptor");
    };
    for (const bool is_v : {false, true}) {
      const char *const product = is_v ? "with V" : "Q K^T", *const of = is_v ? "V" : "K";
      const int right_step = is_v ? kStepOfV : kStepOfK;
      const Strides right{right_step};
      const auto try_one = [&](const char* what, int Strides::*which, int bytes) {
        if (right.*which == bytes) return;
        Mistake& mistake = add(text(product, of, what, bytes, right.*which));
        Strides& strides = (is_v ? mistake.v_strides : mistake.k_strides).emplace(right);
        strides.*which = bytes;
      };
      for (int bytes = 0; bytes <= kLargestTried; bytes = bytes ? 2 * bytes : 16) {
        try_one(is_v ? "next 16 keys" : "next 16 dimensions", &Strides::step, bytes);
        try_one("next 8 keys", &Strides::eight, bytes);
        if (is_v && bytes) try_one("second 64 dimensions", &Strides::panel, bytes);
      }
    }
    const Strides right{kStepOfV};
    add(fmt::format("the product with V took the next 8 keys of V {} bytes further on and the second 64 "
                    "dimensions {}, where they lie {} and {} bytes further on: are the leading and the "
                    "stride offset of its descriptor exchanged?",
                    right.panel, right.eight, right.eight, right.panel))
        .v_strides = Strides{kStepOfV, right.panel, right.eight};
  }

  void add_heads() {
    const auto add_head = [&](const char* name, const std::function<int64_t(const Query&)>& matrix) {
      for (const int64_t first : {0, 1}) {
        const auto change = [first, matrix](const Query& me, Source from) {
          if (from.block >= first) from.matrix = matrix(me);
          return from;
        };
        const std::string text =
            fmt::format(" of {}{}", name, first ? ", from the second block of keys on" : "");
        add("K is that" + text).k = change;
        add("V is that" + text).v = change;
        Mistake& both = add("K and V are those" + text);
        both.k = both.v = change;
      }
    };
    add_head("head number `head`, which is Q's and not divided by how many share one",
             [](const Query& me) { return me.head; });
    add_head("head % kv_heads", [heads = p_.heads, kv_heads = p_.kv_heads](const Query& me) {
      return me.head / heads * kv_heads + me.head % heads % kv_heads;
    });
    add_head("the next head", [](const Query& me) { return me.kv_head + 1; });
    add_head("the head before", [](const Query& me) { return me.kv_head - 1; });
    add_head("head 0 of the first sequence", [](const Query&) { return int64_t{0}; });
    add_head("the other head of each two", [](const Query& me) { return me.kv_head ^ 1; });
    const auto add_q = [&](const char* name, const std::function<int64_t(int64_t)>& other) {
      add(fmt::format("Q is that of {}", name)).q_head = [=](const Query& me) { return other(me.head); };
      Mistake& all = add(fmt::format("O is that of {}", name));
      all.q_head = [=](const Query& me) { return other(me.head); };
      all.k = all.v = [=, sharing = p_.heads / p_.kv_heads](const Query& me, Source from) {
        return Source{other(me.head) / sharing, from.block, from.is_v};
      };
    };
    add_q("the next head", [](int64_t head) { return head + 1; });
    add_q("the head before", [](int64_t head) { return head - 1; });
    add_q("the other head of each two", [](int64_t head) { return head ^ 1; });
  }

  const Attention& p_;
  std::vector<Mistake> list_;
};

/// Which of the rows that were compared are wrong; `are` says what that is.
std::string describe_wrong(const Attention& p, const std::vector<ComparedRow>& rows,
                           const char* are = "are wrong") {
  std::set<int64_t> heads, right_heads;
  int64_t first = p.length, last = -1, lower = 0, upper = 0, wrong = 0;
  for (const ComparedRow& row : rows) {
    const int64_t query = row.row % p.length;
    (row.is_wrong ? heads : right_heads).insert(row.row / p.length);
    if (!row.is_wrong) continue;
    first = std::min(first, query), last = std::max(last, query), ++wrong;
    ++(query % kTileRows < kWarpgroupRows ? upper : lower);
  }
  if (wrong == int64_t(rows.size())) return fmt::format("all rows {}", are);
  std::string text =
      fmt::format("{} of {} rows {}, the first is {}, the last {}", wrong, rows.size(), are, first, last);
  if (!lower && last >= kTileRows) text += ", all in the first 64 of each 128: those of the first warpgroup";
  if (!upper) text += ", all in the last 64 of each 128: those of the second warpgroup";
  std::vector<std::string> names;
  for (const int64_t head : heads) names.push_back(std::to_string(head));
  const bool are_other =
      std::any_of(right_heads.begin(), right_heads.end(), [&](int64_t head) { return !heads.count(head); });
  if (are_other && names.size() <= 4) text += ", all of head " + ladder::join(names, ", ");
  return text;
}

/// Which of the rows that were compared are wrong, and which of these have no finite values.
std::string describe(const Attention& p, const std::vector<__nv_bfloat16>& o,
                     const std::vector<ComparedRow>& rows) {
  std::set<int64_t> queries;
  size_t infinite = 0;
  for (const ComparedRow& row : rows) {
    const auto first = o.begin() + row.row * kDim;
    if (std::all_of(first, first + kDim, ladder::is_finite)) continue;
    queries.insert(row.row % p.length);
    ++infinite;
  }
  if (infinite == rows.size()) return "all rows are NaN or infinite";
  std::string text = describe_wrong(p, rows);
  if (!infinite) return text;
  if (queries.size() == 1)
    return text + fmt::format("; query {}{} is NaN or infinite", *queries.begin(),
                              infinite > 1 ? fmt::format(" of {} heads", infinite) : "");
  return text + fmt::format("; {} rows are NaN or infinite, the first is {}, the last {}", infinite,
                            *queries.begin(), *queries.rbegin());
}

}  // namespace

double rounding_of(double absolute_sum, double value) {
  constexpr double kRounding = 1.0 / 256;  // to bf16: the part of a value by which this changes it, at most
  constexpr double kOfFp32 = 1.0 / 8;  // exponentials and sums, as a part of what rounding the weights costs
  return kRounding * ((1 + kOfFp32) * absolute_sum + std::abs(value));  // each weight, and the result
}

std::string describe_unwritten(const Attention& p, const std::vector<__nv_bfloat16>& o) {
  const auto is_unwritten = [&](int64_t row, int64_t d) {
    return ladder::bf16_bits(o[row * kDim + d]) == ladder::kPoisonBits;
  };
  std::vector<ComparedRow> rows;
  std::set<int64_t> dimensions;  // that are missing where a row is not missing as a whole
  bool misses_whole_rows = false, misses_the_same = true;
  for (int64_t row = 0; row < int64_t(o.size()) / kDim; ++row) {
    std::set<int64_t> missing;
    for (int64_t d = 0; d < kDim; ++d)
      if (is_unwritten(row, d)) missing.insert(d);
    const bool is_whole = missing.size() == size_t(kDim);
    rows.push_back({row, is_whole});
    misses_whole_rows |= is_whole;
    if (missing.empty() || is_whole) continue;
    misses_the_same &= dimensions.empty() || dimensions == missing;
    dimensions.insert(missing.begin(), missing.end());
  }
  std::vector<std::string> said;
  if (misses_whole_rows) {
    said.push_back(describe_wrong(p, rows, "were never written"));
    // Where the others of each tile all are there.
    const bool are_all = std::all_of(rows.begin(), rows.end(), [&](const ComparedRow& row) {
      return row.is_wrong == (row.row % p.length % kTileRows >= kWarpgroupRows);
    });
    if (are_all && p.length > kWarpgroupRows)
      said.back() += ", and no other row is missing: do both warpgroups store the rows of the first one?";
  }
  if (!dimensions.empty())
    said.push_back(
        fmt::format("{} rows lack {}dimensions from {} to {}", misses_whole_rows ? "other" : "some",
                    misses_the_same ? "the " : "some of the ", *dimensions.begin(), *dimensions.rbegin()));
  return ladder::join(said, "; ");
}

std::string explain(const Attention& p, const std::vector<__nv_bfloat16>& o,
                    const std::vector<ComparedRow>& rows) {
  const auto spread = [&](bool is_wrong) {
    std::vector<int64_t> all, some;
    for (const ComparedRow& row : rows)
      if (row.is_wrong == is_wrong) all.push_back(row.row);
    const size_t count = std::min(all.size(), kRowsExamined);
    for (size_t i = 0; i < count; ++i) some.push_back(all[(i + 1) * all.size() / count - 1]);
    return some;
  };
  const std::vector<int64_t> wrong = spread(true), right = spread(false);
  std::atomic<bool> is_shown = false;  // by a row that is known
  const auto explains_row = [&](const Mistake& mistake, int64_t row) {
    const Computed computed = compute(p, row, mistake);
    if (!computed.is_known) return mistake.leaves_rows_open;
    for (int d = 0; d < kDim; ++d) {
      const double is = ladder::to_float(o[row * kDim + d]);
      if (!std::isfinite(is) && !std::isfinite(computed.value[d])) continue;  // of a row that sees no key
      if (!(std::abs(is - computed.value[d]) <= computed.allowed[d])) return false;
    }
    is_shown = true;
    return true;
  };
  // Most mistakes fail at the first of a few rows; only what is left is tried on all of them.
  const auto explains = [&](const Mistake& mistake, bool is_wrong) {
    const auto explains_it = [&](int64_t row) { return explains_row(mistake, row); };
    const std::vector<int64_t>& some = is_wrong ? wrong : right;
    is_shown = !is_wrong;
    if (!std::all_of(some.begin(), some.end(), explains_it)) return false;
    std::atomic<bool> explains_all = true;
    ladder::parallel_for(int64_t(rows.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end && explains_all; ++i)
        if (rows[i].is_wrong == is_wrong && !explains_it(rows[i].row)) explains_all = false;
    });
    return explains_all && is_shown;
  };
  // A mistake that some rows do not make explains less than one that leaves them right.
  constexpr size_t kMostReasons = 2;  // more say nothing
  std::vector<std::string> of_some, of_all;
  const Mistakes mistakes(p);
  for (const Mistake& mistake : mistakes.list()) {
    if (!explains(mistake, true)) continue;
    std::vector<std::string>& to = explains(mistake, false) ? of_all : of_some;
    if (std::find(to.begin(), to.end(), mistake.text) == to.end()) to.push_back(mistake.text);
  }
  const std::vector<std::string>& reasons = of_all.empty() ? of_some : of_all;
  const std::string where = describe(p, o, rows);
  if (reasons.empty() || reasons.size() > kMostReasons) return where;
  return ladder::join(reasons, "; or ") + "; " + where;
}

}  // namespace lesson05::attention
