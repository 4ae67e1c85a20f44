/// @file
/// The check of exercise 05.7: compares with a simple computation on the host, adding one part of the layer
/// after the other, partial tiles included; and whole sectors.
#include EXERCISE

#include <fmt/core.h>

#include "common/exercise/check.hpp"
#include "common/exercise/evidence.hpp"

namespace {

using ladder::to_bf16, ladder::to_float;
using ladder::exercise::expect, ladder::exercise::NotYet;
using Vector = std::vector<__nv_bfloat16>;
constexpr int kK = exercise::kTile.k;

/// factor * (-4 .. 4) + offset.
Vector random_vector(size_t size, unsigned seed, float factor, float offset = 0) {
  Vector values;
  for (const float value : ladder::exercise::small_integers<float>(size, seed))
    values.push_back(to_bf16(factor * value + offset));
  return values;
}

float gelu(float x) { return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x))); }

struct Inputs {
  int m, n;
  Vector x, gamma = Vector(kK, to_bf16(1)), beta = Vector(kK, to_bf16(0));
  Vector w, bias = Vector(n, to_bf16(0));
};

/// The layer by its definition, rounded to bf16 between layernorm and linear, as tensor cores take it.
Vector reference(const Inputs& inputs, bool with_gelu) {
  const auto& [m, n, x, gamma, beta, w, bias] = inputs;
  Vector out;
  for (int row = 0; row < m; ++row) {
    float mean = 0, variance = 0, normal[kK];
    for (int k = 0; k < kK; ++k) mean += to_float(x[row * kK + k]) / kK;
    for (int k = 0; k < kK; ++k) variance += std::pow(to_float(x[row * kK + k]) - mean, 2.0f) / kK;
    for (int k = 0; k < kK; ++k) {
      const float unit = (to_float(x[row * kK + k]) - mean) / std::sqrt(variance + exercise::kEpsilon);
      normal[k] = to_float(to_bf16(unit * to_float(gamma[k]) + to_float(beta[k])));
    }
    for (int column = 0; column < n; ++column) {
      float sum = to_float(bias[column]);
      for (int k = 0; k < kK; ++k) sum += normal[k] * to_float(w[k * n + column]);
      out.push_back(to_bf16(with_gelu ? gelu(sum) : sum));
    }
  }
  return out;
}

enum class Gelu { may_be_missing, demanded };

/// @throws NotYet unless out is right
void run(const Inputs& inputs, float tolerance, Gelu gelu) {
  const ladder::DeviceBuffer<__nv_bfloat16> x(inputs.x), gamma(inputs.gamma), beta(inputs.beta), w(inputs.w),
      bias(inputs.bias);
  const auto [m, n] = std::pair{inputs.m, inputs.n};
  ladder::exercise::Output<__nv_bfloat16> out("out", static_cast<size_t>(m) * n, n);
  try {
    exercise::launch_layer({x.data(), gamma.data(), beta.data(), w.data(), bias.data(), out.data(), m, n});
  } catch (const std::exception& report) {
    const std::string what = report.what(),
                      end_of_bias = fmt::format("the end of the buffer of {} bytes", 2 * n);
    if (what.find(end_of_bias) == what.npos) throw;
    throw NotYet(fmt::format("bias has {} elements, one for each column of out: {}", n, what));
  }
  try {
    out.expect_equal(reference(inputs, /*with_gelu=*/true), tolerance);
  } catch (const NotYet& wrong) {
    if (gelu == Gelu::demanded) throw;
    try {
      out.expect_equal(reference(inputs, /*with_gelu=*/false), tolerance);
    } catch (const NotYet&) {
      throw wrong;
    }
  }
}

/// Every second element of all rows is `even`, the others are `odd`. The signs in w add the magnitudes of all
/// 128 normalised elements, so one rounding step of a normalised element is 0.5 in out.
void run_rows_of(float even, float odd) {
  Inputs inputs{.m = 5, .n = 8, .x = {}, .w = {}};
  for (int i = 0; i < inputs.m * kK; ++i) inputs.x.push_back(to_bf16(i % 2 ? odd : even));
  for (int i = 0; i < kK * inputs.n; ++i) inputs.w.push_back(to_bf16((i / inputs.n + i) % 2 ? -1.0f : 1.0f));
  run(inputs, 0.25f, Gelu::may_be_missing);
}

enum Parts { kNoBias, kBias, kBiasGammaBeta };

/// Random x and w, and random values in these parts.
void run_random(int m, int n, Parts parts = kBiasGammaBeta, Gelu gelu = Gelu::demanded) {
  Inputs inputs{.m = m, .n = n, .x = random_vector(m * kK, 1, 1, 3), .w = random_vector(kK * n, 4, 0.03125f)};
  if (parts >= kBias) inputs.bias = random_vector(n, 5, 0.25f);
  if (parts >= kBiasGammaBeta) {
    inputs.gamma = random_vector(kK, 2, 0.125f, 1);
    inputs.beta = random_vector(kK, 3, 0.0625f);
  }
  constexpr float kTolerance = 0.04f;  // two roundings to bf16 and tanh.approx, for values up to about 4
  run(inputs, kTolerance, gelu);
}

void check() {
  using ladder::exercise::in_case, ladder::exercise::on_every_schedule;
  constexpr auto kAnyGelu = Gelu::may_be_missing;
  const std::string plain = "layernorm and product only (gamma is 1, beta and bias are 0), ";
  in_case(plain + "rows of 2 and 4", [] { on_every_schedule([] { run_rows_of(2, 4); }); });
  in_case(plain + "rows of 3 alone, of variance 0", [] { run_rows_of(3, 3); });
  constexpr float kTiny = 1.0f / 256;
  in_case(plain + "rows of 1/256 and -1/256, of variance 0.000015", [] { run_rows_of(kTiny, -kTiny); });
  in_case(plain + "any rows", [] { run_random(64, 64, kNoBias, kAnyGelu); });
  in_case("with a bias", [] { run_random(64, 64, kBias, kAnyGelu); });
  in_case("with gamma and beta", [] { run_random(64, 64, kBiasGammaBeta, kAnyGelu); });
  in_case("with GELU", [] { run_random(64, 64); });
  in_case("with ragged edges", [] { run_random(70, 72); });
  on_every_schedule([] { run_random(5, 8); });
  const auto counters = ladder::exercise::counted([] { run_random(64, 64); });
  if (!counters) return;
  // Sectors of 32 bytes: x and w once, gamma and beta once for each row, bias for each thread's columns.
  constexpr uint64_t kMatrices = 64 * kK * 2 * 2 / 32, kVectors = 2 * 64 * kK * 2 / 32, kBias = 4 * 32;
  constexpr uint64_t kEnough = kMatrices + kVectors + kBias;
  expect(counters->global_read_sectors <= kEnough,
         fmt::format("out is right, but warps read {} sectors, where {} are enough: is x read once, and by "
                     "neighbouring lanes?",
                     counters->global_read_sectors, kEnough));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
