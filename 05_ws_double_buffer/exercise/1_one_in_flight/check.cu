/// @file
/// The check of exercise 05.1: laps of the ring by every schedule, and the cycles with a product in flight.
#include EXERCISE

#include <fmt/core.h>

#include "common/exercise/check.hpp"
#include "common/exercise/evidence.hpp"

namespace {

using exercise::kColumns, exercise::kDepth, exercise::kRows;
using Matrix = std::vector<__nv_bfloat16>;

/// Which tile's sums are missing, and which are there twice, if that makes the values; else empty.
/// @param of_tiles what each tile adds to out
std::string explain(const std::vector<float>& got, const std::vector<float>& expected,
                    const std::vector<std::vector<float>>& of_tiles) {
  const int tiles = static_cast<int>(of_tiles.size());
  const auto name = [&](int tile) { return fmt::format("tile {} (of {})", tile, tiles); };
  const auto explains = [&](int twice, int missing) {
    for (size_t i = 0; i < got.size(); ++i) {
      const float more = twice < 0 ? 0 : of_tiles[twice][i], less = missing < 0 ? 0 : of_tiles[missing][i];
      if (got[i] != expected[i] + more - less) return false;
    }
    return true;
  };
  for (int missing = tiles - 1; missing >= -1; --missing)
    for (int twice = -1; twice < tiles; ++twice) {
      if (missing == twice || !explains(twice, missing)) continue;
      if (twice < 0) return fmt::format("out lacks the sums of {}", name(missing));
      if (missing < 0) return fmt::format("out has the sums of {} twice", name(twice));
      return fmt::format(
          "out lacks the sums of {}, and has those of {} twice: which core holds the product that is added "
          "there?",
          name(missing), name(twice));
    }
  return "";
}

/// @throws NotYet unless out is right
void pool(int tiles) {
  const Matrix x = ladder::exercise::small_integers<__nv_bfloat16>(tiles * kRows * kDepth, 1);
  const Matrix w = ladder::exercise::small_integers<__nv_bfloat16>(kDepth * kColumns, 2);
  const auto bias = ladder::exercise::small_integers<float>(kColumns, 3);
  constexpr int kWarps = ladder::kWarpsPerWarpgroup, kRowsPerWarp = kRows / kWarps;
  std::vector<float> expected(kWarps * kColumns);
  std::vector<float> w_float;
  for (const auto value : w) w_float.push_back(ladder::to_float(value));
  std::vector<std::vector<float>> of_tiles(tiles, std::vector<float>(expected.size()));
  for (int row = 0; row < tiles * kRows; ++row) {
    std::vector<float> products = bias;
    for (int k = 0; k < kDepth; ++k) {
      const float x_value = ladder::to_float(x[row * kDepth + k]);
      for (int column = 0; column < kColumns; ++column)
        products[column] += x_value * w_float[k * kColumns + column];
    }
    float* const sums = &of_tiles[row / kRows][row % kRows / kRowsPerWarp * kColumns];
    for (int column = 0; column < kColumns; ++column) sums[column] += std::max(products[column], 0.0f);
  }
  for (const std::vector<float>& sums : of_tiles)
    for (size_t i = 0; i < sums.size(); ++i) expected[i] += sums[i];
  const ladder::DeviceBuffer<__nv_bfloat16> x_device(x), w_device(w);
  const ladder::DeviceBuffer<float> bias_device(bias);
  ladder::exercise::Output<float> out("out", expected.size(), kColumns);
  exercise::launch_pooled(x_device.data(), w_device.data(), bias_device.data(), out.data(), tiles);
  try {
    ladder::exercise::expect_equal_or_explain<decltype(out), float>(
        out, expected, [&](const std::vector<float>& got) { return explain(got, expected, of_tiles); });
  } catch (const ladder::exercise::NotYet& not_yet) {  // all memory is written, so the NaN comes from sums
    const std::string what = not_yet.what();
    const size_t nan = what.find(" is NaN");
    if (nan == what.npos) throw;
    throw ladder::exercise::NotYet(
        what.substr(0, nan) +
        " is NaN: the sums were read while a wgmma was writing them. Did the thread wait for "
        "the product whose sums it adds up, or does the next product use the same accumulator?");
  }
}

void check() {
  for (const int tiles : {2, 8, 18}) ladder::exercise::on_every_schedule([&] { pool(tiles); });
  constexpr int kTiles = 16, kProduct = 256;  // cycles of the CPU device's clock
  constexpr int kEnough =
      kTiles * kProduct + 2500;  // more for the loads of w and the first tile, and for the last sums
  const auto counters = ladder::exercise::counted([] { pool(kTiles); });
  if (!counters) return;
  ladder::exercise::expect(
      counters->cycles <= kEnough,
      fmt::format(
          "out is right, but {} tiles take {} cycles, where {} are enough: which product runs while the "
          "threads add up sums?",
          kTiles, static_cast<int>(counters->cycles), kEnough));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
