/// @file
/// Which mistake explains a wrong O: rows are computed again with one, and compared with what came out.
#include "05_ws_double_buffer/attention/explanation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <set>

#include "common/host/base/text.hpp"
#include "common/host/problem/bf16.hpp"
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
};

/// A row of Q: its head, and the head of K and V that it should see.
struct Query {
  int64_t head, kv_head;
};

/// How a computation differs from the right one.
struct Mistake {
  std::string text;
  bool rescales_sums = true, rescales_row_sum = true, keeps_maximum = true;
  int lanes_of_maximum = 3, lanes_of_row_sum = 3;  ///< the distances of lanes that exchange what they have
  double scale = 1;                                ///< of scores, times 1 / sqrt(d)
  bool is_masked = true, sees_zeros = false;
  int64_t later_keys = 0;  ///< that a query of a causal problem sees
  int64_t query_shift = 0;
  std::function<Source(const Query&, Source)> k = nullptr, v = nullptr;  ///< none: the right ones
  std::function<int(int64_t block)> times = nullptr;                     ///< how often a block of keys counts
};

struct Computed {
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

/// Row `key` of a block; null for zeros.
const __nv_bfloat16* row_of(const Attention& p, const Source& from, int64_t key) {
  const int64_t at = from.block * kKeysOfBlock + key, matrices = int64_t{p.batch} * p.kv_heads;
  if (from.matrix < 0 || from.matrix >= matrices || at < 0 || at >= p.length) return nullptr;
  return (from.is_v ? p.v : p.k) + (from.matrix * p.length + at) * kDim;
}

/// A row of O, as the kernels compute it block by block, with the mistake.
Computed compute(const Attention& p, int64_t row, const Mistake& mistake) {
  const int64_t head = row / p.length, query = row % p.length;
  const Query me{head, head / (p.heads / p.kv_heads)};
  Computed result;
  const int64_t query_read = query + mistake.query_shift;
  if (query_read < 0 || query_read >= p.length) return result;
  const __nv_bfloat16* const q = p.q + (row + mistake.query_shift) * kDim;
  const int64_t blocks = (p.length + kKeysOfBlock - 1) / kKeysOfBlock;
  const int64_t all = mistake.sees_zeros ? blocks * kKeysOfBlock : p.length;
  const int64_t end =
      p.causal && mistake.is_masked ? std::clamp<int64_t>(query + 1 + mistake.later_keys, 0, all) : all;
  double largest[kLanes], row_sum[kLanes] = {};
  std::fill(largest, largest + kLanes, -INFINITY);
  for (int64_t block = 0; block * kKeysOfBlock < end; ++block) {
    const int times = mistake.times ? mistake.times(block) : 1;
    if (!times) continue;
    Source k{me.kv_head, block, false}, v{me.kv_head, block, true};
    if (mistake.k) k = mistake.k(me, k);
    if (mistake.v) v = mistake.v(me, v);
    const int64_t keys = std::min<int64_t>(kKeysOfBlock, end - block * kKeysOfBlock);
    double score[kKeysOfBlock], most[kLanes];
    std::fill(most, most + kLanes, -INFINITY);
    for (int64_t key = 0; key < keys; ++key) {
      score[key] = 0;
      if (const __nv_bfloat16* const k_row = row_of(p, k, key))
        for (int d = 0; d < kDim; ++d)
          score[key] += double(ladder::to_float(q[d])) * double(ladder::to_float(k_row[d]));
      score[key] *= mistake.scale / std::sqrt(double(kDim));
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
      const __nv_bfloat16* const v_row = row_of(p, v, key);
      for (int d = 0; d < kDim && v_row; ++d) {
        const double value = ladder::to_float(v_row[d]);
        result.value[d] += weight * value;
        result.allowed[d] += weight * std::abs(value);
      }
    }
  }
  combine(row_sum, mistake.lanes_of_row_sum, [](double a, double b) { return a + b; });
  for (int d = 0; d < kDim; ++d) {
    const double sum = row_sum[d % 8 / 2];
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
    add_heads();
    for (const int64_t by : {-kTileRows, -kWarpgroupRows, kWarpgroupRows, kTileRows})
      add(fmt::format("rows of O come from the rows of Q {} {}", std::abs(by), by < 0 ? "above" : "below"))
          .query_shift = by;
  }
  const std::vector<Mistake>& list() const { return list_; }

 private:
  Mistake& add(std::string text) {
    list_.emplace_back().text = std::move(text);
    return list_.back();
  }

  void add_softmax() {
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
    if (!p_.causal) return;
    add("the causal mask is missing: queries see keys behind them").is_masked = false;
    add("the causal mask is off by one: queries see one key too many").later_keys = 1;
    add("the causal mask is off by one: queries do not see their own key").later_keys = -1;
    add("the causal mask is that of 64 rows further down").later_keys = kWarpgroupRows;
    add("the causal mask is that of 64 rows further up").later_keys = -kWarpgroupRows;
  }

  /// In blocks `first` to `last` K or V is replaced by another tile.
  void add_replaced(int64_t blocks, int64_t first, int64_t last, const std::string& which) {
    const char* const names[] = {"the block before", "the same block", "the next block"};
    for (const bool of_v : {false, true}) {
      for (const bool is_v : {of_v, !of_v}) {
        for (const int64_t by : {-1, 0, 1}) {
          if (!by && of_v == is_v) continue;
          Mistake& mistake = add(fmt::format("{}: in place of its {} stood {} of {}", which, of_v ? 'V' : 'K',
                                             is_v ? 'V' : 'K', names[by + 1]));
          (of_v ? mistake.v : mistake.k) = [=](const Query&, Source from) {
            if (from.block < first || from.block > last) return from;
            return Source{from.matrix, std::clamp<int64_t>(from.block + by, 0, blocks - 1), is_v};
          };
        }
      }
    }
  }

  void add_blocks() {
    const int64_t blocks = (p_.length + kKeysOfBlock - 1) / kKeysOfBlock;
    add_replaced(blocks, 0, blocks - 1, "each block of keys");
    if (blocks > 1) add_replaced(blocks, 0, blocks - 2, "each block of keys but the last");
    if (blocks > 1) add_replaced(blocks, 1, blocks - 1, "each block of keys but the first");
    for (int64_t one = 0; one < blocks; ++one) {
      if (one >= kBlocksTriedAlone && one + 1 < blocks) continue;
      const int64_t first = one * kKeysOfBlock, end = std::min<int64_t>(first + kKeysOfBlock, p_.length);
      const std::string name = fmt::format("block {} of keys ({} to {})", one, first, end - 1);
      add(name + " is missing").times = [=](int64_t block) { return block != one; };
      add(name + " counts twice").times = [=](int64_t block) { return 1 + (block == one); };
      if (blocks > 2) add_replaced(blocks, one, one, name);
    }
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
  }

  const Attention& p_;
  std::vector<Mistake> list_;
};

/// Which of the rows that were compared are wrong.
std::string describe(const Attention& p, const std::vector<ComparedRow>& rows) {
  std::set<int64_t> heads, right_heads;
  int64_t first = p.length, last = -1, lower = 0, upper = 0, wrong = 0;
  for (const ComparedRow& row : rows) {
    const int64_t query = row.row % p.length;
    (row.is_wrong ? heads : right_heads).insert(row.row / p.length);
    if (!row.is_wrong) continue;
    first = std::min(first, query), last = std::max(last, query), ++wrong;
    ++(query % kTileRows < kWarpgroupRows ? upper : lower);
  }
  if (wrong == int64_t(rows.size())) return "all rows are wrong";
  std::string text =
      fmt::format("{} of {} rows are wrong, the first is {}, the last {}", wrong, rows.size(), first, last);
  if (!lower && last >= kTileRows) text += ", all in the first 64 of each 128: those of the first warpgroup";
  if (!upper) text += ", all in the last 64 of each 128: those of the second warpgroup";
  std::vector<std::string> names;
  for (const int64_t head : heads) names.push_back(std::to_string(head));
  const bool are_other =
      std::any_of(right_heads.begin(), right_heads.end(), [&](int64_t head) { return !heads.count(head); });
  if (are_other && names.size() <= 4) text += ", all of head " + ladder::join(names, ", ");
  return text;
}

}  // namespace

