/// @file
/// The counters: sectors, bank conflicts and sampling, first with addresses alone, then under real kernels.
#include <cuda_pipeline.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <vector>

#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/observe/counters.hpp"
#include "common/cpu_device/tests/pinned_vector.hpp"
#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/mma_sync.cuh"

using cpu_device::AccessCounter;
using cpu_device::AccessTotals;
using cpu_device::Counters;
using cpu_device::LaneAccess;
using cpu_device::Space;
using cpu_device::Wavefronts;

using cpu_device::test::PinnedVector;

namespace counters_test {
namespace {

/// The lanes of a warp, lane i at `address(i)`.
template <class Address>
std::vector<LaneAccess> warp(uint32_t bytes, Address&& address, unsigned lanes = 32) {
  std::vector<LaneAccess> result;
  for (unsigned i = 0; i < lanes; ++i) result.push_back({static_cast<uint64_t>(address(i)), bytes});
  return result;
}

unsigned sectors(const std::vector<LaneAccess>& lanes) {
  return cpu_device::count_sectors(lanes.data(), static_cast<unsigned>(lanes.size()));
}

Wavefronts wavefronts(const std::vector<LaneAccess>& lanes) {
  return cpu_device::count_wavefronts(lanes.data(), static_cast<unsigned>(lanes.size()));
}

const void* instruction(uintptr_t address) { return reinterpret_cast<const void*>(address); }

}  // namespace

// --- addresses -----------------------------------------------------------------------------------------

TEST_CASE("coalesced 4-byte lanes take 4 sectors, strided ones 32, a broadcast 1") {
  CHECK(sectors(warp(4, [](unsigned i) { return 4096 + 4 * i; })) == 4);
  CHECK(sectors(warp(4, [](unsigned i) { return 4096 + 512 * i; })) == 32);
  CHECK(sectors(warp(4, [](unsigned) { return 4096; })) == 1);
}

TEST_CASE("a coalesced access that is not aligned takes one sector more") {
  CHECK(sectors(warp(4, [](unsigned i) { return 4096 + 8 + 4 * i; })) == 5);
}

TEST_CASE("16-byte lanes take 16 sectors, 2-byte lanes 2, inactive lanes none") {
  CHECK(sectors(warp(16, [](unsigned i) { return 16 * i; })) == 16);
  CHECK(sectors(warp(2, [](unsigned i) { return 2 * i; })) == 2);
  std::vector<LaneAccess> lanes = warp(4, [](unsigned i) { return 512 * i; });
  for (unsigned i = 1; i < 32; ++i) lanes[i].bytes = 0;
  CHECK(sectors(lanes) == 1);
}

TEST_CASE("a column of a 32x32 float tile has 32-way conflicts, of a padded one none") {
  const Wavefronts column = wavefronts(warp(4, [](unsigned i) { return 32 * 4 * i; }));
  CHECK(column.taken == 32);
  CHECK(column.ideal == 1);
  const Wavefronts padded = wavefronts(warp(4, [](unsigned i) { return 33 * 4 * i; }));
  CHECK(padded.taken == 1);
  CHECK(padded.ideal == 1);
}

TEST_CASE("lanes that read the same word share a wavefront") {
  CHECK(wavefronts(warp(4, [](unsigned) { return 64; })).taken == 1);
  CHECK(wavefronts(warp(2, [](unsigned i) { return 2 * i; })).taken == 1);
  CHECK(wavefronts(warp(4, [](unsigned i) { return i % 2 * 128; })).taken == 2);
}

TEST_CASE("wide lanes are served by half and quarter warps") {
  const Wavefronts eight = wavefronts(warp(8, [](unsigned i) { return 8 * i; }));
  CHECK(eight.taken == 2);
  CHECK(eight.ideal == 2);
  const Wavefronts sixteen = wavefronts(warp(16, [](unsigned i) { return 16 * i; }));
  CHECK(sixteen.taken == 4);
  CHECK(sixteen.ideal == 4);
  // Every lane in the same four banks.
  const Wavefronts strided = wavefronts(warp(16, [](unsigned i) { return 128 * i; }));
  CHECK(strided.taken == 32);
  CHECK(strided.ideal == 4);
}

TEST_CASE("the rows of an 8x8 matrix conflict in an unswizzled 128-byte tile and not in a swizzled one") {
  const Wavefronts unswizzled = wavefronts(warp(
      16, [](unsigned row) { return 128 * row; }, 8));
  CHECK(unswizzled.taken == 8);
  CHECK(unswizzled.ideal == 1);
  for (unsigned chunk = 0; chunk < 8; ++chunk) {
    const auto swizzled = [=](unsigned row) { return 128 * row + (chunk ^ row % 8) * 16; };
    CHECK(wavefronts(warp(16, swizzled, 8)).taken == 1);
  }
}

// --- lanes that run one after the other ----------------------------------------------------------------

TEST_CASE("the accesses of lanes that run one after the other are put together") {
  AccessCounter counter;
  counter.begin(1);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (uint64_t k = 0; k < 10; ++k) {
      counter.lane_access(0, lane, instruction(100), Space::global, 4096 * k + 4 * lane, 4, false);
      counter.lane_access(0, lane, instruction(200), Space::shared, 128 * lane, 4, true);
    }
  }
  CHECK(counter.sampled().global_read_sectors == 0);  // the warp has not converged
  counter.converge_warp(0);
  const AccessTotals totals = counter.sampled();
  CHECK(totals.global_bytes_read == 10 * 32 * 4);
  CHECK(totals.global_read_sectors == 10 * 4);
  CHECK(totals.shared_bytes_written == 10 * 32 * 4);
  CHECK(totals.shared_wavefronts == 10 * 32);
  CHECK(totals.bank_conflicts == 10 * 31);
  CHECK(totals.global_bytes_written + totals.global_write_sectors + totals.shared_bytes_read == 0);
}

