/// @file
/// The reference of attention in fp64, and what a result may differ from it.
#include "05_ws_double_buffer/attention/check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "05_ws_double_buffer/attention/explanation.hpp"
#include "common/host/base/parallel.hpp"
#include "common/host/base/text.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/problem/fill.hpp"
#include "common/host/verify/verdict.hpp"

namespace lesson05::attention {
namespace {

/// Multiplications of one product that the reference may take: some seconds.
constexpr double kMostProducts = 3e8;

int64_t rows_of(const Extent& extent) { return int64_t{extent.batch} * extent.heads * extent.length; }

}  // namespace

const std::vector<std::string>& data_names() {
  static const std::vector<std::string> names = {"random", "equal", "huge", "rising", "falling"};
  return names;
}

Checker::Checker(const Extent& extent, const std::string& data, uint64_t seed)
    : extent_((extent.check(), extent)),
      q_(size_t(rows_of(extent)) * kDim),
      k_(size_t(extent.batch) * extent.kv_heads * extent.length * kDim),
      v_(k_.size()),
      o_(static_cast<int>(rows_of(extent)), kDim) {
  const std::vector<std::string>& names = data_names();
  if (std::find(names.begin(), names.end(), data) == names.end())
    throw std::invalid_argument("--data " + data + ": must be one of " + ladder::join(names, ", "));
  fill(data, seed);
  choose_rows();
}

void Checker::fill(const std::string& data, uint64_t seed) {
  ladder::fill(q_.data(), q_.size(), ladder::NormalValues{3 * seed});
  ladder::fill(k_.data(), k_.size(), ladder::NormalValues{3 * seed + 1});
  ladder::fill(v_.data(), v_.size(), ladder::NormalValues{3 * seed + 2});
  host_q_ = ladder::download(q_.data(), q_.size());
  host_k_ = ladder::download(k_.data(), k_.size());
  host_v_ = ladder::download(v_.data(), v_.size());
  if (data == "random") return;
  // All queries have 1 in dimension 0, where keys say how much they weigh: a score is kDim^-0.5 of that.
  for (size_t i = 0; i < host_q_.size(); i += kDim) host_q_[i] = ladder::to_bf16(1);
  for (size_t i = 0; i < host_k_.size(); i += kDim) {
    const int64_t row = int64_t(i) / kDim, key = row % extent_.length;
    const double length = extent_.length;
    const auto weigh = [&](double score) { host_k_[i] = ladder::to_bf16(float(score * std::sqrt(kDim))); };
    if (data == "equal")
      for (int d = 0; d < kDim; ++d) host_k_[i + d] = host_k_[d];
    if (data == "huge" && key == int64_t(ladder::hash(seed, row / extent_.length) % extent_.length))
      weigh(200);
    if (data == "rising") weigh(60 * key / length);
    if (data == "falling") weigh(-60 * key / length);
  }
  q_.upload(host_q_);
  k_.upload(host_k_);
}

void Checker::choose_rows() {
  const int64_t all = rows_of(extent_);
  const double products_of_row = double(extent_.length) * kDim;
  const int64_t count = std::clamp<int64_t>(int64_t(kMostProducts / products_of_row), 1, all);
  rows_.resize(count);
  ladder::parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    // Spread over all heads and all places within a tile; the last row is always one of them.
    for (int64_t i = begin; i < end; ++i) rows_[i] = reference((i + 1) * all / count - 1);
  });
}

