/// @file
/// The check of exercise 04.5: fewer tiles than staging tiles and more, the last one partial, by every
/// schedule; a store starts while TMA reads the tile before; and no wait is longer than necessary.
#include "common/ptx/tma.cuh"

#ifdef CPU_DEVICE_WHERE
/// Records the storer's calls. The exercise finds these functions first, and the others in ::ptx.
namespace exercise::ptx {
using namespace ::ptx;  // NOLINT(google-build-using-namespace)

struct Storer {
  int started = 0, committed = 0;
  int known_read = 0;        ///< stores that the storer has waited for
  int first_after_wait = 0;  ///< first store that started after a wait for all stores before it; 0: none
};
inline Storer storer;

inline void note_wait(int in_flight) {
  if (storer.committed - in_flight > storer.known_read) storer.known_read = storer.committed - in_flight;
}
inline void tma_store(const CUtensorMap* map, const void* from, int column, int row, CPU_DEVICE_WHERE) {
  if (storer.started > 0 && storer.known_read == storer.started && storer.first_after_wait == 0)
    storer.first_after_wait = storer.started;
  ++storer.started;
  ::ptx::tma_store(map, from, column, row, where);
}
inline void tma_store_commit(CPU_DEVICE_WHERE) {
  storer.committed = storer.started;
  ::ptx::tma_store_commit(where);
}
template <int kInFlight>
void tma_store_wait_read(CPU_DEVICE_WHERE) {
  note_wait(kInFlight);
  ::ptx::tma_store_wait_read<kInFlight>(where);
}
template <int kInFlight>
void tma_store_wait(CPU_DEVICE_WHERE) {
  note_wait(kInFlight);
  ::ptx::tma_store_wait<kInFlight>(where);
}

}  // namespace exercise::ptx
#endif

#include EXERCISE

#include "common/exercise/check.hpp"

namespace {

/// @throws NotYet unless C is right
void fill(int rows) {
  std::vector<__nv_bfloat16> expected;
  for (int i = 0; i < rows * exercise::kTile; ++i)
    expected.push_back(ladder::to_bf16(exercise::element(i / exercise::kTile, i % exercise::kTile)));
  ladder::exercise::Output<__nv_bfloat16> c("C", expected.size(), exercise::kTile);
  exercise::launch_fill(c.data(), rows);
  c.expect_equal(expected);
}

/// @throws NotYet if the storer never has two stores in flight
void expect_stores_in_line() {
#ifdef CPU_DEVICE_WHERE
  exercise::ptx::storer = {};
  fill(4 * exercise::kTile);
  const int store = exercise::ptx::storer.first_after_wait;
  ladder::exercise::expect(
      store == 0,
      fmt::format("C is right, but store {} starts only after the storer has waited until store {} has "
                  "read its tile: what is the second staging tile for?",
                  store, store - 1));
#endif
}

void check() {
  for (const int rows : {64, 100, 128, 450}) ladder::exercise::on_every_schedule([&] { fill(rows); });
  expect_stores_in_line();
  // The clock shows how long tiles are kept.
  constexpr int kTiles = 16, kLatency = 700;  // cycles of the CPU device's clock until a store is written
  const auto counters = ladder::exercise::counted([] { fill(kTiles * exercise::kTile); });
  if (!counters) return;
  ladder::exercise::expect(
      counters->cycles < kTiles * kLatency / 2,
      fmt::format(
          "C is right, but {} tiles take {} cycles, and a store is written {} cycles after its tile has "
          "been read: which of the two must come before the tile is released?",
          kTiles, static_cast<int>(counters->cycles), kLatency));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
