/// @file
/// The check of exercise 06.7: ragged and empty splits, blocks in any order; and splits that share the work.
#include EXERCISE

#include <algorithm>
#include <sstream>
#include <string>

#include "common/exercise/check.hpp"

namespace {

using ladder::exercise::expect, ladder::exercise::NotYet;

constexpr int kRows = exercise::kTile, kCols = 2 * exercise::kTile;

/// Tenths, so that sums are rounded and their order shows.
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

/// Where C was not written: did blocks count themselves, and did none take itself for the last?
/// @param arrivals of each tile when the kernel has ended
/// @throws NotYet if they did
void explain_missing_sum(const std::vector<unsigned>& arrivals, int splits) {
  const unsigned most = *std::max_element(arrivals.begin(), arrivals.end());
  if (most == 0) return;
  if (most >= static_cast<unsigned>(splits))
    throw NotYet(
        fmt::format("all {} splits of a tile have counted themselves, and none took itself for the "
                    "last, which adds up: what does atomicAdd return?",
                    splits));
  throw NotYet(
      fmt::format("at the end only {} of {} splits of a tile are counted, so none was the last: must "
                  "a split without a k count itself, too, and who may set the count back, and when?",
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
    throw NotYet("C is right but for the last bits: what does the order of the additions depend on?");
  }
  expect(counts == zeros,
         "C is right, but the count of arrivals is not 0 again: which block of the next launch would be the "
         "last?");
}

void check() {
  struct Case {
    int K, splits;
  };
  // Whole splits, a short last one, one that is empty.
  for (const Case& one : {Case{64, 4}, Case{37, 1}, Case{37, 4}, Case{9, 4}})
    ladder::exercise::on_every_block_order([&] { multiply(one.K, one.splits); });

  constexpr int K = 128, kSplits = 8;
  const auto alone = ladder::exercise::counted([] { multiply(K, 1); });
  const auto split = ladder::exercise::counted([] { multiply(K, kSplits); });
  if (!split) return;
  std::ostringstream sentence;
  sentence << "C is right, but with " << kSplits << " splits the first block takes "
           << split->cycles / alone->cycles << " of the time that it takes alone: who does the others' part?";
  // The block that is counted multiplies an eighth, and adds up all parts if it comes last.
  expect(split->cycles < 0.75 * alone->cycles, sentence.str());
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