double rounding_of(double absolute_sum, double value) {
  constexpr double kRounding = 1.0 / 256;  // to bf16: the part of a value by which this changes it, at most
  constexpr double kOfFp32 = 1.0 / 8;  // exponentials and sums, as a part of what rounding the weights costs
  return kRounding * ((1 + kOfFp32) * absolute_sum + std::abs(value));  // each weight, and the result
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
  const auto explains = [&](const Mistake& mistake, const std::vector<int64_t>& examined) {
    return std::all_of(examined.begin(), examined.end(), [&](int64_t row) {
      const Computed computed = compute(p, row, mistake);
      for (int d = 0; d < kDim; ++d)
        if (!(std::abs(ladder::to_float(o[row * kDim + d]) - computed.value[d]) <= computed.allowed[d]))
          return false;
      return true;
    });
  };
  // A mistake that some rows do not make explains less than one that leaves them right.
  constexpr size_t kMostReasons = 2;  // more say nothing
  std::vector<std::string> of_some, of_all;
  const Mistakes mistakes(p);
  for (const Mistake& mistake : mistakes.list())
    if (explains(mistake, wrong)) (explains(mistake, right) ? of_all : of_some).push_back(mistake.text);
  const std::vector<std::string>& reasons = of_all.empty() ? of_some : of_all;
  const std::string where = describe(p, rows);
  if (reasons.empty() || reasons.size() > kMostReasons) return where;
  return ladder::join(reasons, "; or ") + "; " + where;
}

}  // namespace lesson05::attention
