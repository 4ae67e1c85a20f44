/// @file
/// The check of exercise 04.8: fewer tiles than slots, and laps of the ring, by every schedule; and loads
/// that overlap with reads.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/evidence.hpp"

namespace {

/// @throws NotYet unless y is right
void subtract(int tiles) {
  constexpr int kColumns = exercise::kColumns;
  const auto x = ladder::exercise::small_integers<float>(tiles * exercise::kRows * kColumns, 1);
  std::vector<float> expected = x;
  for (size_t i = kColumns; i < x.size(); ++i) expected[i] = x[i] - x[i - kColumns];
  const ladder::DeviceBuffer<__nv_bfloat16> x_device(std::vector<__nv_bfloat16>(x.begin(), x.end()));
  ladder::exercise::Output<float> y("y", expected.size(), kColumns);
  exercise::launch_subtract(x_device.data(), y.data(), tiles);
  const auto without_row = [&](int above) {
    return [&, above](size_t place) {
      const auto other = static_cast<ptrdiff_t>(place) - above * kColumns;
      return x[place] - (other >= 0 ? x[static_cast<size_t>(other)] : 0);
    };
  };
  std::vector<ladder::exercise::Alternative> alternatives = {
      {"each of them is the element of x: nothing was subtracted from it",
       [&](size_t place) { return x[place]; }}};
  for (const int above : {2, exercise::kRows, exercise::kRows + 1})
    alternatives.push_back(
        {fmt::format("from each of them the row {} above was subtracted, and not the row right above", above),
         without_row(above)});
  y.expect_equal(expected, 0, alternatives);
}

void check() {
  for (const int tiles : {1, 3, 4, 11})
    ladder::exercise::in_case(fmt::format("tiles = {}", tiles),
                              [&] { ladder::exercise::on_every_schedule([&] { subtract(tiles); }); });
  constexpr int kTiles = 16, kLatency = 700;  // cycles of the CPU device's clock that a load takes
  const auto counters = ladder::exercise::counted([] { subtract(kTiles); });
  if (!counters) return;
  ladder::exercise::expect(
      counters->cycles < kTiles * kLatency * 3 / 4,
      fmt::format(
          "y is right, but {} tiles take {} cycles, and a load alone {}: how many slots can the loader "
          "fill while a tile is read?",
          kTiles, static_cast<int>(counters->cycles), kLatency));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
