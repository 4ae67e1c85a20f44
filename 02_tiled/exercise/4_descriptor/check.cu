/// @file
/// The check of exercise 02.4: the product by every schedule, with the learner's descriptors.
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
                           "the file calls matrix_descriptor(): read that function, and build the descriptor "
                           "yourself");
}

/// The element of a row-major matrix [rows, k] that a product takes in place of (row, k); -1 for none.
using TakenFor = int (*)(int rows, int row, int k);

constexpr int kPanel = 64;  ///< columns

int itself(int, int row, int k) { return row * kTile.k + k; }

struct Mistake {
  TakenFor taken;
  const char* what;
};
const Mistake kMistakes[] = {
    {[](int, int row, int k) { return k < kTile.k - exercise::kStep ? -1 : itself(0, row, k); },
     "that is the product of the last 16 columns of k alone: which wgmma may overwrite d?"},
    {[](int, int row, int k) { return k < exercise::kStep ? itself(0, row, k) : -1; },
     "that is the product of the first 16 columns of k alone: how many steps does the tile have?"},
    {[](int, int row, int k) { return k < kPanel ? itself(0, row, k) : -1; },
     "that is the product of the first panel alone: k continues in the second one"},
    {[](int, int row, int k) { return itself(0, row, k % kPanel); },
     "that is the product of the first panel, twice: where does the second one begin?"},
    {[](int rows, int row, int k) {
       const int place = row * kPanel + k;  // after a row of a panel comes its next row
       return itself(0, place / kPanel % rows, place / (kPanel * rows) * kPanel + place % kPanel);
     },
     "from k = 64 on that is the row below: a panel has 64 columns of k; where does the next one begin?"},
};

/// C as bf16, where each product takes the elements that `taken` names.
std::vector<__nv_bfloat16> product(const std::vector<float>& a, const std::vector<float>& b, TakenFor taken) {
  std::vector<__nv_bfloat16> c;
  for (int row = 0; row < kTile.m; ++row)
    for (int column = 0; column < kTile.n; ++column) {
      float sum = 0;
      for (int k = 0; k < kTile.k; ++k) {
        const int of_a = taken(kTile.m, row, k), of_b = taken(kTile.n, column, k);
        if (of_a >= 0 && of_b >= 0) sum += a[of_a] * b[of_b];
      }
      c.push_back(ladder::to_bf16(sum));
    }
  return c;
}

/// @throws NotYet unless C is right, with the mistake if it is a known one
void multiply() {
  const auto a = ladder::exercise::small_integers<float>(kTile.m * kTile.k, 1);
  const auto b = ladder::exercise::small_integers<float>(kTile.n * kTile.k, 2);
  const ladder::DeviceBuffer<__nv_bfloat16> a_device(std::vector<__nv_bfloat16>(a.begin(), a.end())),
      b_device(std::vector<__nv_bfloat16>(b.begin(), b.end()));
  ladder::exercise::Output<__nv_bfloat16> c("C", kTile.m * kTile.n, kTile.n);
  exercise::launch_gemm(a_device.data(), b_device.data(), c.data());
  const auto complaint = [&](TakenFor taken) -> std::string {
    try {
      c.expect_equal(product(a, b, taken));
      return "";
    } catch (const ladder::exercise::NotYet& not_yet) {
      return not_yet.what();
    }
  };
  const std::string wrong = complaint(itself);
  if (wrong.empty()) return;
  for (const Mistake& mistake : kMistakes)
    if (complaint(mistake.taken).empty()) throw ladder::exercise::NotYet(wrong + ": " + mistake.what);
  throw ladder::exercise::NotYet(wrong);
}

void check() {
  expect_own_descriptor();
  ladder::exercise::on_every_schedule(multiply);
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
