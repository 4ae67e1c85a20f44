/// @file
/// Device libraries of CUDA that lessons do not use: fp16, wmma, groups that are reduced, scanned or grids.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cuda/atomic>
#include <cuda/barrier>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using namespace nvcuda;
using Catch::Matchers::ContainsSubstring;
namespace cg = cooperative_groups;

TEST_CASE("fp16 rounds to nearest even, and as its functions are told") {
  const auto bits = [](float value) { return __half_as_ushort(__float2half(value)); };
  CHECK(bits(1) == 0x3c00);
  CHECK(bits(65504) == 0x7bff);
  CHECK(bits(65519.99f) == 0x7bff);
  CHECK(bits(65520) == 0x7c00);
  CHECK(bits(-0.0f) == 0x8000);
  CHECK(bits(0x1p-24f) == 1);
  CHECK(bits(0x1p-25f) == 0);
  CHECK(bits(0x1.8p-24f) == 2);
  CHECK(bits(1 + 0x1p-11f) == 0x3c00);
  CHECK(bits(1 + 0x1.8p-10f) == 0x3c02);
  CHECK(bits(NAN) == 0x7fff);
  CHECK(__half_as_ushort(__float2half_ru(1 + 0x1p-20f)) == 0x3c01);
  CHECK(__half_as_ushort(__float2half_rd(-1 - 0x1p-20f)) == 0xbc01);
  CHECK(__half_as_ushort(__float2half_rz(1e6f)) == 0x7bff);
  for (unsigned pattern = 0; pattern < 0x10000; ++pattern) {
    const __half value = __ushort_as_half(static_cast<unsigned short>(pattern));
    if (!__hisnan(value)) REQUIRE(bits(__half2float(value)) == pattern);
  }
  CHECK(__half2int_rn(__half(2.5f)) == 2);
  CHECK(__half2short_rz(__half(-2.75f)) == -2);
  CHECK(__half2uint_rn(__half(-1.0f)) == 0);
}

TEST_CASE("arithmetic of fp16 rounds once") {
  const __half a = 1.5f, b = 2.25f;
  CHECK(static_cast<float>(a + b) == 3.75f);
  CHECK(static_cast<float>(__half(2048.0f) + __half(1.0f)) == 2048);
  // The exact sum is beyond the middle between two numbers by less than a float holds.
  CHECK(__half_as_ushort(__hfma(__half(0x1.004p0f), __half(0x1.ffcp-1f), __half(0x1p-14f))) ==
        __half_as_ushort(__half(0x1.004p0 * 0x1.ffcp-1 + 0x1p-14)));
  CHECK(__hlt(a, b));
  CHECK(!__hne(__half(NAN), a));
  CHECK(__hneu(__half(NAN), a));
  CHECK(static_cast<float>(__hmax(__half(NAN), a)) == 1.5f);
  CHECK(__hisnan(__hmax_nan(__half(NAN), a)));
  const __half2 pair = __hfma2(__floats2half2_rn(1, 2), __float2half2_rn(3), __halves2half2(a, b));
  CHECK(__half22float2(pair).x == 4.5f);
  CHECK(__high2float(pair) == 8.25f);
  CHECK(__hgt2_mask(pair, __float2half2_rn(5)) == 0xffff0000u);
  CHECK(static_cast<float>(hexp(__half(0.0f))) == 1);
  CHECK(__low2float(h2sqrt(__float2half2_rn(9))) == 3);
}

