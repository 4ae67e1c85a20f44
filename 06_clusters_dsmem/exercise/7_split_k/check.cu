/// @file
/// The check of exercise 06.7: short and empty splits, blocks in any order; and splits that share the work.
#include EXERCISE

#include <algorithm>
#include <sstream>
#include <string>

#include "common/exercise/check.hpp"

namespace {

using ladder::exercise::expect, ladder::exercise::NotYet;

constexpr int kRows = exercise::kTile, kCols = 2 * exercise::kTile;

/// Multiples of 0.1, so that sums are rounded and depend on their order.
std::vector<float> tenths(int count, unsigned seed) {
  auto values = ladder::exercise::small_integers<float>(count, seed);
  for (float& value : values) value *= 0.1f;
  return values;
}

/// C, rounded as the kernel must round it.
std::vector<float> reference(const std::vector<float>& a, const std::vector<float>& b, int K, int splits) {
  const int length = (K + splits - 1) / splits;
  std::vector<float> c(kRows * kCols);
  for (int split = 0; split < splits; ++split)
    for (int i = 0; i < kRows * kCols; ++i) {
      float partial = 0;
      for (int k = split * length; k < std::min((split + 1) * length, K); ++k)
        partial = std::fma(a[i / kCols * K + k], b[k * kCols + i % kCols], partial);
      c[i] += partial;
    }
  return c;
}

/// Explains why C was not written, from the counters.
/// @param arrivals counter of each tile after the kernel
/// @throws NotYet if a counter is not 0
void explain_missing_sum(const std::vector<unsigned>& arrivals, int splits) {
  const unsigned most = *std::max_element(arrivals.begin(), arrivals.end());
  if (most == 0) return;
  if (most >= static_cast<unsigned>(splits))
    throw NotYet(
        fmt::format("all {} splits of a tile have incremented the counter, but no block acted as the last "
                    "one: which value does atomicAdd return?",
                    splits));
  throw NotYet(
      fmt::format("only {} of {} splits have incremented the counter, so no block was the last: must an "
                  "empty split increment it, too, and which block resets it?",
                  most, splits));
}

/// @throws NotYet unless C is right
void multiply(int K, int splits) {
  const std::vector<float> a = tenths(kRows * K, 1), b = tenths(K * kCols, 2),
                           expected = reference(a, b, K, splits);
  const ladder::DeviceBuffer<float> a_device(a), b_device(b);
  ladder::exercise::Output<float> c("C", kRows * kCols, kCols),
      partials("the partial products", splits * kRows * kCols, kCols);
  const std::vector<unsigned> zeros(kRows * kCols / exercise::kThreads);
  ladder::DeviceBuffer<unsigned> arrivals(zeros);
  exercise::launch_split_k(
      {a_device.data(), b_device.data(), c.data(), partials.data(), arrivals.data(), kRows, kCols, K},
      splits);
  std::vector<unsigned> counts(zeros.size());
  CUDA_CHECK(cudaMemcpy(counts.data(), arrivals.data(), counts.size() * sizeof(unsigned), cudaMemcpyDefault));
  try {
    c.expect_equal(expected, 1e-3f);
  } catch (const NotYet&) {
    const std::vector<bool> written = c.written_places();
    if (std::find(written.begin(), written.end(), false) != written.end())
      explain_missing_sum(counts, splits);
    throw;
  }
  try {
    c.expect_equal(expected);
  } catch (const NotYet&) {
    throw NotYet("C is right except for the last bits: on what does the order of the additions depend?");
  }
  expect(
      counts == zeros,
      "C is right, but the counter of arrivals is not 0 at the end: which block of the next launch would be "
      "the last?");
}

void check() {
  struct Case {
    int K, splits;
  };
  // Whole splits, a short last split, an empty split.
  for (const Case& one : {Case{64, 4}, Case{37, 1}, Case{37, 4}, Case{9, 4}})
    ladder::exercise::on_every_block_order([&] { multiply(one.K, one.splits); });

  constexpr int K = 128, kSplits = 8;
  const auto alone = ladder::exercise::counted([] { multiply(K, 1); });
  const auto split = ladder::exercise::counted([] { multiply(K, kSplits); });
  if (!split) return;
  std::ostringstream sentence;
  sentence << "C is right, but with " << kSplits << " splits the first block takes "
           << split->cycles / alone->cycles << " of its time with one split: which blocks share its work?";
  // The limit leaves time for the additions, which the measured block also does if it arrives last.
  expect(split->cycles < 0.75 * alone->cycles, sentence.str());
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
