/// @file
/// The check of exercise 06.6: one tile, and many through the same inbox, by every schedule.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/evidence.hpp"

namespace {

using ladder::exercise::NotYet;

constexpr int kFloats = 4 * exercise::kThreads;  ///< floats of a tile in each block

/// @throws NotYet naming the blocks whose sums are missing, if y is the sum over the others
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
    if (sum == y) throw NotYet("y is not the sum over all blocks: it lacks the sums of rank " + missing);
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
      "with one tile a thread waits forever: how many bytes from how many blocks does the leader's `full` "
      "expect, and with which parity does a sender wait at `empty` before the first tile?",
      [] { add_up(1); });
  ladder::exercise::unless_deadlocked(
      "with a second tile a thread waits forever: which threads arrive at a sender's `empty`, how often, and "
      "with which parity does the sender wait?",
      [] { add_up(2); });
  for (const int tiles : {1, 2, 5}) ladder::exercise::on_every_schedule([&] { add_up(tiles); });

  constexpr int kTiles = 4;
  const auto counters = ladder::exercise::counted([] { add_up(kTiles); });
  if (!counters) return;
  constexpr uint64_t kStores = kTiles * exercise::kSenders * exercise::kThreads;
  ladder::exercise::expect(
      counters->async_copies == kStores,
      fmt::format(
          "y is right, but the CPU device counted {} asynchronous stores, and {} tiles need {}: send each "
          "sum once, by store_async",
          counters->async_copies, kTiles, kStores));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
