/// @file
/// The check of exercise 06.6: one tile, and many through the same inbox, by every schedule.
#include EXERCISE

#include <algorithm>
#include <numeric>

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

/// The sums of x over the blocks, one rank after the other in this order.
std::vector<float> sums_in_order(const std::vector<float>& x, const std::vector<int>& ranks) {
  const size_t size = x.size() / exercise::kBlocks;
  std::vector<float> sums(&x[ranks[0] * size], &x[ranks[0] * size] + size);
  for (size_t rank = 1; rank < ranks.size(); ++rank)
    for (size_t i = 0; i < size; ++i) sums[i] += x[ranks[rank] * size + i];
  return sums;
}

/// With sums that are rounded: they tell in which order they were made.
/// @throws NotYet if that is the order of other ranks
void check_order() {
  std::vector<float> x = ladder::exercise::small_integers<float>(exercise::kBlocks * kFloats, 2);
  const auto odd = ladder::exercise::small_integers<float>(x.size(), 3);
  for (size_t i = 0; i < x.size(); ++i) x[i] += odd[i] / 3;
  const ladder::DeviceBuffer<float> x_device(x);
  ladder::exercise::Output<float> y("y", kFloats, kFloats);
  exercise::launch_add_up(reinterpret_cast<const float4*>(x_device.data()),
                          reinterpret_cast<float4*>(y.data()), 1);
  const std::vector<float> got = y.values();
  std::vector<int> ranks(exercise::kBlocks);
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> own_sums_last = ranks;  // the senders' in their order, and then added: right, too
  std::rotate(own_sums_last.begin(), own_sums_last.begin() + 1, own_sums_last.end());
  if (got == sums_in_order(x, ranks) || got == sums_in_order(x, own_sums_last)) return;
  while (std::next_permutation(ranks.begin(), ranks.end())) {
    if (got != sums_in_order(x, ranks)) continue;
    std::string order;
    for (const int rank : ranks) order += fmt::format("{}{}", order.empty() ? "" : ", ", rank);
    throw NotYet(
        fmt::format("the sums are right but for their rounding: the leader adds ranks {}, not 0 to {}: does "
                    "each rank r send to place r - 1 of the inbox?",
                    order, exercise::kBlocks - 1));
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

  check_order();

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