TEST_CASE("accesses before and after a convergence point are not one access") {
  AccessCounter counter;
  counter.begin(2);
  for (int half = 0; half < 2; ++half) {
    for (unsigned lane = 0; lane < 16; ++lane) {
      counter.lane_access(0, half * 16 + lane, instruction(100), Space::global, 2 * lane, 2, false);
    }
    counter.converge_warp(0);
  }
  CHECK(counter.sampled().global_read_sectors == 2);
}

TEST_CASE("warps are counted apart, and the end of a cluster counts what is left") {
  AccessCounter counter;
  counter.begin(2);
  counter.lane_access(0, 0, instruction(100), Space::global, 0, 4, false);
  counter.lane_access(1, 0, instruction(100), Space::global, 0, 4, false);
  counter.converge_all();
  CHECK(counter.sampled().global_read_sectors == 2);
}

TEST_CASE("an access of more than 16 bytes counts as several instructions") {
  AccessCounter counter;
  counter.begin(1);
  for (unsigned lane = 0; lane < 32; ++lane) {
    counter.lane_access(0, lane, instruction(100), Space::shared, 64 * lane, 64, false);
  }
  counter.converge_all();
  CHECK(counter.sampled().shared_bytes_read == 32 * 64);
  CHECK(counter.sampled().shared_wavefronts == 4 * 16);  // four pieces, each four-way in a quarter warp
}

TEST_CASE("a long stretch without convergence takes bounded memory and is extrapolated") {
  AccessCounter counter;
  counter.begin(8);
  const uint64_t executions = 1000;  // of which kExaminedExecutions are looked at
  for (unsigned warp = 0; warp < 8; ++warp) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (uint64_t k = 0; k < executions; ++k) {
        counter.lane_access(warp, lane, instruction(100 + warp), Space::global, 128 * k + 4 * lane, 4, true);
      }
    }
  }
  counter.converge_all();
  CHECK(counter.sampled().global_bytes_written == 8 * executions * 128);
  CHECK(counter.sampled().global_write_sectors == 8 * executions * 4);
}

