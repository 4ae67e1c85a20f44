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
#include <cuda/ptx>
#include <vector>

#include "common/cpu_device/base/unwritten.hpp"
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
      for (float& x : sum.x) std::memcpy(&x, &cpu_device::kUnwrittenLocal, sizeof x);
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

TEST_CASE(
    "cuda::ptx loads a box, adds to it in global memory, and hands over to the next block of the cluster") {
  namespace ptx = cuda::ptx;
  struct alignas(128) Storage {
    int tile[4][32];
    uint64_t full, handed;
  };
  std::vector<int> from(64), sums(64), seen(64);
  for (int i = 0; i < 64; ++i) from[static_cast<size_t>(i)] = i * i;
  CUtensorMap maps[2];
  const cuuint64_t sizes[] = {32, 2};
  const cuuint64_t strides[] = {128};
  const cuuint32_t box[] = {32, 1}, steps[] = {1, 1};
  int* const tensors[] = {from.data(), sums.data()};
  for (int i = 0; i < 2; ++i)
    REQUIRE(cuTensorMapEncodeTiled(&maps[i], CU_TENSOR_MAP_DATA_TYPE_INT32, 2, tensors[i], sizes, strides,
                                   box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                   CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  const auto body = [&](bool publishes, uint32_t bytes) {
    auto& storage = *static_cast<Storage*>(shared_storage(sizeof(Storage), 128, Location::current()));
    const unsigned rank = ptx::get_sreg_cluster_ctarank(), lane = ptx::get_sreg_laneid();
    const bool is_first = ptx::elect_sync(~0u);
    if (is_first) {
      ptx::mbarrier_init(&storage.full, 1);
      ptx::mbarrier_init(&storage.handed, 1);
      ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    if (is_first) {
      const int at[] = {0, static_cast<int>(rank)};
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, storage.tile[0], &maps[0], at,
                                &storage.full);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &storage.full,
                                     bytes);
    }
    while (!ptx::mbarrier_try_wait_parity(&storage.full, 0)) {
    }
    storage.tile[1][lane] = storage.tile[0][lane] + 1;
    if (publishes) ptx::fence_proxy_async(ptx::space_shared);
    __syncwarp();
    if (is_first) {
      const int at[] = {0, static_cast<int>(rank)};
      ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_add, &maps[1], at,
                                       storage.tile[1]);
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
      int* const there = ptx::mapa(ptx::space_cluster, storage.tile[2], 1 - rank);
      uint64_t* const full_there = ptx::mapa(ptx::space_cluster, &storage.handed, 1 - rank);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, there, storage.tile[1], 128, full_there);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &storage.handed,
                                     128u);
    }
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &storage.handed, 0)) {
    }
    seen[rank * 32 + lane] = storage.tile[2][lane];
    ptx::barrier_cluster_arrive(ptx::sem_release);
    ptx::barrier_cluster_wait(ptx::sem_acquire);
  };
  const Shape shape{.block = 32, .shared_bytes = sizeof(Storage), .grid = 2, .cluster = 2};
  for (const Schedule& schedule : all_schedules()) {
    sums.assign(64, 5);
    REQUIRE(failure(shape, schedule, [&] { body(true, 128); }) == "");
    for (size_t i = 0; i < 64; ++i) {
      REQUIRE(sums[i] == from[i] + 6);
      REQUIRE(seen[i] == from[(i + 32) % 64] + 1);
    }
  }
  sums.assign(64, 5);
  CHECK(failure(shape, Schedule(), [&] { body(false, 128); }) == "");
  CHECK(sums[7] != from[7] + 6);  // the tensor map's path does not see what was stored
  CHECK_THAT(failure(shape, Schedule(), [&] { body(true, 64); }), ContainsSubstring("bytes"));
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
