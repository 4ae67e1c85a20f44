/// @file
/// The check of exercise 06.7: ragged and empty splits, blocks in any order; and splits that share the work.
#include EXERCISE

#include <sstream>

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

/// Says why no split of a tile has added up, where the count tells. @param count of the tile's arrivals, when
/// the kernel has ended
/// @throws NotYet if splits have stored or counted anything
void explain_tile_without_sum(unsigned count, bool has_partials, int K, int splits) {
  if (count == 0 && !has_partials) return;
  const unsigned all = splits;
  if (count == all)
    throw NotYet(
        fmt::format("all splits have counted themselves ({} of {}), and none took itself for the "
                    "last: what does atomicAdd return?",
                    count, all));
  const int length = (K + splits - 1) / splits;
  const unsigned with_k = (K + length - 1) / length;
  if (count == with_k)
    throw NotYet(
        fmt::format("{} of {} splits have counted themselves, and none was the last: a split with "
                    "no k must count itself, too",
                    count, all));
  throw NotYet(
      fmt::format("no split took itself for the last, and when all have ended the count is {}; there "
                  "are {} splits: how often does each count itself, and who may set the count to 0?",
                  count, all));
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
  for (size_t tile = 0; tile < counts.size(); ++tile) {
    const size_t first = tile * exercise::kTile;  // the tile's first element: the tiles are side by side
    if (!c.was_written(first)) explain_tile_without_sum(counts[tile], partials.was_written(first), K, splits);
  }
  c.expect_equal(expected, 1e-3f);
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
  // An eighth, and up to 0.56 where the block that is counted comes last and adds up.
  expect(split->cycles < 0.75 * alone->cycles, sentence.str());
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