TEST_CASE("what hardware engines move is counted exactly and never scaled") {
  AccessCounter counter;
  counter.begin(1);
  const auto column = warp(4, [](unsigned i) { return 128 * i; });
  counter.warp_access(Space::shared, column.data(), 32, false);
  counter.bulk_access(Space::global, 16, 128, false);
  counter.bulk_access(Space::shared, 0, 1024, true);
  Counters counters;
  AccessTotals sampled;
  sampled.shared_wavefronts = 5;
  cpu_device::add_to(counters, counter.exact(), sampled, 100, 10);
  CHECK(counters.shared_wavefronts == 32 + 8 + 50);
  CHECK(counters.bank_conflicts == 31);
  CHECK(counters.global_bytes_read == 128);
  CHECK(counters.global_read_sectors == 5);
  CHECK(counters.shared_bytes_written == 1024);
}

TEST_CASE("samples are few, spread over the grid, and all of a small grid") {
  for (uint64_t clusters = 1; clusters <= cpu_device::kSampledClusters; ++clusters) {
    for (uint64_t i = 0; i < clusters; ++i) CHECK(cpu_device::is_sampled(i, clusters));
  }
  for (const uint64_t clusters : {33u, 64u, 100u, 1024u, 65536u}) {
    CAPTURE(clusters);
    uint64_t sampled = 0, in_first_half = 0, columns = 0;
    for (uint64_t i = 0; i < clusters; ++i) {
      if (!cpu_device::is_sampled(i, clusters)) continue;
      ++sampled;
      in_first_half += i < clusters / 2;
      columns |= uint64_t{1} << i % 16;
    }
    CHECK(sampled == cpu_device::kSampledClusters);
    CHECK(in_first_half >= sampled / 2 - 1);
    CHECK(in_first_half <= sampled / 2 + 1);
    // Not always the same column of a grid that is 16 wide.
    CHECK(__builtin_popcountll(columns) >= 8);
  }
}

// --- kernels -------------------------------------------------------------------------------------------

