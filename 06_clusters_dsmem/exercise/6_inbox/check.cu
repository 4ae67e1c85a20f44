/// @file
/// The check of exercise 06.6: one tile, and many through the same inbox, by every schedule.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/evidence.hpp"

namespace {

using ladder::exercise::NotYet;

constexpr int kFloats = 4 * exercise::kThreads;  ///< of a tile, in each block

/// @throws NotYet naming the blocks whose sums are missing, if y is right but for them
void explain(const std::vector<float>& y, const std::vector<float>& x) {
  for (unsigned there = 0; there < (1u << exercise::kBlocks) - 1; ++there) {
    std::vector<float> sum(y.size());
    std::string missing;
    for (int rank = 0; rank < exercise::kBlocks; ++rank) {
      if (there >> rank & 1)
        for (size_t i = 0; i < y.size(); ++i) sum[i] += x[rank * y.size() + i];
      else
        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
    }
    if (sum == y) throw NotYet("y is not the sum over all blocks: what is missing is of rank " + missing);
  }
}

/// @throws NotYet unless y is right
void add_up(int tiles) {
  const size_t size = static_cast<size_t>(tiles * kFloats);
  const auto x = ladder::exercise::small_integers<float>(exercise::kBlocks * size, 1);
  std::vector<float> expected(size);
  for (size_t i = 0; i < x.size(); ++i) expected[i % size] += x[i];
  const ladder::DeviceBuffer<float> x_device(x);
  ladder::exercise::Output<float> y("y", size, kFloats);
  exercise::launch_add_up(reinterpret_cast<const float4*>(x_device.data()),
                          reinterpret_cast<float4*>(y.data()), tiles);
  std::vector<float> got(size);
  CUDA_CHECK(cudaMemcpy(got.data(), y.data(), got.size() * sizeof(float), cudaMemcpyDefault));
  explain(got, x);
  y.expect_equal(expected);
}

void check() {
  ladder::exercise::unless_deadlocked(
      "with one tile somebody waits for ever: how many bytes, and from how many blocks, does the leader's "
      "`full` "
      "count, and is an `empty` inbox waited for as if it were full?",
      [] { add_up(1); });
  ladder::exercise::unless_deadlocked(
      "with a second tile somebody waits for ever: does a sender wait before it sends again, who arrives at "
      "its "
      "`empty`, how often, and which parity has a phase?",
      [] { add_up(2); });
  for (const int tiles : {1, 2, 5}) ladder::exercise::on_every_schedule([&] { add_up(tiles); });

  constexpr int kTiles = 4;
  const auto counters = ladder::exercise::counted([] { add_up(kTiles); });
  if (!counters) return;
  constexpr uint64_t kStores = kTiles * exercise::kSenders * exercise::kThreads;
  ladder::exercise::expect(
      counters->async_copies == kStores,
      fmt::format(
          "y is right, but the CPU device counted {} asynchronous stores, and {} tiles need {}: the sums "
          "must go by store_async, each once",
          counters->async_copies, kTiles, kStores));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