Checker::Row Checker::reference(int64_t row) const {
  const int64_t length = extent_.length, head = row / length, query = row % length;
  const int64_t kv_head = head / (extent_.heads / extent_.kv_heads);
  const int64_t keys = extent_.causal ? query + 1 : length;
  const __nv_bfloat16 *const q = &host_q_[row * kDim], *const k = &host_k_[kv_head * length * kDim],
                             *const v = &host_v_[kv_head * length * kDim];
  std::vector<double> weights(keys);
  double largest = -INFINITY;
  for (int64_t key = 0; key < keys; ++key) {
    double score = 0;
    for (int d = 0; d < kDim; ++d)
      score += double(ladder::to_float(q[d])) * double(ladder::to_float(k[key * kDim + d]));
    weights[key] = score / std::sqrt(double(kDim));
    largest = std::max(largest, weights[key]);
  }
  double sum = 0;
  Row result{row, std::vector<double>(kDim), std::vector<double>(kDim)};
  for (int64_t key = 0; key < keys; ++key) {
    const double weight = std::exp(weights[key] - largest);
    sum += weight;
    for (int d = 0; d < kDim; ++d) {
      const double value = ladder::to_float(v[key * kDim + d]);
      result.expected[d] += weight * value;
      result.allowed[d] += weight * std::abs(value);
    }
  }
  for (int d = 0; d < kDim; ++d) {
    result.expected[d] /= sum;
    result.allowed[d] = rounding_of(result.allowed[d] / sum, result.expected[d]);
  }
  return result;
}

Attention Checker::arguments() { return {extent_, q_.data(), k_.data(), v_.data(), o_.data()}; }

std::string Checker::complaint(const std::function<void(const Attention&)>& launch) {
  o_.poison();
  launch(arguments());
  CUDA_CHECK(cudaDeviceSynchronize());
  const std::vector<__nv_bfloat16> o = o_.download();
  if (const std::string complaint = o_.canary_complaint(); !complaint.empty()) return complaint;
  const auto place = [&](int64_t row, int64_t d) {
    const int64_t head = row / extent_.length;
    return fmt::format("O[batch {}][head {}][{}][{}]", head / extent_.heads, head % extent_.heads,
                       row % extent_.length, d);
  };
  size_t unwritten = 0, infinite = 0, first = o.size();
  for (size_t i = 0; i < o.size(); ++i) {
    if (ladder::is_finite(o[i])) continue;
    first = std::min(first, i);
    ++(ladder::bf16_bits(o[i]) == ladder::kPoisonBits ? unwritten : infinite);
  }
  std::string complaint;
  if (first < o.size()) {
    std::vector<std::string> counts;
    if (unwritten) counts.push_back(fmt::format("{} elements of O were never written", unwritten));
    if (infinite)
      counts.push_back(fmt::format("{} {}are NaN or infinite", infinite, unwritten ? "" : "elements of O "));
    complaint = fmt::format("{}; the first is {}", ladder::join(counts, ", and "),
                            place(int64_t(first / kDim), int64_t(first % kDim)));
    if (unwritten) return complaint + "\n  " + describe_unwritten(arguments(), o);
  }
  double errors = 0, values = 0;
  size_t wrong = 0;
  std::vector<ComparedRow> compared;
  for (const Row& row : rows_) {
    const size_t wrong_before = wrong;
    for (int d = 0; d < kDim; ++d) {
      const double is = ladder::to_float(o[row.row * kDim + d]), error = is - row.expected[d];
      errors += error * error;
      values += row.expected[d] * row.expected[d];
      if (std::abs(error) <= row.allowed[d]) continue;
      if (wrong++ == 0 && complaint.empty())
        complaint = fmt::format("{} is {:.6g}, must be {:.6g} +- {:.2g}", place(row.row, d), is,
                                row.expected[d], row.allowed[d]);
    }
    compared.push_back({row.row, wrong > wrong_before});
  }
  if (first < o.size() && !wrong) return complaint;  // none of the rows that are compared
  rel_error_ = std::sqrt(errors / std::max(values, 1e-300));
  if (wrong) {
    const Attention on_host{extent_, host_q_.data(), host_k_.data(), host_v_.data(), nullptr};
    return fmt::format("{}; {} of {} elements are wrong\n  {}", complaint, wrong, rows_.size() * kDim,
                       explain(on_host, o, compared));
  }
  if (rel_error_ > ladder::kLargestRelError)
    return fmt::format("the relative error of O is {:.2e}, more than {:.0e}", rel_error_,
                       ladder::kLargestRelError);
  return "";
}

}  // namespace lesson05::attention
