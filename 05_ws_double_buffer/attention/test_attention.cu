/// @file
/// Attention: every step on every kind of data, at lengths around what blocks, tiles and the ring hold.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "05_ws_double_buffer/attention/check.hpp"
#include "05_ws_double_buffer/attention/explanation.hpp"
#include "05_ws_double_buffer/attention/kernels.hpp"
#include "05_ws_double_buffer/attention/softmax.cuh"
#include "05_ws_double_buffer/attention/tiles.cuh"
#include "common/host/base/exit_codes.hpp"
#include "common/host/device/device.hpp"
#include "common/testing/gemm_checks.hpp"

using namespace lesson05::attention;
using Catch::Matchers::ContainsSubstring;
using ladder::testing::for_each_schedule;
using ladder::testing::for_schedules_by_turns;
using ladder::testing::for_two_schedules;

namespace attention_test {
namespace {

void skip_unless_runnable() {
  if (ladder::on_cpu_device()) return;
  try {
    ladder::require_device();
  } catch (const ladder::BadInput& error) {
    SKIP(error.what());
  }
  if (const std::string reason = ladder::why_not({ladder::kHopper, {"wgmma"}}, ladder::this_target());
      !reason.empty())
    SKIP("attention " + reason);
}

/// Checks a step on the schedule in use.
void check_step(const Step& step, Checker& checker, const Extent& extent, const std::string& data) {
  INFO("step " << step.name << ", " << extent.name() << ", " << data);
  CHECK(checker.complaint([&](const Attention& p) { step.launch(p, nullptr); }) == "");
}

void check_steps(const Extent& extent, const std::string& data) {
  Checker checker(extent, data, 1);
  for (const Step& step : steps()) check_step(step, checker, extent, data);
}

/// What the checker says of a kernel that computes something else.
std::string said_of(const Extent& extent, const std::function<void(const Attention&)>& launch) {
  return Checker(extent, "random", 1).complaint(launch);
}

}  // namespace

/// The scores of 64 x 64 small integers, and their product with V: each element is exact.
__global__ void __launch_bounds__(ladder::kWarpgroup, 1)
    multiply_twice(const __grid_constant__ TensorMaps maps, float* s_out, float* o_out) {
  auto& smem = ladder::shared_storage<SharedStorage<64, 2>>();
  if (threadIdx.x == 0) {
    smem.init(1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  ladder::Producer load_q(smem.pipe_q);
  ladder::Producer load_kv(smem.pipe_kv);
  if (threadIdx.x == 0) {
    load_tile(smem.q, load_q, maps.q, 0, 0);
    load_tile(smem.kv, load_kv, maps.k, 0, 0);
    load_tile(smem.kv, load_kv, maps.v, 0, 0);
  }
  ladder::Consumer pipe_q(smem.pipe_q);
  ladder::Consumer pipe_kv(smem.pipe_kv);
  pipe_q.consumer_wait();
  Scores s;
  start_scores(s, smem.q[0], 0, smem.kv[pipe_kv.consumer_wait()]);
  finish(s);
  Weights weights;
  to_weights(s, weights);
  Sums o;
  ladder::clear(o);
  start_sums(o, weights, smem.kv[pipe_kv.consumer_wait()]);
  finish(o);
  ptx::keep_in_registers(weights);
  for (int i = 0; i < kDim / 2; ++i) {
    const int row = first_row_of_thread() + i % 4 / 2 * 8,
              column = i / 4 * 8 + 2 * (ladder::lane_index() % 4) + i % 2;
    s_out[row * kKeys + column] = s[i];
    o_out[row * kDim + column] = o[i];
  }
}

}  // namespace attention_test

using namespace attention_test;

TEST_CASE("attention: both products are exact for small integers") {
  skip_unless_runnable();
  // Scores up to 256 keep all their bits as weights.
  const auto element_q = [](int i, int d) { return d < 8 ? (i + d) % 5 - 2 : 0; };
  const auto element_k = [](int j, int d) { return (j * 3 + d) % 5 - 2; };
  const auto element_v = [](int j, int d) { return (j + 2 * d) % 7 - 3; };
  std::vector<__nv_bfloat16> q(64 * kDim), k(kKeys * kDim), v(kKeys * kDim);
  for (int i = 0; i < 64 * kDim; ++i) q[i] = __float2bfloat16(float(element_q(i / kDim, i % kDim)));
  for (int i = 0; i < kKeys * kDim; ++i) {
    k[i] = __float2bfloat16(float(element_k(i / kDim, i % kDim)));
    v[i] = __float2bfloat16(float(element_v(i / kDim, i % kDim)));
  }
  const ladder::DeviceBuffer<__nv_bfloat16> on_device[] = {ladder::DeviceBuffer<__nv_bfloat16>(q),
                                                           ladder::DeviceBuffer<__nv_bfloat16>(k),
                                                           ladder::DeviceBuffer<__nv_bfloat16>(v)};
  Attention p{
      {1, 1, 1, kKeys, false}, on_device[0].data(), on_device[1].data(), on_device[2].data(), nullptr};
  p.length = 64;
  TensorMaps maps = make_tensor_maps(p, 64, kKeys);
  p.length = kKeys;
  maps.k = make_tensor_maps(p, 64, kKeys).k;
  maps.v = make_tensor_maps(p, 64, kKeys).v;
  for_two_schedules([&] {
    ladder::DeviceBuffer<float> s(64 * kKeys), o(64 * kDim);
    using Storage = SharedStorage<64, 2>;
    ladder::launch(
        multiply_twice,
        {.name = "multiply_twice", .grid = 1, .block = ladder::kWarpgroup, .shared_bytes = sizeof(Storage)},
        maps, s.data(), o.data());
    CUDA_CHECK(cudaDeviceSynchronize());
    const std::vector<float> got_s = ladder::download(s.data(), s.size()),
                             got_o = ladder::download(o.data(), o.size());
    int wrong_scores = 0, wrong_sums = 0;
    for (int i = 0; i < 64; ++i) {
      std::vector<int> scores(kKeys);
      for (int j = 0; j < kKeys; ++j) {
        for (int d = 0; d < kDim; ++d) scores[j] += element_q(i, d) * element_k(j, d);
        wrong_scores += got_s[i * kKeys + j] != float(scores[j]);
      }
      for (int d = 0; d < kDim; ++d) {
        int sum = 0;
        for (int j = 0; j < kKeys; ++j) sum += scores[j] * element_v(j, d);
        wrong_sums += got_o[i * kDim + d] != float(sum);
      }
    }
    CHECK(wrong_scores == 0);
    CHECK(wrong_sums == 0);
  });
}

TEST_CASE("attention: every step is right from one key to laps of the ring") {
  skip_unless_runnable();
  const bool causal = GENERATE(false, true);
  for (const int length : {1, 63, 64, 65, 127, 128, 129, 256, 300, 513, 700}) {
    const Extent extent{1, 1, 1, length, causal};
    Checker checker(extent, "random", 1);
    for_schedules_by_turns([&] {
      for (const Step& step : steps()) check_step(step, checker, extent, "random");
    });
  }
}

TEST_CASE("attention: every step is right on every schedule") {
  skip_unless_runnable();
  const bool causal = GENERATE(false, true);
  const Extent extent{1, 2, 1, 330, causal};
  Checker checker(extent, "rising", 1);
  for_each_schedule([&] {
    for (const Step& step : steps()) check_step(step, checker, extent, "rising");
  });
}

TEST_CASE(
    "attention: every step is right where all keys weigh the same, one outweighs all, and maxima grow") {
  skip_unless_runnable();
  const bool causal = GENERATE(false, true);
  const std::string data = GENERATE("equal", "huge", "rising", "falling");
  for_schedules_by_turns([&] { check_steps({1, 1, 1, 450, causal}, data); });
}

TEST_CASE("attention: heads and sequences of every number share K and V as they should") {
  skip_unless_runnable();
  const bool causal = GENERATE(false, true);
  const Extent extent = GENERATE(Extent{2, 4, 2, 70, false}, Extent{1, 6, 1, 130, false},
                                 Extent{3, 1, 1, 129, false}, Extent{1, 3, 3, 1, false});
  for_schedules_by_turns([&] {
    check_steps({extent.batch, extent.heads, extent.kv_heads, extent.length, causal}, "random");
  });
}

TEST_CASE("attention: the checker sees what is wrong, and where") {
  skip_unless_runnable();
  const Step& step = steps().front();
  const Extent extent{2, 2, 2, 150, true};
  const auto launched_with = [&](const std::function<void(Attention&)>& change) {
    return said_of(extent, [&](Attention p) {
      change(p);
      step.launch(p, nullptr);
    });
  };
  CHECK(launched_with([](Attention&) {}) == "");
  CHECK_THAT(launched_with([](Attention& p) { p.causal = false; }), ContainsSubstring("elements are wrong"));
  CHECK_THAT(launched_with([](Attention& p) { p.kv_heads = 1; }), ContainsSubstring("O[batch 0][head 1]"));
  CHECK_THAT(
      launched_with([](Attention& p) { p.batch = 1; }),
      ContainsSubstring("38400 elements of O were never written; the first is O[batch 1][head 0][0][0]\n  "
                        "300 of 600 rows were never written, the first is 0, the last 149, all of head 2, "
                        "3"));
  CHECK_THAT(launched_with([](Attention& p) { p.batch = 1, p.o += 2 * 150 * kDim; }),
             ContainsSubstring("the first is O[batch 0][head 0][0][0]"));
  CHECK_THAT(launched_with([](Attention& p) { p.o += 8; }),
             ContainsSubstring("memory after C was overwritten"));
}

TEST_CASE(
    "attention: rows and dimensions of O that were never written are placed, and warpgroups asked about") {
  skip_unless_runnable();
  const Step& step = steps().front();
  const auto said_without = [&](int length, const std::function<bool(int64_t row, int d)>& is_missing) {
    return said_of({1, 1, 1, length, false}, [&](Attention p) {
      const std::vector<__nv_bfloat16> before = ladder::download(p.o, size_t(length) * kDim);
      step.launch(p, nullptr);
      CUDA_CHECK(cudaDeviceSynchronize());
      std::vector<__nv_bfloat16> o = ladder::download(p.o, before.size());
      for (size_t i = 0; i < o.size(); ++i)
        if (is_missing(int64_t(i) / kDim, int(i % kDim))) o[i] = before[i];
      CUDA_CHECK(cudaMemcpy(p.o, o.data(), o.size() * sizeof o[0], cudaMemcpyHostToDevice));
    });
  };
  CHECK_THAT(
      said_without(300, [](int64_t row, int) { return row % 128 >= 64; }),
      ContainsSubstring("\n  128 of 300 rows were never written, the first is 64, the last 255, all in the "
                        "last 64 of each 128: those of the second warpgroup, and no other row is missing: "
                        "do both warpgroups store the rows of the first one?"));
  CHECK_THAT(said_without(300, [](int64_t row, int) { return row % 128 >= 64 && row != 70; }),
             !ContainsSubstring("do both warpgroups"));
  CHECK_THAT(said_without(150, [](int64_t, int d) { return d >= 64; }),
             ContainsSubstring("\n  some rows lack the dimensions from 64 to 127"));
  CHECK_THAT(said_without(150, [](int64_t row, int d) { return row == 149 || (row == 3 && d == 5); }),
             ContainsSubstring("other rows lack "
                               "the dimensions from 5 to 5"));
  // Each warpgroup has the other's rows: without a mask O's are those of Q.
  CHECK_THAT(
      said_of({1, 1, 1, 128, false},
              [&](Attention p) {
                step.launch(p, nullptr);
                CUDA_CHECK(cudaDeviceSynchronize());
                std::vector<__nv_bfloat16> o = ladder::download(p.o, size_t{128} * kDim);
                std::rotate(o.begin(), o.begin() + o.size() / 2, o.end());
                CUDA_CHECK(cudaMemcpy(p.o, o.data(), o.size() * sizeof o[0], cudaMemcpyHostToDevice));
              }),
      ContainsSubstring("\n  of every 128 rows of O, the first 64 come from the last 64 of Q, and the last "
                        "from the first: do two warpgroups take each other's rows"));
}

namespace attention_test {
namespace {

/// Attention as the kernels compute it, in steps that a test can change.
struct Changed {
  bool rescales_sums = true, rescales_row_sum = true;
  float scale = 1;
  int keys_seen = 0;               ///< beyond those that a query sees
  int missing = -1;                ///< block of keys
  int k_from = 0;                  ///< blocks that K is late
  int own_head = 0;                ///< 1: K and V of the head of Q's number, 2: of head 0
  int k_later = 0, v_later = 0;    ///< keys by which K and V come from further down
  bool stays_in_tile = false;      ///< they do not where that is beyond the last block of a causal tile
  bool exchanges = false;          ///< K and V
  bool takes_turns_wrong = false;  ///< the ring has V where K should stand, and the other way round
  int q_half_twice = 0;  ///< 1: dimensions 0 to 63 of Q in place of the others, 2: those of the next row,
                         ///< 3: the others of the next row, and what lies behind the last
  bool keeps_maximum = true;  ///< of the blocks before
  bool is_masked = true;
  int twice = -1;      ///< block of keys
  int half_twice = 0;  ///< 1: dimensions 0 to 63 in place of the others, 2: the reverse; of Q and K,
  bool of_v = false;   ///< or of V alone
  bool divides = true;
  int q_head = 0;       ///< further down
  int spoilt_row = -1;  ///< which has an error besides
  int rows_from = 0;    ///< the first query of each 128 with the change
  std::function<int64_t(int64_t block, bool is_last, bool is_v)> first_row = nullptr;  ///< of a block's load
  int v_step = 2048;               ///< bytes in V from 16 keys to the next
  int k_step = 32;                 ///< and in K from 16 dimensions to the next
  bool exchanges_offsets = false;  ///< of V's descriptor: of 8 keys, and of the second 64 dimensions
};

/// One lane computes a row, with the change. The arrays are on the host.
std::vector<__nv_bfloat16> changed_attention(const Extent& e, const std::vector<__nv_bfloat16> (&qkv)[3],
                                             const Changed& change) {
  const auto &q = qkv[0], &k = qkv[1], &v = qkv[2];
  std::vector<__nv_bfloat16> o(q.size());
  for (int64_t row = 0; row < int64_t(q.size()) / kDim; ++row) {
    const int64_t query = row % e.length, head = row / e.length;
    const Changed now = query % 128 < change.rows_from ? Changed{} : change;
    const int64_t kv_head = now.own_head == 2   ? 0
                            : now.own_head == 1 ? head % e.kv_heads
                                                : head / (e.heads / e.kv_heads);
    const auto at = [&](const std::vector<__nv_bfloat16>& array, int64_t key, int d) {
      return key < 0 || key >= e.length ? 0.0f
                                        : __bfloat162float(array[(kv_head * e.length + key) * kDim + d]);
    };
    const int64_t blocks = (e.causal ? query : e.length - 1) / kKeys + 1;
    const auto later = [&](int64_t key, int by) {
      return now.stays_in_tile && (key + by) / kKeys >= blocks ? key : key + by;
    };
    const auto placed = [&](int64_t key, bool is_v) {
      const int64_t block = key / kKeys;
      return now.first_row ? now.first_row(block, block + 1 == blocks, is_v) + key % kKeys : key;
    };
    const auto at_k = [&](int64_t key, int d) {
      if (now.first_row) return at(k, placed(key, false), d);
      if (now.takes_turns_wrong) return key < kKeys ? at(k, key, d) : at(v, key - kKeys, d);
      const int from = d % 64 / 16 * now.k_step / 2 + d % 16;
      return at(now.exchanges ? v : k, later(key + from / 64, now.k_later), d / 64 * 64 + from % 64);
    };
    const auto at_v = [&](int64_t key, int d) {
      if (now.first_row) return at(v, placed(key, true), d);
      if (now.takes_turns_wrong) return key / kKeys + 1 < blocks ? at(k, key + kKeys, d) : at(v, key, d);
      if (now.exchanges_offsets) {
        const int64_t eight = key % kKeys / 8;
        return at(v, (key / 8 - eight % 2 + d / 64) * 8 + key % 8, int(eight % 2 * 64 + d % 64));
      }
      // Of a panel, whose rows of 64 dimensions lie one behind the other.
      const int64_t from = key % kKeys % 16 * 64 + d % 64 + key % kKeys / 16 * now.v_step / 2;
      const int64_t key_read = key / kKeys * kKeys + from / 64;
      return at(now.exchanges ? k : v, later(key_read, now.v_later), int(d / 64 * 64 + from % 64));
    };
    const auto half = [&](int d, bool is_taken) {
      return !now.half_twice || !is_taken ? d : d % 64 + (now.half_twice == 2 ? 64 : 0);
    };
    const int64_t q_first = query / 128 * 128;  // of 128 rows, as they lie in shared memory
    const auto at_q = [&](int d) {
      const int64_t q_head = head + now.q_head;
      if (q_head < 0 || q_head >= e.heads * e.batch) return 0.0f;
      const auto of = [&](int64_t at, int dim) {
        return at < e.length ? __bfloat162float(q[(q_head * e.length + at) * kDim + dim]) : 0.0f;
      };
      if (!now.q_half_twice || d < 64) return of(query, d);
      if (now.q_half_twice == 1) return of(query, d - 64);
      if (now.q_half_twice == 3) return query + 1 < q_first + 128 ? of(query + 1, d) : 7.0f;
      return query + 1 < q_first + 128 ? of(query + 1, d - 64) : of(q_first, d);
    };
    const int64_t end = !now.is_masked ? e.length : (e.causal ? query + 1 : e.length) + now.keys_seen;
    double largest = -INFINITY, sum = 0, sums[kDim] = {};
    for (int64_t first = 0; first < end; first += kKeys) {
      if (first / kKeys == now.missing) continue;
      const int64_t last = std::min<int64_t>(first + kKeys, end),
                    k_first = std::max<int64_t>(0, first - now.k_from * kKeys);
      std::vector<double> scores(last - first);
      double most = now.keeps_maximum ? largest : -INFINITY;
      for (int64_t key = first; key < last; ++key) {
        double& score = scores[key - first];
        for (int d = 0; d < kDim; ++d)
          score += double(at_q(half(d, !now.of_v))) * at_k(key - first + k_first, half(d, !now.of_v));
        score *= now.scale / std::sqrt(double(kDim));
        most = std::max(most, score);
      }
      const double correction = std::exp(largest - most);
      largest = most;
      if (now.rescales_row_sum) sum *= correction;
      for (double& one : sums) one *= now.rescales_sums ? correction : 1;
      for (int64_t key = first; key < last; ++key) {
        const double weight = (1 + (first / kKeys == now.twice)) * std::exp(scores[key - first] - most);
        sum += weight;
        for (int d = 0; d < kDim; ++d) sums[d] += weight * at_v(key, half(d, now.of_v));
      }
    }
    for (int d = 0; d < kDim; ++d)
      o[row * kDim + d] = __float2bfloat16(float(sums[d] / (now.divides ? sum : 1)));
    if (row == now.spoilt_row) o[row * kDim] = __float2bfloat16(7);
  }
  return o;
}

}  // namespace
}  // namespace attention_test

TEST_CASE("attention: a wrong O that a known mistake explains is explained by it") {
  skip_unless_runnable();
  static_assert(kKeys == kKeysOfBlock);
  const auto said = [](const Extent& extent, const Changed& change) {
    Checker checker(extent, "random", 1);
    const Attention arrays = checker.arguments();
    const size_t rows = size_t(extent.batch) * extent.length;
    const std::vector<__nv_bfloat16> host[] = {ladder::download(arrays.q, rows * extent.heads * kDim),
                                               ladder::download(arrays.k, rows * extent.kv_heads * kDim),
                                               ladder::download(arrays.v, rows * extent.kv_heads * kDim)};
    const std::vector<__nv_bfloat16> o = changed_attention(extent, host, change);
    return checker.complaint([&](const Attention& p) {
      CUDA_CHECK(cudaMemcpy(p.o, o.data(), o.size() * sizeof o[0], cudaMemcpyHostToDevice));
    });
  };
  const Extent full{1, 1, 1, 300, false}, causal{1, 1, 1, 300, true}, shared{1, 4, 2, 150, false},
      heads{1, 4, 4, 150, false}, short_one{1, 1, 1, 20, false};
  CHECK(said(full, {}) == "");
  CHECK(said(causal, {}) == "");
  CHECK(said(shared, {}) == "");
  const struct {
    Extent extent;
    Changed change;
    std::string says;
  } cases[] = {
      {full, {.rescales_sums = false}, "\n  O was not multiplied by the correction when the maximum"},
      {full, {.rescales_row_sum = false}, "\n  the sum over a row (the denominator) was not multiplied by"},
      {full, {.rescales_sums = false, .rescales_row_sum = false}, "\n  neither O nor the sum over a row was"},
      {full, {.scale = 1 / std::sqrt(128.0f)}, "\n  scores are divided by sqrt(d) twice; all rows are wrong"},
      {full, {.scale = 0.6931472f}, "\n  the exponential is one to base 2"},
      {full, {.keys_seen = 84}, "\n  keys from 300 on count, zeros of TMA"},
      {full, {.missing = 1}, "\n  block 1 of keys (128 to 255) is missing; all rows are wrong"},
      {full,
       {.k_from = 1},
       "\n  each block of keys but the first used K of the block before in place of its own K; "},
      {causal, {.keys_seen = 1}, "\n  the causal mask is off by one: queries see one key too many"},
      {causal,
       {.keys_seen = -1},
       "128 elements of O are NaN or infinite; the first is O[batch 0][head 0][0][0]; 16806 of 38400 "
       "elements "
       "are wrong\n  the causal mask is off by one: queries do not see their own key; 264 of 300 rows are "
       "wrong, "
       "the first is 0, the last 299; query 0 is NaN or infinite"},
      {full,
       {.keys_seen = -1},
       "\n  the mask of the end is off by one: queries do not see the last key; 198"},
      {short_one,
       {.keys_seen = 1},
       "\n  the mask of the end is off by one: queries see a zero behind the last"},
      {full, {.v_later = 128}, "\n  each block of keys used V of the next block in place of its own V; all"},
      {full,
       {.v_later = -128},
       "\n  each block of keys used V of the block before in place of its own V; all"},
      {full, {.k_later = 128}, "\n  each block of keys used K of the next block in place of its own K; all"},
      {full,
       {.v_later = 128, .stays_in_tile = true},
       "\n  each block of keys but the last used V of the next block in place of its own V; all rows"},
      {causal,
       {.v_later = 128, .stays_in_tile = true},
       "\n  each block of keys but the last one of a tile used V of the next block in place of its own V; "
       "172 of"},
      {causal,
       {.k_later = 128, .stays_in_tile = true},
       "\n  each block of keys but the last one of a tile used K of the next block in place of its own K; "
       "172 of"},
      {full, {.exchanges = true}, "\n  K and V are exchanged: scores are made of V, and O of K; all rows"},
      {full,
       {.takes_turns_wrong = true},
       "\n  K and V are loaded in another order than they are used: scores"},
      {causal,
       {.takes_turns_wrong = true},
       "\n  K and V are loaded in another order than they are used: scores"},
      {full,
       {.q_half_twice = 1},
       "\n  the product Q K^T took dimensions 0 to 63 twice, and not 64 to 127, of Q; all rows are wrong"},
      {causal,
       {.q_half_twice = 2},
       "\n  the product Q K^T took dimensions 0 to 63 of the next row in place of 64 to 127: the offset of "
       "the "
       "second panel is missing from the descriptor of Q; 299 of 300"},
      {full,
       {.q_half_twice = 3},
       "\n  the product Q K^T took dimensions 64 to 127 of the next row: the offset within the second panel "
       "in "
       "the descriptor of Q is 128 bytes, the width of a panel, too large; "},
      // A row that the mistake leaves open shows nothing.
      {full, {.spoilt_row = 127}, "elements are wrong\n  1 of 300 rows are wrong, the first is 127"},
      {full, {.q_half_twice = 3, .spoilt_row = 7}, "elements are wrong\n  all rows are wrong"},
      {full, {.scale = std::sqrt(128.0f)}, "\n  scores are not divided by sqrt(d); all rows are wrong"},
      {full, {.divides = false}, "\n  O was not divided by the sum over a row (the denominator); all rows"},
      {heads, {.q_head = 1}, "\n  Q is that of the next head; all rows are wrong"},
      {shared, {.own_head = 1}, "\n  K and V are those of head % kv_heads; 300 of 600 rows are wrong"},
      {full,
       {.rescales_sums = false, .rows_from = 64},
       ", all in the last 64 of each 128: those of the second warpgroup"},
      {full,
       {.rescales_sums = false, .keeps_maximum = false},
       "\n  each block of keys is weighted with its own maximum, and O is not corrected; all rows"},
      {full,
       {.rescales_sums = false, .rescales_row_sum = false, .keeps_maximum = false},
       "\n  each block of keys is weighted with its own maximum, and nothing is corrected; all rows"},
      {full,
       {.scale = 1.442695f},
       "\n  the exponential is one to base e, of scores multiplied by log2(e); all"},
      {causal, {.is_masked = false}, "\n  the causal mask is missing: queries see keys behind them; "},
      {causal, {.keys_seen = -64}, "\n  the causal mask is that of 64 rows further up; "},
      {full, {.twice = 1}, "\n  block 1 of keys (128 to 255) counts twice; all rows are wrong"},
      {full,
       {.half_twice = 1},
       "\n  the product Q K^T took dimensions 0 to 63 twice, and not 64 to 127, of Q and K; all rows"},
      {full,
       {.half_twice = 2, .of_v = true},
       "\n  the product with V took dimensions 64 to 127 twice, and not 0 to 63, of V; all rows"},
      {heads, {.q_head = -1}, "\n  Q is that of the head before; all rows are wrong"},
      {shared, {.own_head = 2}, "\n  K and V are those of head 0 of the first sequence; 300 of 600 rows"},
      {full,
       {.v_step = 32},
       "\n  the product with V took the next 16 keys of V 32 bytes further on, where they lie 2048 bytes "
       "further on: what is added to its descriptor is wrong; all rows"},
      {causal,
       {.v_step = 0},
       "\n  the product with V took the next 16 keys of V 0 bytes further on, where they lie 2048 bytes "},
      {short_one,
       {.k_step = 64},
       "\n  the product Q K^T took the next 16 dimensions of K 64 bytes further on, where they lie 32 bytes "
       "further on: what is added to its descriptor is wrong; all rows"},
      {full,
       {.exchanges_offsets = true},
       "\n  the product with V took the next 8 keys of V 16384 bytes further on and the second 64 dimensions "
       "1024, where they lie 1024 and 16384 bytes further on: are the leading and the stride offset of its "
       "descriptor exchanged?; all rows"},
      {full, {.spoilt_row = 7, .exchanges_offsets = true}, "elements are wrong\n  all rows are wrong"},
      {full,
       {.first_row = [](int64_t block, bool, bool is_v) { return (2 * block + is_v) * kKeys; }},
       "\n  block i of K was loaded from row 256 i on, and that of V from row 256 i + 128, not both from row "
       "128 i: is the row made of the number of a load, where K and V alternate?; all rows"},
      {causal,
       {.first_row = [](int64_t block, bool, bool is_v) { return is_v ? 2 * block + 1 : block * kKeys; }},
       "\n  block i of V was loaded from row 2 i + 1 on, not from row 128 i: is the row made of"},
      {full,
       {.first_row = [](int64_t block, bool, bool) { return block; }},
       "\n  block i of K and V was loaded from row i on, not from row 128 i; all rows"},
      {full,
       {.first_row = [](int64_t block, bool, bool is_v) { return is_v ? block * kKeys : block * 64; }},
       "\n  block i of K was loaded from row 64 i on, not from row 128 i; all rows"},
      {causal,
       {.first_row = [](int64_t block, bool is_last,
                        bool is_v) { return (block + (is_last && is_v)) * kKeys; }},
       "\n  the last block of keys of a tile used V of the next block in place of its own V; "},
      {causal,
       {.first_row = [](int64_t block, bool is_last,
                        bool is_v) { return (block - (is_last && !is_v)) * kKeys; }},
       "\n  the last block of keys of a tile used K of the block before in place of its own K; "},
      // Nothing explains what is only near to a known mistake, or is one in all rows but one.
      {full, {.scale = 0.5f}, "elements are wrong\n  all rows are wrong"},
      {full,
       {.first_row = [](int64_t block, bool, bool is_v) { return block * (is_v ? kKeys : 96); }},
       "elements are wrong\n  all rows are wrong"},
      {full, {.v_later = 64}, "elements are wrong\n  all rows are wrong"},
      {full, {.v_later = 127}, "elements are wrong\n  all rows are wrong"},
      {full, {.keys_seen = -2}, "elements are wrong\n  266 of 300 rows are wrong"},
      {causal, {.keys_seen = 2}, "elements are wrong\n  292 of 300 rows are wrong"},
      {causal,
       {.keys_seen = -2},
       "elements are wrong\n  294 of 300 rows are wrong, the first is 0, the last 299; 2 rows are NaN or "
       "infinite, the first is 0, the last 1"},
      {Extent{1, 1, 1, 1, true}, {.keys_seen = -1}, "elements are wrong\n  all rows are NaN or infinite"},
      {full, {.v_later = 128, .spoilt_row = 7}, "elements are wrong\n  all rows are wrong"},
      {full, {.exchanges = true, .spoilt_row = 7}, "elements are wrong\n  all rows are wrong"},
      {full, {.v_step = 48}, "elements are wrong\n  all rows are wrong"},
      {full, {.spoilt_row = 7, .v_step = 32}, "elements are wrong\n  all rows are wrong"},
      {full, {.q_half_twice = 1, .spoilt_row = 7}, "elements are wrong\n  all rows are wrong"},
  };
  for (const auto& [extent, change, says] : cases) CHECK_THAT(said(extent, change), ContainsSubstring(says));
}

TEST_CASE("attention: bad extents are refused in words that name the argument") {
  const auto said = [](const Extent& extent) {
    try {
      extent.check();
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(said({1, 4, 2, 1, false}) == "");
  CHECK_THAT(said({1, 1, 1, 0, false}), ContainsSubstring("--length 0: must be at least 1"));
  CHECK_THAT(said({0, 1, 1, 1, false}), ContainsSubstring("--batch 0"));
  CHECK_THAT(said({1, 4, 3, 1, false}), ContainsSubstring("--kv-heads 3: must divide --heads, which is 4"));
  CHECK_THAT(said({1024, 1024, 1, 2048, false}), ContainsSubstring("--length 2048"));
}
