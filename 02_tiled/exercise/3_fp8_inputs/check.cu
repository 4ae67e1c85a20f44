/// @file
/// The check of exercise 02.3: all values of A's tiles, the sectors that their loads touch, and the product.
#include EXERCISE

#include <sstream>

#include "common/exercise/check.hpp"

namespace {

using exercise::kTile, exercise::Problem;

/// Stores A as load_a() makes it in `to`, [M, K rounded up to whole tiles]. Each block handles a tile.
__global__ void widen(const Problem p, __nv_bfloat16* to) {
  auto& smem = ladder::shared_storage<exercise::SharedStorage>();
  const int first_row = blockIdx.y * kTile.m, first_k = blockIdx.x * kTile.k;
  exercise::load_a(smem, p, first_row, first_k);
  __syncthreads();
  const int columns = gridDim.x * kTile.k;
  for (int i = threadIdx.x; i < kTile.m * kTile.k; i += blockDim.x) {
    const int row = first_row + i / kTile.k, k = first_k + i % kTile.k;
    if (row < p.M) to[row * columns + k] = smem.a[i / kTile.k][i % kTile.k];
  }
}

/// A, its scales and B of one shape, on the device, and A as it must be after load_a().
class Inputs {
 public:
  Inputs(int M, int N, int K)
      : M_(M), N_(N), K_(K), b_(ladder::exercise::small_integers<__nv_bfloat16>(K * N, 2)) {
    const int groups = ladder::tiles_over(K, exercise::kGroup);
    const int rows = ladder::tiles_over(M, kTile.m) * kTile.m;  // also rows that load_a() must not read
    std::vector<__nv_fp8_e4m3> a(rows * K);
    for (int i = 0; i < rows * K; ++i) {
      a[i].__x = static_cast<__nv_fp8_storage_t>(0x38 + (i * 149 >> 3));  // all of them but NaN
      if ((a[i].__x & 0x7f) == 0x7f) a[i].__x = 0;
    }
    std::vector<float> scales(rows * groups);
    for (int i = 0; i < rows * groups; ++i) scales[i] = 0.01f * static_cast<float>(1 + i);
    for (int row = 0; row < M; ++row)
      for (int k = 0; k < columns(); ++k)
        widened_.push_back(ladder::to_bf16(
            k < K ? static_cast<float>(a[row * K + k]) * scales[row * groups + k / exercise::kGroup] : 0.0f));
    a_device_ = ladder::DeviceBuffer<__nv_fp8_e4m3>(a);
    scales_device_ = ladder::DeviceBuffer<float>(scales);
    b_device_ = ladder::DeviceBuffer<__nv_bfloat16>(b_);
  }

  /// @throws NotYet unless load_a() makes the right tiles
  void widen_a() const {
    ladder::exercise::Output<__nv_bfloat16> tiles("the tiles of A", widened_.size(), columns());
    ladder::launch(widen,
                   {.name = "widen",
                    .grid = dim3(columns() / kTile.k, ladder::tiles_over(M_, kTile.m)),
                    .block = dim3(exercise::kThreads),
                    .shared_bytes = sizeof(exercise::SharedStorage)},
                   problem(nullptr), tiles.data());
    tiles.expect_equal(widened_);
  }

  /// @throws NotYet unless C is right
  void multiply() const {
    std::vector<float> expected(M_ * N_);
    for (int row = 0; row < M_; ++row)
      for (int col = 0; col < N_; ++col)
        for (int k = 0; k < K_; ++k)
          expected[row * N_ + col] = std::fma(ladder::to_float(widened_[row * columns() + k]),
                                              ladder::to_float(b_[k * N_ + col]), expected[row * N_ + col]);
    ladder::exercise::Output<float> c("C", expected.size(), N_);
    exercise::launch_gemm(problem(c.data()));
    c.expect_equal(expected);
  }

 private:
  int columns() const { return ladder::tiles_over(K_, kTile.k) * kTile.k; }
  Problem problem(float* c) const {
    return {a_device_.data(), scales_device_.data(), b_device_.data(), c, M_, N_, K_};
  }

  int M_, N_, K_;
  std::vector<__nv_bfloat16> widened_, b_;
  ladder::DeviceBuffer<__nv_fp8_e4m3> a_device_;
  ladder::DeviceBuffer<float> scales_device_;
  ladder::DeviceBuffer<__nv_bfloat16> b_device_;
};

/// @throws NotYet with `question` if loads touch too many sectors
void load_in_few_sectors(int M, int K, const std::string& question) {
  const auto counters = ladder::exercise::counted([&] { Inputs(M, 1, K).widen_a(); });
  if (!counters) return;
  // A sector has 32 bytes of A. The scales of a row in each tile need another one.
  const int enough = M * K / 32 + M * ladder::tiles_over(K, kTile.k);
  std::ostringstream sentence;
  sentence << "the tiles are right, but their loads touch " << counters->global_read_sectors
           << " sectors of global memory where " << enough << " are enough: " << question;
  ladder::exercise::expect(counters->global_read_sectors <= 2u * enough, sentence.str());
}

void check() {
  Inputs(32, 1, 64).widen_a();
  Inputs(70, 1, 272).widen_a();  // no multiple of 32 x 64, and the last group is half full
  load_in_few_sectors(64, 256,
                      "how much of A can a thread load at once, and which 16 bytes do its neighbours in the "
                      "warp load?");
  load_in_few_sectors(1, 256, "which rows of a tile need no load?");
  ladder::exercise::on_every_schedule([] { Inputs(33, 40, 144).multiply(); });
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
