/// @file
/// Verifies a multiplication twice: with small integers, bit for bit, and with normal data against fp64.
#include "common/host/verify/verifier.hpp"

#include <fmt/core.h>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>

#include "common/host/problem/bf16.hpp"
#include "common/host/problem/fill.hpp"
#include "common/host/verify/explanation.hpp"
#include "common/host/verify/launch_grid.hpp"
#include "common/host/verify/tile_walks.hpp"

namespace ladder {
namespace {

/// Half a sentence about the extents that a tensor map should have had; empty if they are those of a matrix.
std::string compare_extents(const Shape& shape, int rows, int columns) {
  const struct {
    const char* name;
    int rows, columns;
  } matrices[] = {{"A", shape.m, shape.k}, {"B", shape.k, shape.n}, {"C", shape.m, shape.n}};
  std::string all, exchanged;
  for (const auto& one : matrices) {
    if (one.rows == rows && one.columns == columns) return "";
    all += fmt::format("{}{} is {} x {}", all.empty() ? "" : ", ", one.name, one.rows, one.columns);
    if (one.rows == columns && one.columns == rows)
      exchanged += fmt::format("{}{}", exchanged.empty() ? "" : " or ", one.name);
  }
  return "; " + all + (exchanged.empty() ? "" : ": are rows and columns of " + exchanged + " exchanged?");
}

/// "wgmma at core.cuh:35 read shared memory before anything was written to it: smem.a.panels", without the
/// block and without indices: lines that all lessons share read several arrays.
std::string line_and_array_of_read(const std::string& text) {
  const size_t block = text.find(" (block ");
  const size_t name = text.find("), ", block);
  if (block == text.npos || name == text.npos) return text.substr(0, block);
  std::string array;
  int depth = 0;
  for (size_t at = name + 3; at < text.size() && text[at] != ')'; ++at) {
    depth += text[at] == '[';
    if (!depth) array += text[at];
    depth -= text[at] == ']';
  }
  return text.substr(0, block) + ": " + (array.rfind("byte ", 0) == 0 ? "" : array);
}

}  // namespace

/// What was read too early spoils the result: fresh memory holds NaN on the CPU device. But a line that reads
/// what nobody has written, such as rows beyond the matrix, and has done so in a right run, is not the cause.
std::string Verifier::explain_nan(const WrongElements& wrong) const {
  if (!wrong.nan_count()) return "";
  const std::string text = take_unwritten_read();
  // A product makes sums of it, and of those none is what never-written elements hold.
  const bool reaches_any = text.rfind("wgmma at", 0) != 0 || wrong.nan_sum_count();
  if (!text.empty() && reaches_any && !innocent_reads_.count(line_and_array_of_read(text))) return text;
  if (!work_.lacks_products || 4 * wrong.nan_sum_count() <= 3 * wrong.count()) return "";
  return fmt::format(
      "no product was ever started, as the kernel has done for other shapes: is the number of K tiles 0 for "
      "K = {}? It must be rounded up",
      shape_.k);
}

/// Which blocks or threads are missing, where the launch tells.
std::string Verifier::explain_launch(const WrongElements& wrong) const {
  if (!wrong.nan_count()) return "";
  // Threads that are missing have left something out in each tile.
  const bool is_all_nan = wrong.nan_count() == wrong.count();
  if (const std::string text = is_all_nan && work_.explain_block ? work_.explain_block() : ""; !text.empty())
    return text;
  if (!work_.find_writer || !work_.launched_at || !work_.grid[0]) return "";
  const auto writer_of = [&](int row, int column) -> std::optional<BlockIndex> {
    unsigned block[3];
    if (!work_.find_writer(c_.data() + size_t(row) * shape_.n + column, block)) return {};
    return BlockIndex{block[0], block[1], block[2]};
  };
  return explain_by_grid(wrong, shape_, {work_.grid[0], work_.grid[1], work_.grid[2], work_.launched_at()},
                         writer_of);
}

/// What stores have left out, where all else is right.
std::string Verifier::explain_stores(const WrongElements& wrong) const {
  std::string text =
      work_.exchanged_store
          ? work_.exchanged_store(
                c_.data(), shape_.m, shape_.n,
                [&](int row, int column) { return wrong.is_unwritten(int64_t{row} * shape_.n + column); })
          : "";
  if (text.empty() && work_.unsent_sums) text = work_.unsent_sums();
  if (text.empty() && work_.stored_twice) text = work_.stored_twice(c_.data(), shape_.n);
  return text;
}

/// An access that leaves the array which its line names, and missing blocks or threads, come before what else
/// is seen.
Explain Verifier::with_causes_in_launch(Explain explain) const {
  return [this, explain](const WrongElements& wrong) {
    std::string text = work_.left_array ? work_.left_array() : "";
    if (text.empty()) text = explain_launch(wrong);
    if (text.empty() && wrong.are_all_unwritten()) text = explain_stores(wrong);
    const std::string other = explain(wrong);
    return text + (text.empty() || other.empty() ? "" : "; ") + other;
  };
}

/// A block that ended with filled slots for which nobody waited, as none has in a right run.
std::string Verifier::unread_fills() const {
  const std::string text = work_.unread_fills ? work_.unread_fills() : "";
  return has_innocent_fills_ ? "" : text;
}

Verdict Verifier::with_innocent_reads(Verdict verdict) {
  if (!verdict.passed()) return verdict;
  if (!unread_fills().empty()) has_innocent_fills_ = true;
  if (const std::string text = take_unwritten_read(); !text.empty())
    innocent_reads_.insert(line_and_array_of_read(text));
  return verdict;
}

int integer_magnitude(int k) {
  // The variance of a uniform integer from -u to u is u(u+1)/3, that of a product of two its square.
  int magnitude = 1;
  const auto variance_of_sum = [k](double u) { return k * (u * (u + 1) / 3) * (u * (u + 1) / 3); };
  while (magnitude < 8 && 9 * variance_of_sum(magnitude + 1) < 256.0 * 256.0) ++magnitude;
  return magnitude;
}

Verifier::Verifier(const Shape& shape, uint64_t seed) : shape_(shape), seed_(seed), c_(shape.m, shape.n) {}

template <class MakeValues>
Verifier::Problem Verifier::make_problem(const MakeValues& values_of_seed) const {
  Problem problem{DeviceBuffer<__nv_bfloat16>(size_t(shape_.m) * shape_.k),
                  DeviceBuffer<__nv_bfloat16>(size_t(shape_.k) * shape_.n * shape_.b_matrices),
                  DeviceBuffer<__nv_bfloat16>(shape_.n),
                  {}};
  name_matrix(problem.a.data(), "A", shape_.m, shape_.k);
  if (shape_.b_matrices == 1) name_matrix(problem.b.data(), "B", shape_.k, shape_.n);
  fill(problem.a.data(), problem.a.size(), values_of_seed(2 * seed_));
  fill(problem.b.data(), problem.b.size(), values_of_seed(2 * seed_ + 1));
  fill(problem.bias.data(), problem.bias.size(), values_of_seed(~seed_));
  const std::vector<int> rows = rows_to_compare(shape_, affordable_products());
  for (int i = 0; i < shape_.b_matrices; ++i)
    problem.products.push_back(
        reference_product({problem.a.data(), problem.b.data() + i * (size_t(shape_.k) * shape_.n), nullptr,
                           shape_.m, shape_.n, shape_.k},
                          rows));
  return problem;
}

Reference Verifier::finished(const Problem& problem, const ReferenceEpilogue& epilogue) {
  Reference reference = problem.products.front();
  const std::vector<__nv_bfloat16> bias = download(problem.bias.data(), problem.bias.size());
  const bool two = problem.products.size() == 2;
  for (size_t i = 0; i < reference.values.size(); ++i) {
    const double other = two ? problem.products[1].values[i] : to_float(bias[i % bias.size()]);
    reference.values[i] = epilogue.apply(reference.values[i], other);
  }
  return reference;
}

std::string Verifier::run(const Problem& problem, const Multiply& multiply, const std::string& context) {
  c_.poison();
  take_unwritten_read();  // by who came before
  take_work_of_kernels();
  try {
    multiply(
        {problem.a.data(), problem.b.data(), c_.data(), shape_.m, shape_.n, shape_.k, problem.bias.data()});
  } catch (const std::invalid_argument& error) {
    int rows = 0, columns = 0;  // in the words of make_tensor_map()
    if (std::sscanf(error.what(), "TMA cannot describe the %d x %d matrix:", &rows, &columns) != 2) throw;
    throw std::invalid_argument(error.what() + compare_extents(shape_, rows, columns));
  }
  work_ = take_work_of_kernels();
  const std::string complaint = c_.canary_complaint();
  return complaint.empty() ? "" : complaint + " (" + shape_.name() + ", " + context + ")";
}

Verifier::Problem& Verifier::integers() {
  const int magnitude = integer_magnitude(shape_.k);
  if (!integers_) integers_ = make_problem([&](uint64_t seed) { return IntegerValues{seed, magnitude}; });
  return *integers_;
}

Verdict Verifier::check_exact(const Multiply& multiply, const ReferenceEpilogue& epilogue) {
  const auto explain_only_nan = [this](const WrongElements& wrong) { return explain_nan(wrong); };
  const Problem& problem = integers();
  const std::string context = "small integers, data seed " + std::to_string(seed_);
  const std::string complaint = run(problem, multiply, context);
  if (!complaint.empty()) {
    std::string pitch;
    if (!epilogue.apply)
      compare_exact(problem.products.front(), c_.download(), context, [&](const WrongElements& wrong) {
        return pitch = explain_pitch_of_c(wrong, problem.products.front());
      });
    return {complaint + (pitch.empty() ? "" : "\n  " + pitch), problem.products.front().sampled(), 0};
  }
  if (epilogue.apply)
    return with_innocent_reads(compare_exact(finished(problem, epilogue), c_.download(), context,
                                             with_causes_in_launch(explain_only_nan)));
  const Reference& product = problem.products.front();
  return with_innocent_reads(
      compare_exact(product, c_.download(), context,
                    with_causes_in_launch(explain_product_of(problem, /*is_exact=*/true))));
}

Explain Verifier::explain_product_of(const Problem& problem, bool is_exact) {
  return [this, &problem, is_exact](const WrongElements& wrong) -> std::string {
    const Matrices matrices{problem.a.data(), problem.b.data(), c_.data()};
    if (wrong.are_all_unwritten() && work_.moved_boxes)
      if (const std::string text =
              explain_by_tiles_of_cluster(work_.moved_boxes(), work_.blocks_of_cluster, matrices);
          !text.empty())
        return text;
    if (const std::string text = explain_nan(wrong); !text.empty()) return text;
    if (wrong.is_mostly_nan()) return "";  // what few numbers hold is no cause
    // Downloads of this many elements take less than a second.
    constexpr size_t kMaxElements = size_t{1} << 28;
    if (problem.a.size() + problem.b.size() > kMaxElements) return "";
    MadeBy made_by{work_.stages,
                   false,
                   work_.staged_at ? work_.staged_at() : "",
                   work_.zero_copies ? work_.zero_copies() : "",
                   work_.multiplied_by ? work_.multiplied_by() : "",
                   work_.warpgroups_share_operands && work_.warpgroups_share_operands()};
    if (work_.offsets_of_descriptors) {
      made_by.offsets_of_a = work_.offsets_of_descriptors(/*has_k_contiguous=*/true);
      made_by.offsets_of_b = work_.offsets_of_descriptors(/*has_k_contiguous=*/false);
    }
    if (work_.has_loaded_columns)
      made_by.loads_all_of_b = work_.has_loaded_columns(problem.b.data(), shape_.n);
    if (is_exact && work_.moved_boxes)
      made_by.walks = explain_by_walks(wrong, problem.products.front(), work_.moved_boxes(), matrices);
    const std::string text =
        explain(wrong, problem.products.front(), is_exact, download(problem.a.data(), problem.a.size()),
                download(problem.b.data(), problem.b.size()), made_by);
    const std::string fills = unread_fills();
    return fills + (fills.empty() || text.empty() ? "" : " ") +
           (text.empty() || text == made_by.walks || !wrong.nan_count() ? "" : "apart from nan, ") + text;
  };
}

Verdict Verifier::check_normal(const Multiply& multiply, const ReferenceEpilogue& epilogue) {
  if (!normal_) normal_ = make_problem([](uint64_t seed) { return NormalValues{seed}; });
  const std::string context = "normal data, data seed " + std::to_string(seed_);
  const std::string complaint = run(*normal_, multiply, context);
  if (!complaint.empty()) return {complaint, normal_->products.front().sampled(), 0};
  const auto judge = [&](const Reference& reference, const Explain& explain) {
    return with_innocent_reads(compare_close(reference, c_.download(), context, /*slack=*/0,
                                             epilogue.roundings, with_causes_in_launch(explain)));
  };
  const auto explain_only_nan = [this](const WrongElements& wrong) { return explain_nan(wrong); };
  return epilogue.apply ? judge(finished(*normal_, epilogue), explain_only_nan)
                        : judge(normal_->products.front(), explain_product_of(*normal_, /*is_exact=*/false));
}

void Verifier::run_unverified(const Multiply& multiply) { run(integers(), multiply, ""); }

Verdict Verifier::check(const Multiply& multiply, const ReferenceEpilogue& epilogue) {
  if (epilogue.exact) {
    const Verdict exact = check_exact(multiply, epilogue);
    if (!exact.passed()) return exact;
  }
  return check_normal(multiply, epilogue);
}

}  // namespace ladder
