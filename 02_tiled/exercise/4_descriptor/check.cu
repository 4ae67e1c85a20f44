/// @file
/// The check of exercise 02.4: the product by every schedule, with descriptors of the learner's own.
#include EXERCISE

#include <fstream>
#include <sstream>

#include "common/exercise/check.hpp"

namespace {

using exercise::kTile;

/// @throws NotYet where the file calls the repository's function for the descriptor
void expect_own_descriptor() {
  std::ostringstream text;
  text << std::ifstream(EXERCISE).rdbuf();
  ladder::exercise::expect(text.str().find("matrix_descriptor(") == std::string::npos,
                           "the file calls matrix_descriptor(): read what it does, and put its bits together "
                           "yourself");
}

/// @throws NotYet unless C is right
void multiply() {
  const auto a = ladder::exercise::small_integers<float>(kTile.m * kTile.k, 1);
  const auto b = ladder::exercise::small_integers<float>(kTile.n * kTile.k, 2);
  const std::vector<__nv_bfloat16> a_bf16(a.begin(), a.end()), b_bf16(b.begin(), b.end());
  std::vector<__nv_bfloat16> expected;
  for (int row = 0; row < kTile.m; ++row)
    for (int column = 0; column < kTile.n; ++column) {
      float sum = 0;
      for (int k = 0; k < kTile.k; ++k) sum += a[row * kTile.k + k] * b[column * kTile.k + k];
      expected.push_back(ladder::to_bf16(sum));
    }
  const ladder::DeviceBuffer<__nv_bfloat16> a_device(a_bf16), b_device(b_bf16);
  ladder::exercise::Output<__nv_bfloat16> c("C", expected.size(), kTile.n);
  exercise::launch_gemm(a_device.data(), b_device.data(), c.data());
  c.expect_equal(expected);
}

void check() {
  expect_own_descriptor();
  ladder::exercise::on_every_schedule(multiply);
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