namespace {

constexpr int kEdge = 32;

/// The schedule of the launches that follow.
cpu_device::Schedule schedule;

template <class... Params, class... Args>
Counters count(void (*kernel)(Params...), unsigned blocks, size_t shared_bytes, Args... args) {
  cpu_device::Options options;
  options.schedule = schedule;
  options.count = true;
  cpu_device::set_options(options);
  ladder::launch(kernel, {"test kernel", dim3(blocks), dim3(kEdge, kEdge), shared_bytes}, args...);
  return cpu_device::last_launch();
}

/// Memory that starts at a multiple of a sector.
struct Matrix {
  explicit Matrix(size_t elements) : memory(elements + 8) {
    while (reinterpret_cast<uintptr_t>(memory.data() + offset) % 32) ++offset;
  }
  float* data() { return memory.data() + offset; }
  PinnedVector<float> memory;
  size_t offset = 0;
};

template <int kRowStride>
struct Tile {
  float values[kEdge][kRowStride];
};

/// Transposes blocks of 32x32 through shared memory.
template <int kRowStride>
__global__ void transpose(const float* in, float* out) {
  auto& tile = ladder::shared_storage<Tile<kRowStride>>();
  in += blockIdx.x * kEdge * kEdge;
  out += blockIdx.x * kEdge * kEdge;
  tile.values[threadIdx.y][threadIdx.x] = in[threadIdx.y * kEdge + threadIdx.x];
  __syncthreads();
  out[threadIdx.y * kEdge + threadIdx.x] = tile.values[threadIdx.x][threadIdx.y];
}

/// The same without shared memory: the stores of a warp are a column.
__global__ void transpose_directly(const float* in, float* out) {
  in += blockIdx.x * kEdge * kEdge;
  out += blockIdx.x * kEdge * kEdge;
  out[threadIdx.x * kEdge + threadIdx.y] = in[threadIdx.y * kEdge + threadIdx.x];
}

__global__ void add_first(const float* in, float* out) { out[threadIdx.y * kEdge + threadIdx.x] = in[0]; }

struct Rows {
  alignas(1024) uint16_t values[kEdge][64];  // rows of 128 bytes
};

template <bool kSwizzled>
__global__ void load_matrices(uint32_t* out) {
  auto& rows = ladder::shared_storage<Rows>();
  rows.values[threadIdx.y][2 * threadIdx.x] = rows.values[threadIdx.y][2 * threadIdx.x + 1] = 0;
  __syncthreads();
  const unsigned row = threadIdx.x;
  const unsigned chunk = kSwizzled ? threadIdx.y % 8 ^ row % 8 : threadIdx.y % 8;
  uint32_t registers[4];
  ptx::ldmatrix_x4(registers, &rows.values[row][8 * chunk]);
  out[threadIdx.y * kEdge + threadIdx.x] = registers[0];
}

struct Chunks {
  float4 values[kEdge][kEdge];
};

/// Each warp copies a row of chunks of 16 bytes.
__global__ void copy_chunks(const float4* in) {
  auto& chunks = ladder::shared_storage<Chunks>();
  __pipeline_memcpy_async(&chunks.values[threadIdx.y][threadIdx.x], &in[threadIdx.y * kEdge + threadIdx.x],
                          sizeof(float4));
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

/// The same with loads and stores, and back by columns: each warp reads a column.
__global__ void transpose_chunks(const float4* in, float4* out) {
  auto& chunks = ladder::shared_storage<Chunks>();
  chunks.values[threadIdx.y][threadIdx.x] = in[threadIdx.y * kEdge + threadIdx.x];
  __syncthreads();
  out[threadIdx.y * kEdge + threadIdx.x] = chunks.values[threadIdx.x][threadIdx.y];
}

}  // namespace

TEST_CASE("this program is instrumented") { REQUIRE(cpu_device::instrumented()); }

TEST_CASE("a kernel's coalesced and strided accesses are told apart") {
  Matrix in(kEdge * kEdge), out(kEdge * kEdge);
  const Counters counters = count(transpose_directly, 1, 0, in.data(), out.data());
  CHECK(counters.global_bytes_read == kEdge * kEdge * 4);
  CHECK(counters.global_read_sectors == kEdge * 4);
  CHECK(counters.global_bytes_written == kEdge * kEdge * 4);
  CHECK(counters.global_write_sectors == kEdge * 32);
}

TEST_CASE("a broadcast reads one sector for each warp") {
  Matrix in(1), out(kEdge * kEdge);
  CHECK(count(add_first, 1, 0, in.data(), out.data()).global_read_sectors == kEdge);
}

TEST_CASE("transposing through a 32-wide tile has bank conflicts, through a 33-wide one none") {
  Matrix in(kEdge * kEdge), out(kEdge * kEdge);
  const Counters conflicts = count(transpose<32>, 1, sizeof(Tile<32>), in.data(), out.data());
  CHECK(conflicts.shared_bytes_read == kEdge * kEdge * 4);
  CHECK(conflicts.shared_bytes_written == kEdge * kEdge * 4);
  CHECK(conflicts.bank_conflicts == kEdge * 31);
  CHECK(conflicts.shared_wavefronts == kEdge * (1 + 32));
  const Counters padded = count(transpose<33>, 1, sizeof(Tile<33>), in.data(), out.data());
  CHECK(padded.bank_conflicts == 0);
  CHECK(padded.shared_wavefronts == kEdge * 2);
  CHECK(padded.global_write_sectors == kEdge * 4);
}

TEST_CASE("a large grid is sampled and scaled") {
  const unsigned blocks = 200;
  Matrix in(blocks * kEdge * kEdge), out(blocks * kEdge * kEdge);
  const Counters counters = count(transpose<32>, blocks, sizeof(Tile<32>), in.data(), out.data());
  CHECK(counters.blocks == blocks);
  CHECK(counters.global_bytes_read == blocks * kEdge * kEdge * 4);
  CHECK(counters.bank_conflicts == blocks * kEdge * 31);
}

TEST_CASE("ldmatrix is free of conflicts on swizzled rows and 8-way without the swizzle") {
  PinnedVector<uint32_t> out(kEdge * kEdge);
  const uint64_t matrices = kEdge * 4;
  const Counters swizzled = count(load_matrices<true>, 1, sizeof(Rows), out.data());
  CHECK(swizzled.shared_bytes_read == matrices * 128);
  const Counters unswizzled = count(load_matrices<false>, 1, sizeof(Rows), out.data());
  CHECK(unswizzled.bank_conflicts - swizzled.bank_conflicts == matrices * 7);
}

TEST_CASE("the conflicts of cp.async do not depend on the order in which lanes run") {
  PinnedVector<float4> in(kEdge * kEdge);  // aligned to 256 bytes
  std::vector<cpu_device::Schedule> schedules = cpu_device::fixed_schedules();
  for (uint64_t seed = 1; seed <= 20; ++seed) schedules.push_back(cpu_device::Schedule::random(seed));
  for (const cpu_device::Schedule& one : schedules) {
    CAPTURE(one.name());
    schedule = one;
    const Counters counters = count(copy_chunks, 1, sizeof(Chunks), &in[0]);
    // Eight lanes at a time fill the 32 banks, if they are neighbours.
    CHECK(counters.shared_wavefronts == kEdge * 4);
    CHECK(counters.bank_conflicts == 0);
    CHECK(counters.global_read_sectors == kEdge * 16);
  }
  schedule = {};
}

// Compilers copy a struct by one wide access, or by memcpy().
TEST_CASE("a struct that is assigned is an access") {
  Matrix in(kEdge * kEdge * 4), out(kEdge * kEdge * 4);
  const Counters counters = count(transpose_chunks, 1, sizeof(Chunks), reinterpret_cast<float4*>(in.data()),
                                  reinterpret_cast<float4*>(out.data()));
  CHECK(counters.global_bytes_read == kEdge * kEdge * 16);
  CHECK(counters.global_write_sectors == kEdge * 16);
  CHECK(counters.shared_bytes_written == kEdge * kEdge * 16);
  CHECK(counters.bank_conflicts == kEdge * (32 - 4));
}

__global__ void fold_words(const uint4* in, float* out) {
  const int i = threadIdx.y * kEdge + threadIdx.x;
  const uint4 four = __ldg(&in[i]);
  out[i] = __uint_as_float(four.x ^ four.y ^ four.z ^ four.w);
}

// Compilers load the parts of a struct one by one where only the parts are used.
TEST_CASE("__ldg of 16 bytes is one access") {
  Matrix in(kEdge * kEdge * 4), out(kEdge * kEdge);
  const Counters counters = count(fold_words, 1, 0, reinterpret_cast<const uint4*>(in.data()), out.data());
  CHECK(counters.global_read_sectors == kEdge * 16);
}

/// Each warp brings a row of chunks to shared memory through registers; those past `chunks` are zero.
__global__ void stage_chunks(const uint4* in, int chunks) {
  auto& tile = ladder::shared_storage<Chunks>();
  const int i = threadIdx.y * kEdge + threadIdx.x;
  const uint4 staged = i < chunks ? in[i] : make_uint4(0, 0, 0, 0);
  reinterpret_cast<uint4&>(tile.values[threadIdx.y][threadIdx.x]) = staged;
}

// Compilers move the parts of a struct one by one where some of them may come from elsewhere.
TEST_CASE("16 bytes that pass through registers are one load and one store") {
  Matrix in(kEdge * kEdge * 4);
  const Counters counters =
      count(stage_chunks, 1, sizeof(Chunks), reinterpret_cast<const uint4*>(in.data()), kEdge * (kEdge - 1));
  CHECK(counters.global_read_sectors == (kEdge - 1) * 16);
  CHECK(counters.shared_wavefronts == kEdge * 4);
  CHECK(counters.bank_conflicts == 0);
}

TEST_CASE("without the option plain accesses are not counted") {
  Matrix in(kEdge * kEdge), out(kEdge * kEdge);
  cpu_device::set_options({});
  ladder::launch(transpose_directly, {"test kernel", dim3(1), dim3(kEdge, kEdge)}, in.data(), out.data());
  CHECK(cpu_device::last_launch().global_bytes_read == 0);
}

}  // namespace counters_test