namespace {

template <int m, int n, int k, class T, class Sum, class LayoutA, class LayoutB>
void check_product(wmma::layout_t layout) {
  constexpr bool kARows = std::is_same_v<LayoutA, wmma::row_major>;
  constexpr bool kBRows = std::is_same_v<LayoutB, wmma::row_major>;
  std::vector<T> a(m * k), b(k * n);
  std::vector<Sum> c(m * n, static_cast<Sum>(-1.0f));
  const auto in_a = [](int row, int column) { return static_cast<float>((row * 5 + column * 3) % 7 - 3); };
  const auto in_b = [](int row, int column) { return static_cast<float>((row * 2 + column * 11) % 5 - 2); };
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < k; ++j) a[static_cast<size_t>(kARows ? i * k + j : j * m + i)] = in_a(i, j);
  for (int i = 0; i < k; ++i)
    for (int j = 0; j < n; ++j) b[static_cast<size_t>(kBRows ? i * n + j : j * k + i)] = in_b(i, j);
  const unsigned leading = layout == wmma::mem_row_major ? n : m;
  run({}, Schedule(), [&] {
    wmma::fragment<wmma::matrix_a, m, n, k, T, LayoutA> fa;
    wmma::fragment<wmma::matrix_b, m, n, k, T, LayoutB> fb;
    wmma::fragment<wmma::accumulator, m, n, k, Sum> sum;
    wmma::fill_fragment(sum, 1.0f);
    wmma::load_matrix_sync(fa, a.data(), kARows ? k : m);
    wmma::load_matrix_sync(fb, b.data(), kBRows ? n : k);
    for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = fa.x[i] + fa.x[i];
    wmma::mma_sync(sum, fa, fb, sum);
    wmma::store_matrix_sync(c.data(), sum, leading, layout);
  });
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 1;
      for (int step = 0; step < k; ++step) sum += 2 * in_a(i, step) * in_b(step, j);
      const size_t at =
          layout == wmma::mem_row_major ? static_cast<size_t>(i * n + j) : static_cast<size_t>(j * m + i);
      REQUIRE(static_cast<float>(c[at]) == sum);
    }
  }
}

}  // namespace

TEST_CASE("wmma multiplies tiles of every shape, type and layout") {
  using wmma::col_major, wmma::row_major;
  check_product<16, 16, 16, __half, float, row_major, row_major>(wmma::mem_row_major);
  check_product<16, 16, 16, __half, __half, col_major, row_major>(wmma::mem_col_major);
  check_product<32, 8, 16, __half, float, row_major, col_major>(wmma::mem_col_major);
  check_product<8, 32, 16, __half, __half, col_major, col_major>(wmma::mem_row_major);
  check_product<16, 16, 16, __nv_bfloat16, float, row_major, col_major>(wmma::mem_row_major);
  check_product<32, 8, 16, __nv_bfloat16, float, col_major, row_major>(wmma::mem_row_major);
  check_product<8, 32, 16, __nv_bfloat16, float, row_major, row_major>(wmma::mem_col_major);
}

TEST_CASE("wmma names accumulators that were never written, and lanes that are missing") {
  const std::vector<__half> ones(256, __half(1.0f));
  const auto product = [&](bool fill, unsigned lanes) {
    return failure({}, Schedule(), [&] {
      if (threadIdx.x >= lanes) return;
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
      std::memset(&sum, 0xff, sizeof sum);
      if (fill) wmma::fill_fragment(sum, 0.0f);
      wmma::load_matrix_sync(a, ones.data(), 16);
      wmma::load_matrix_sync(b, ones.data(), 16);
      wmma::mma_sync(sum, a, b, sum);
    });
  };
  CHECK(product(true, 32).empty());
  CHECK_THAT(product(false, 32), ContainsSubstring("accumulators that were never written"));
  CHECK_THAT(product(true, 31), ContainsSubstring("wmma::fill_fragment"));
}

TEST_CASE("groups of lanes reduce and scan, on all schedules") {
  struct Wide {
    double x, y, z;
    Wide operator+(const Wide& other) const { return {x + other.x, y + other.y, z + other.z}; }
  };
  for (const Schedule& schedule : all_schedules()) {
    std::vector<int> sums(64), scans(64), highest(64), partial(64), odd(64);
    std::vector<double> wide(64);
    run({.block = 64}, schedule, [&] {
      const unsigned i = threadIdx.x;
      const auto block = cg::this_thread_block();
      const auto warp = cg::tiled_partition<32>(block);
      const auto tile = cg::tiled_partition<8>(warp);
      sums[i] = cg::reduce(tile, static_cast<int>(i), cg::plus<int>());
      highest[i] = cg::reduce(warp, static_cast<int>(i ^ 5), cg::greater<int>());
      scans[i] = cg::inclusive_scan(tile, 1) * 100 + cg::exclusive_scan(tile, 2);
      wide[i] = cg::reduce(warp, Wide{1, 2, static_cast<double>(i)}, cg::plus<Wide>()).z;
      const auto rest = cg::binary_partition(warp, i % 3 == 0);
      partial[i] = cg::reduce(rest, 1, cg::plus<int>());
      if (i % 2) {
        const cg::coalesced_group others = cg::coalesced_threads();
        odd[i] = static_cast<int>(others.shfl(i, 0) * 1000 + others.size() * 10 + others.thread_rank() % 10);
      }
      const cg::thread_group half = cg::tiled_partition(cg::thread_group(block), 16);
      half.sync();
      if (half.size() != 16 || half.thread_rank() != i % 16) sums[i] = -1;
    });
    for (unsigned i = 0; i < 64; ++i) {
      REQUIRE(sums[i] == static_cast<int>(i / 8 * 64 + 28));
      REQUIRE(highest[i] == (i < 32 ? 31 : 63));
      REQUIRE(scans[i] == static_cast<int>((i % 8 + 1) * 100 + i % 8 * 2));
      REQUIRE(wide[i] == (i < 32 ? 496 : 1520));
      unsigned same = 0;
      for (unsigned j = i / 32 * 32; j < i / 32 * 32 + 32; ++j) same += (j % 3 == 0) == (i % 3 == 0);
      REQUIRE(partial[i] == static_cast<int>(same));
      if (i % 2) REQUIRE(odd[i] == static_cast<int>((i / 32 * 32 + 1) * 1000 + 160 + i % 32 / 2 % 10));
    }
  }
}

TEST_CASE("a grid waits for all of its blocks where it was launched together, and else is refused") {
  std::vector<int> values(6 * 32), sums(6 * 32);
  const auto body = [&] {
    const auto grid = cg::this_grid();
    values[grid.thread_rank()] = 1;
    grid.sync();
    for (const int value : values) sums[grid.thread_rank()] += value;
  };
  for (const Schedule& schedule : all_schedules()) {
    sums.assign(sums.size(), 0);
    values.assign(values.size(), 0);
    set_options({.schedule = schedule});
    KernelLaunch together{"together", 6, 32, 1, 0};
    together.cooperative = true;
    launch(together, body);
    REQUIRE(sums == std::vector<int>(sums.size(), static_cast<int>(sums.size())));
  }
  CHECK_THAT(failure({.grid = 6}, Schedule(), body), ContainsSubstring("cudaLaunchCooperativeKernel"));
}

TEST_CASE("bulk copies of libcu++ count their bytes at a cuda::barrier") {
  namespace cde = cuda::device::experimental;
  struct alignas(128) Storage {
    int line[32];
    cuda::barrier<cuda::thread_scope_block> barrier;
  };
  std::vector<int> from(32), to(32);
  for (int i = 0; i < 32; ++i) from[static_cast<size_t>(i)] = i * i;
  const auto body = [&](int bytes) {
    auto& storage = *static_cast<Storage*>(shared_storage(sizeof(Storage), 128, Location::current()));
    if (threadIdx.x == 0) {
      init(&storage.barrier, blockDim.x);
      cde::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    auto token = [&] {
      if (threadIdx.x) return storage.barrier.arrive();
      cde::cp_async_bulk_global_to_shared(storage.line, from.data(), sizeof storage.line, storage.barrier);
      return cuda::device::barrier_arrive_tx(storage.barrier, 1, bytes);
    }();
    storage.barrier.wait(std::move(token));
    to[threadIdx.x] = storage.line[threadIdx.x];
  };
  const Shape shape{.shared_bytes = sizeof(Storage)};
  for (const Schedule& schedule : all_schedules()) {
    to.assign(32, -1);
    REQUIRE(failure(shape, schedule, [&] { body(128); }).empty());
    REQUIRE(to == from);
  }
  CHECK_THAT(failure(shape, Schedule(), [&] { body(64); }), ContainsSubstring("bytes"));
}

TEST_CASE("a cuda::atomic is an object with the operations of a reference") {
  cuda::atomic<int, cuda::thread_scope_device> count{3};
  int last = 0;
  run({.block = 64}, Schedule(), [&] {
    count.fetch_add(2);
    ++count;
    if (count.fetch_sub(0) == 3 + 3 * 64) last = count.load();
  });
  CHECK(count.fetch_max(0) == 195);
  CHECK(last == 195);
}
