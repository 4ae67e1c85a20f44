#!/usr/bin/env python3
"""Tests of `ladder check` on the CPU device: `test_check.py LADDER`, with the program."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
PAGE = FOLDER.parents[1] / "docs/your_own_kernel.md"
BEGIN = '#include "common/cuda/device_buffer.hpp"\n#include "common/cuda/launch.cuh"\n'
# What test_mistakes.cu is told to do, and what is said then.
MISTAKES = {
    "sync": "race in shared memory of block 0",
    "wait": "wrong parity",
    "arrive": "deadlock: warp 2 lane 0 waits at test_mistakes.cu:",
    "bytes": "4096 bytes more than expected",
    "beyond": "a store of 2 bytes reaches 2 bytes beyond the end of the buffer of 24576 bytes",
    "result": "not right on schedule round-robin/late: its exit code is 1",
    "exits": "not right on schedule round-robin/late: its exit code is 3",
    "nothing": "it launches no kernel, so nothing was checked\n",
    "assertion": "in block (0,0,0), thread (0,0,0):\n",
    "launches": "cudaLaunchKernelEx is called inside a kernel: on the CPU device only the host launches",
    "called": "a device operation was called outside of a kernel, at test_mistakes.cu:",
}
# Files that no CPU device compiles, and the one line that is said of each.
UNSUPPORTED = {
    "__global__ void texture(float*, cudaTextureObject_t t) {}\n": "my_kernel.cu:1: the CPU device has no cudaTextureObject_t",
    "#include <mma.h>\nusing A = nvcuda::wmma::experimental::precision::u4;\n":
        "my_kernel.cu:2: the CPU device has no nvcuda::wmma::experimental",
    "#include <mma.h>\n__global__ void k() {\n  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 8, 8, 32, int> a;\n}\n":
        "my_kernel.cu:3: the CPU device has fragments of 16x16x16, ",
    '#include "mine.h"\nint main() {\n  cudaDeviceProp p;\n  cuMemCreate(0); cuMemMap(0);\n  cudaIpcMemHandle_t m;\n'
    "  return p.frobnication;\n}\n": "mine.h:1: the CPU device has no cudaArrayCubemap, cuMemCreate, cuMemMap, "
                                    "cudaIpcMemHandle_t and 1 more",
    "int main() { return cudaMalocc(0, 1); }\n": "my_kernel.cu:1: the CPU device has no cudaMalocc: did you mean cudaMalloc?",
    "__block_size__((32, 1, 1)) __global__ void k() {}\nint main() { k<<<1, 32>>>(); }\n":
        "my_kernel.cu:1: the CPU device has no __block_size__: use __launch_bounds__",
    "__global__ void k(int* a) { __stwt(a, nullptr, 1); }\n": "my_kernel.cu:1: the CPU device has no __stwt(int*&, ",
}
# Mistakes in a file as CUDA's users write it: what main() is told to do, and what is said then.
FORMS = {
    "beyond": "a load of 4 bytes reaches 4 bytes beyond the end of tile, which has 256 bytes of shared memory",
    "dynamic": "a store of 4 bytes reaches 4 bytes beyond the end of the 128 bytes of dynamic shared memory",
    "race": "race in shared memory of block 0 at tile[1][0]: ",
    "much": "the __shared__ variables of the kernel have more than 49152 bytes, of which b has 32000: ",
    "columns": "kernels wrote 1536 of the 2048 bytes allocated at kernel.cu:86: of every 64 bytes, 48 to 63 lack, 32 times",
    "refused": "a block has at most 1024 threads",
    "captured": "the 4 bytes of the host that the graph copies, captured at ",
    "asserts": "kernels wrote 128 of the 2048 bytes allocated at kernel.cu:",
    "helper": "deadlock: warp 0 waits at kernel.cu:40 for full[1], phase 0: 1 of 1 arrivals missing",
}
MISTAKEN_FORMS = """#include <cassert>
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
__global__ void beyond(float* x, int n) {
  __shared__ float tile[8][8], other[4];
  tile[0][threadIdx.x] = 1;
  if (threadIdx.x < 4) other[threadIdx.x] = 1;
  __syncthreads();
  x[threadIdx.x] = tile[n][0] + other[0];
}
__global__ void dynamic(float* x, int n) {
  extern __shared__ float s[];
  s[threadIdx.x + n] = x[threadIdx.x];
}
__global__ void race(float* x) {
  __shared__ float tile[8][8];
  tile[threadIdx.x / 8][threadIdx.x % 8] = 1;
  x[threadIdx.x] = tile[threadIdx.x % 8][threadIdx.x / 8];
}
__global__ void much(float* x) {
  __shared__ float a[8000];
  __shared__ float b[8000];
  a[threadIdx.x] = b[threadIdx.x] = 1;
}
__global__ void columns(float* x) {
  if (threadIdx.x < 12) x[blockIdx.x * 16 + threadIdx.x] = 1;
}
__global__ void slow(float* x, int steps) {
  float sum = 0;
  for (int i = 0; i < steps; ++i) sum += x[i % 512];
  if (sum > 0) x[0] = sum;
}
__device__ unsigned address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init_barrier(unsigned long long* bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(bar)),
               "r"(count));
}
__device__ void wait_for(unsigned long long* bar) {
  asm volatile(
      "{\\n.reg .pred done;\\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\\n"
      "@!done bra again;}" ::"r"(address(bar))
      : "memory");
}
__global__ void helper(float* x) {
  extern __shared__ float s[];
  unsigned long long* const full = (unsigned long long*)s;
  unsigned long long* const empty = full + 2;
  for (int i = 0; i < 2 && threadIdx.x == 0; ++i) {
    init_barrier(&full[i], 1);
    init_barrier(&empty[i], 32);
  }
  __syncthreads();
  wait_for(&full[1]);
  x[threadIdx.x] = 1;
}
int captured(float* x) {
  static float value = 1;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaMemcpyAsync(x, &value, 4, cudaMemcpyHostToDevice, stream);
  beyond<<<1, 8, 0, stream>>>(x, 7);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  value = 2;
  std::puts("many words of main()\\nmany words\\nmany words");
  return cudaGraphLaunch(exec, stream) + cudaStreamSynchronize(stream) + 3;
}
__global__ void slow_block(float* x) {
  __shared__ float tile[512];
  for (int i = 0; i < 1 << 20; ++i) {
    tile[threadIdx.x] = i;
    __syncthreads();
    x[threadIdx.x] = tile[511 - threadIdx.x];
    __syncthreads();
  }
}
#define IF(word) if (!std::strcmp(what, #word))
int main(int, char** argv) {
  const char* const what = argv[1];
  float* x;
  cudaMalloc(&x, 2048);
  IF(beyond) beyond<<<1, 8>>>(x, 8);
  IF(dynamic) dynamic<<<1, 32, 128>>>(x, 1);
  IF(race) race<<<1, 64>>>(x);
  IF(much) much<<<1, 64>>>(x);
  IF(columns) columns<<<32, 32>>>(x);
  IF(refused) race<<<1, 2000>>>(x);
  IF(captured) return captured(x);
  IF(asserts) {
    beyond<<<1, 32>>>(x, 7);
    assert(cudaDeviceSynchronize() != cudaSuccess);
  }
  IF(helper) helper<<<1, 32, 128>>>(x);
  cudaMemset(x, 0, 2048);
  IF(slow) slow<<<1 << 20, 1>>>(x, 1000);
  IF(slow_block) slow_block<<<2, 512>>>(x);
  return cudaDeviceSynchronize() || true;
}
"""

# What stands in the first two lines of a report: of mistakes that only main() notices, too.
CAUSES = {
    "host_reads": r"the host reads the pinned memory of 256 bytes .*which the download on stream 1 writes, and has not waited for that: "
                  r"a cudaStreamSynchronize.*read at .*causes.cu:\d+",
    "managed": r"the host reads the managed memory of 256 bytes .*which kernel fill on .* writes.*a cudaDeviceSynchronize must come first",
    "never_cleared": r"kernel count read what nobody had written \(an atomic operation at .*: byte 0 of the 256 bytes allocated at causes.cu",
    "adds_to_nothing": r"kernel add read what nobody had written \(a load at .*causes.cu:\d+ in add\): byte 0 of the 256 bytes",
    "part_of_tile": r"a load at .*causes.cu:\d+ in part_of_tile read shared memory before anything was written to it \(.*, tile\[\d+\]\)",
    "rounded_down": r"kernels wrote 128 of the 256 bytes .*bytes 128 to 255 lack; the launch of fill at causes.cu:\d+ has 1 block and 32 threads",
    "one_warp": r"these are lanes of warp 0, which do not run in step: a __syncwarp, at least, must come between, "
                r"or a __syncthreads if other warps go on writing what the line reads",
    "spins": r"deadlock: warp 0 lane 0 loops for ever at causes.cu:\d+: atomicAdd brings 1 each time, and no thread .*is it another of the 2 "
             r"blocks that should\? .*cudaLaunchCooperativeKernel.*in __syncthreads",
    "spins_together": r"deadlock: .* loops? for ever at causes.cu:\d+: atomicAdd brings 2 each time, and no thread that can run changes that block",
    "twice": r"store the same elements by the same line, .*: their parts overlap, or an index goes beyond the end of a row",
    "init_alone": r"writes \(mbarrier.init\), causes.cu:\d+ uses \(.*: a __syncthreads must come between the initialisation and the use",
    "meets_first": r"no wait had covered that by then: the wait at causes.cu:\d+ comes after it",
    "arrives_only": r"at tile\[\d+\]: .*read before the copy land.* causes.cu:\d+ reads \(load\), causes.cu:\d+ writes \(cp.async\)",
    "plain_layout": r"wgmma at causes.cu:\d+ reads the same bytes for several elements: a descriptor says no swizzle",
    "freed": r"the cudaFreeAsync on stream 2 frees .* a cudaStreamWaitEvent is missing",
    "other_stream": r"kernel fill is on the legacy stream, which neither waits for stream 1 nor lets it wait",
}
CAUSES_TEXT = """#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda_pipeline.h>
#include <cstring>
#include <cuda_runtime.h>
__global__ void fill(int* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
__global__ void count(int* x) { atomicAdd(x, 1); }
__global__ void add(int* x) { x[threadIdx.x] += 1; }
__global__ void part_of_tile(int* x) {
  __shared__ int tile[64];
  if (threadIdx.x < 50) tile[threadIdx.x] = 1;
  __syncthreads();
  x[threadIdx.x] = tile[threadIdx.x];
}
__global__ void one_warp(int* x) {
  __shared__ int tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) tile[threadIdx.x] += tile[threadIdx.x + 16];
}
__global__ void spins(unsigned* arrived, unsigned goal) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < goal) {}
  }
  __syncthreads();
}
__device__ unsigned address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void init_alone() {
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(address(&bar)) : "memory");
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&bar)) : "memory");
}
__global__ void plain_layout(float* c) {
  __shared__ __align__(1024) uint4 a[512], b[64];  // of 64 x 64 and 8 x 64 elements, as with the 128-byte swizzle
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = make_uint4(0, 0, 0, 0);
  if (threadIdx.x < 64) b[threadIdx.x] = make_uint4(0, 0, 0, 0);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const unsigned long long plain = address(a) >> 4 | 1ull << 16 | 64ull << 32;
  const unsigned long long swizzled = address(b) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
  float d[4];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{\\n.reg .pred p;\\nsetp.ne.b32 p, %6, 0;\\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;\\n}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(plain), "l"(swizzled), "r"(0));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
  if (threadIdx.x < 64) c[threadIdx.x] = d[0];
}
__global__ void meets_first(int* x) {
  __shared__ int tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], 4);
  __pipeline_commit();
  __syncthreads();
  __pipeline_wait_prior(0);
  x[threadIdx.x] = tile[threadIdx.x / 2];
}
__global__ void arrives_only(int* x) {
  __shared__ int tile[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) init(&bar, 64);
  __syncthreads();
  cuda::memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], cuda::aligned_size_t<4>(4), bar);
  (void)bar.arrive();
  x[threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void twice(int* x) { x[threadIdx.x + blockIdx.x * 16] = blockIdx.x; }
#define IF(word) if (!std::strcmp(what, #word))
int main(int, char** argv) {
  const char* const what = argv[1];
  int *x, *pinned, *managed, sum = 0;
  cudaStream_t stream, other;
  cudaMalloc(&x, 256);
  cudaMallocHost(&pinned, 256);
  cudaMallocManaged(&managed, 256);
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  IF(host_reads) {
    fill<<<2, 32, 0, stream>>>(x);
    cudaMemcpyAsync(pinned, x, 256, cudaMemcpyDeviceToHost, stream);
    for (int i = 0; i < 64; ++i) sum += pinned[i];
    return sum != 64;
  }
  IF(waits) {
    fill<<<2, 32, 0, stream>>>(x);
    cudaMemcpyAsync(pinned, x, 256, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    fill<<<2, 32>>>(managed);
    cudaDeviceSynchronize();
    for (int i = 0; i < 64; ++i) sum += pinned[i] + managed[i];
    return sum != 128;
  }
  IF(polls) {
    *managed = 0;
    fill<<<1, 32>>>(managed);
    while (*(volatile int*)managed != 1) {}
    return *managed != 1;
  }
  IF(managed) {
    fill<<<2, 32>>>(managed);
    return managed[3] == 12345;
  }
  IF(never_cleared) count<<<2, 32>>>(x);
  IF(adds_to_nothing) add<<<1, 64>>>(x);
  IF(part_of_tile) part_of_tile<<<1, 64>>>(x);
  IF(rounded_down) fill<<<63 / 32, 32>>>(x);
  IF(one_warp) {
    cudaMemset(x, 0, 256);
    one_warp<<<1, 64>>>(x);
  }
  IF(spins) {
    cudaMemset(x, 0, 4);
    spins<<<2, 32>>>((unsigned*)x, 2);
  }
  IF(spins_together) {
    cudaMemset(x, 0, 4);
    unsigned goal = 3;
    void* arguments[] = {&x, &goal};
    cudaLaunchCooperativeKernel((void*)spins, dim3(2), dim3(32), arguments, 0, 0);
  }
  IF(meets_first) meets_first<<<1, 64>>>(x);
  IF(arrives_only) arrives_only<<<1, 64>>>(x);
  IF(init_alone) init_alone<<<1, 64>>>();
  IF(plain_layout) plain_layout<<<1, 128>>>((float*)x);
  IF(twice) twice<<<2, 32>>>(x);
  IF(freed) {
    int* scratch;
    cudaMallocAsync(&scratch, 256, stream);
    fill<<<2, 32, 0, stream>>>(scratch);
    cudaFreeAsync(scratch, other);
    cudaDeviceSynchronize();
  }
  IF(other_stream) {
    cudaMemsetAsync(x, 0, 256, stream);
    fill<<<2, 32>>>(x);
    cudaStreamSynchronize(stream);
  }
  cudaMemcpy(&sum, x, 4, cudaMemcpyDeviceToHost);
  return 1;
}
"""

# Files that main() calls right on a GPU, mostly: what the report of each mistake says. The rest is right.
UNSEEN = {
    "lets_nan_pass": r"kernels wrote 128 of the 256 bytes .* A result depends on memory that nothing has written: where that holds NaN main\(\)",
    "host_writes": r"the host writes the managed memory of 256 bytes .*which kernel fill on .* reads, .*a cudaDeviceSynchronize must come first",
    "host_refills": r"the host writes the pinned memory of 256 bytes .*which the upload on stream 1 reads.* written at .*unseen.cu:\d+",
    "mapped": r"the host reads the pinned memory of 256 bytes .*which kernel fill on .* writes",
    "grid_is_not_met": r"thread \d+ of block \(\d,0,0\) (reads|overwrites) what thread \d+ of block \(\d,0,0\) .*grid.sync\(\) or cluster.sync\(\), is missing",
    "block_is_not_met": r"thread \d+ of block \(0,0,0\) (reads|overwrites) what thread \d+ .*: a __syncthreads\(\) is missing",
    "shifts": r"thread \d+ of block \(0,0,0\) overwrites what thread \d+ may still read, and no barrier",
    "who_wins": r"thread \d+ and thread \d+ of block \(0,0,0\) store the same element by the same line, .* (should each store|leave the (warp|lane) out)",
    "copies_early": r"the host reads the managed memory of 256 bytes .*which kernel fill on .* writes.* read at .*unseen.cu:\d+",
    "compares_early": r"the host reads the managed memory of 256 bytes .*which kernel fill on .* writes.* read at .*unseen.cu:\d+",
    "clears_early": r"the host writes the managed memory of 256 bytes .*which kernel fill on .* reads.* written at .*unseen.cu:\d+",
    "struct_early": r"the host reads the managed memory of 256 bytes .*which kernel fill on .* writes.* read at .*unseen.cu:\d+",
    "vector_early": r"the host reads the managed memory of 256 bytes .*which kernel fill on .* writes.* read at .*unseen.cu:\d+",
    "block_overwrites": r"block \(2,0,0\) overwrites what block \(1,0,0\) has read, .*first load by block \(1,0,0\) .*unseen.cu:\d+",
    "kernel_copies": r"race in shared memory of block 0 at row\[\d+\]: .*unseen.cu:\d+ reads",
    "local_array": r"kernel 'local_array': sums\[4\] is beyond the end of the array, whose type is 'int \[4\]' at .*unseen.cu:\d+ in block",
    "frees_early": r"cudaFreeHost of the pinned memory of 256 bytes .*: the host has not waited for that.* cudaFreeHost at .*unseen.cu:\d+",
    "loop_of_streams": r"kernel set on stream 3 \(`streams\[1\]`, created at .*unseen.cu:\d+\)",
    "range_of_streams": r"kernel set on stream 3 \(`streams\[1\]`, created at .*unseen.cu:\d+\)",
}
RIGHT_ALL_THE_SAME = ("grid_is_met", "block_is_met", "all_agree", "bytes_apart", "last_block", "padding", "told", "halves", "allocates",
                      "copies_late", "last_block_resets", "flat_arrays")
UNSEEN_TEXT = """#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cooperative_groups.h>
__global__ void fill(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
__global__ void set(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
__global__ void reverse(int* a, int* b, bool meets) {
  const auto grid = cooperative_groups::this_grid();
  const int i = grid.thread_rank();
  a[i] = i;
  if (meets) grid.sync();
  b[i] = a[grid.size() - 1 - i];
}
__global__ void hand_over(int* a, int* b, bool meets) {
  a[threadIdx.x] = threadIdx.x;
  if (meets) __syncthreads();
  b[threadIdx.x] = a[threadIdx.x ^ 32];
}
__global__ void shift(int* a) { a[threadIdx.x] = a[threadIdx.x + 1]; }
__global__ void store_one(int* a, bool agree) { *a = agree ? 7 : threadIdx.x; }
__global__ void bytes_apart(char* a) { a[threadIdx.x] = a[threadIdx.x + 64] + 1; }
__device__ unsigned arrived;
__global__ void sum_up(int* part, int* out) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = blockIdx.x;
    __threadfence();
    is_last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    int sum = 0;
    for (int i = 0; i < gridDim.x; ++i) sum += ((volatile int*)part)[i];
    *out = sum;
  }
}
__global__ void allocate(int* out) {
  int* const own = (int*)malloc(4);
  *own = threadIdx.x;
  out[threadIdx.x] = *own;
  free(own);
}
__global__ void overwrite(int* a, int* b) {
  if (blockIdx.x == 1) b[threadIdx.x] = a[threadIdx.x];
  if (blockIdx.x == 2) a[threadIdx.x] = 5;
}
__global__ void reset(int* seed, int* out, unsigned* count) {
  out[blockIdx.x] = *seed;
  if (atomicAdd(count, 1) == gridDim.x - 1) *seed = 7;
}
__global__ void copy_row(float* x) {
  __shared__ float row[64];
  if (threadIdx.x == 0) memcpy(row, x, sizeof row);
  x[threadIdx.x] = row[threadIdx.x] + 1;
}
__global__ void local_array(int* x, int n) {
  int sums[4] = {};
  for (int i = 0; i <= n; ++i) sums[i] += x[i];
  x[threadIdx.x] = sums[threadIdx.x % 4];
}
__device__ void set_row(int (&row)[4], int i) { row[i] = i; }
__global__ void flat_arrays(int* x) {
  __shared__ int tile[4][4];
  int own[2][2], *const past = &own[1][2];
  for (int i = 0; i < 4; ++i) own[0][i] = x[i];
  for (int i = 0; i < 8; ++i) set_row(tile[0], i);
  for (int i = 8; i < 16; ++i) tile[0][i] = i;
  x[0] = tile[3][3] + (past - &own[0][0]) + own[1][1];
}
struct Row {
  float values[64];
};
static void CUDART_CB tell(void* told) { *(std::atomic<bool>*)told = true; }
#define IF(word) if (!std::strcmp(what, #word))
int main(int, char** argv) {
  const char* const what = argv[1];
  float *x, *pinned, *managed, host[64] = {};
  int *a, *b, numbers[4096] = {};
  cudaMalloc(&x, 256);
  cudaMalloc(&a, 16384);
  cudaMalloc(&b, 16384);
  cudaMemset(a, 0, 16384);
  cudaMallocHost(&pinned, 256);
  cudaMallocManaged(&managed, 256);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  IF(lets_nan_pass) {
    set<<<63 / 32, 32>>>(x);
    cudaMemcpy(host, x, 256, cudaMemcpyDeviceToHost);
    for (float one : host) if (fabs(one - 1) > 1e-5) return 1;
  }
  IF(padding) {
    set<<<1, 60>>>(x);
    cudaMemcpy(host, x, 256, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 60; ++i) if (!(fabs(host[i] - 1) <= 1e-5)) return 1;
  }
  IF(host_writes) {
    fill<<<2, 32>>>(managed);
    managed[5] = 3;
  }
  IF(host_refills) {
    cudaMemcpyAsync(x, pinned, 256, cudaMemcpyHostToDevice, stream);
    pinned[5] = 3;
    set<<<1, 1>>>(managed);
  }
  IF(mapped) {
    fill<<<2, 32>>>(pinned);
    if (pinned[3] == 12345) return 1;
  }
  IF(told) {
    static std::atomic<bool> is_told = false;
    fill<<<2, 32, 0, stream>>>(pinned);
    cudaLaunchHostFunc(stream, tell, &is_told);
    while (!is_told) {}
    if (pinned[3] != 1) return 1;
  }
  IF(halves) {
    fill<<<1, 32, 0, stream>>>(managed);
    managed[32] = 5;
    cudaStreamSynchronize(stream);
    if (managed[0] != 1 || managed[32] != 5) return 1;
  }
  const bool is_late = !std::strcmp(what, "copies_late");
  float sum = 0, zeros[64] = {};
  if (is_late || std::strstr(what, "s_early") || std::strstr(what, "r_early")) {
    fill<<<2, 32>>>(managed);
    if (is_late) cudaDeviceSynchronize();
    if (is_late || !std::strcmp(what, "copies_early")) std::memcpy(host, managed, 256);
    if (is_late || !std::strcmp(what, "compares_early")) sum += memcmp(managed, zeros, 256);
    if (is_late || !std::strcmp(what, "vector_early")) sum += std::vector<float>(managed, managed + 64)[63];
    if (is_late || !std::strcmp(what, "clears_early")) memset(managed, 0, 256);
  }
  IF(struct_early) {
    fill<<<2, 32>>>(managed);
    const Row row = *(const Row*)managed;
    for (float one : row.values) sum += one;
  }
  if (sum == 12345) return 1;
  IF(local_array) local_array<<<1, 4>>>(a, 4);
  IF(flat_arrays) flat_arrays<<<1, 1>>>(a);
  IF(block_overwrites) overwrite<<<3, 64>>>(a, b);
  IF(last_block_resets) {
    reset<<<8, 1>>>(a + 1, b, (unsigned*)a);
    cudaMemcpy(numbers, a, 8, cudaMemcpyDeviceToHost);
    if (numbers[0] != 8 || numbers[1] != 7) return 1;
  }
  IF(kernel_copies) {
    cudaMemset(x, 0, 256);
    copy_row<<<1, 64>>>(x);
  }
  IF(frees_early) {
    cudaMemcpyAsync(x, pinned, 256, cudaMemcpyHostToDevice, stream);
    set<<<2, 32, 0, stream>>>(x);
    cudaFreeHost(pinned);
  }
  if (std::strstr(what, "of_streams")) {
    cudaStream_t streams[2];
    if (what[0] == 'l') {
      for (int i = 0; i < 2; ++i) {
        cudaStreamCreate(&streams[i]);
      }
    } else {
      for (auto& one : streams) cudaStreamCreate(&one);
    }
    set<<<2, 32, 0, streams[0]>>>(x);
    set<<<2, 32, 0, streams[1]>>>(x);
  }
  bool meets = !std::strcmp(what, "grid_is_met") || !std::strcmp(what, "block_is_met");
  void* arguments[] = {&a, &b, &meets};
  if (std::strstr(what, "grid_is_")) {
    cudaLaunchCooperativeKernel((void*)reverse, dim3(meets ? 40 : 4), dim3(32), arguments, 0, 0);
    cudaMemcpy(numbers, b, 16384, cudaMemcpyDeviceToHost);
    if (meets && numbers[0] != 1279) return 1;
  }
  if (std::strstr(what, "block_is_")) hand_over<<<1, 64>>>(a, b, meets);
  IF(shifts) shift<<<1, 64>>>(a);
  IF(who_wins) store_one<<<1, 64>>>(a, false);
  IF(all_agree) store_one<<<1, 64>>>(a, true);
  IF(bytes_apart) bytes_apart<<<1, 63>>>((char*)a);
  IF(allocates) allocate<<<1, 64>>>(a);
  IF(last_block) {
    sum_up<<<8, 32>>>(a, b);
    cudaMemcpy(numbers, b, 4, cudaMemcpyDeviceToHost);
    if (numbers[0] != 28) return 1;
  }
  return cudaDeviceSynchronize();
}
"""

ATOMICS = {  # of test_atomics.cu: the words that name it
    "cleared_late": r"block 0 at n: a plain access and an atomic .* writes \(store\), .* writes \(atomicAdd\)",
    "read_early": r"block 0 at n: a plain access and an atomic .* reads \(load\), .* writes \(atomicAdd\)",
    "global_cleared_late": r"a plain store of block \(0,0,0\) and atomicAdd of block \(.,0,0\) touch the same bytes",
    "global_read_early": r"a plain load of block \(.,0,0\) and atomicAdd of block \(.,0,0\) touch the same bytes",
    "counts_plainly": r"race in global memory: .* tells it that block \(.,0,0\) has stored: where the line adds to it, use atomicAdd",
    "lock_without_fences": r"a plain store of block \(.,0,0\) and atomicCAS of block \(.,0,0\) touch the same bytes",
}


class Check(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="a reader's ")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)

    def check(self, *words, text=None):
        """The exit code and both outputs of a check of `words`, or of a file with this text."""
        if text is not None:
            (self.folder / "my_kernel.cu").write_text(text, encoding="utf-8")
            words = [self.folder / "my_kernel.cu", *words]
        ran = subprocess.run([LADDER, "check", *words], capture_output=True, text=True, timeout=120, check=False)
        return ran.returncode, ran.stdout, ran.stderr

    def test_the_example_is_right_and_names_its_race_where_a_barrier_is_left_out(self):
        _, example, _ = self.check("--example")
        self.assertLessEqual(example.count("\n"), 50)
        timeline = self.folder / "timeline.json"
        code, said, _ = self.check("--schedule", "all", "--timeline", timeline, text=example)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"(?s)\nright: 1 launch on round-robin/late, .*highest-first/eager;\s+checked: ")
        self.assertEqual(json.loads(timeline.read_text(encoding="utf-8"))["metadata"]["unit"], "cycles")
        right = self.check(self.folder / "my_kernel.cu")
        race = self.check(text=example.replace("  __syncthreads();  //", "//"))
        self.assertEqual((right[0], race[0]), (0, 1))
        # The page shows both.
        reports = re.findall("(?ms)^```\n((?:my_kernel.cu: error|last launch).*?)^```", PAGE.read_text(encoding="utf-8"))
        self.assertEqual(len(reports), 2)
        for report, (_, said, _) in zip(reports, (race, right)):
            for line in report.splitlines():
                if line != "  ...":
                    self.assertIn(line + "\n", said)

    def test_mistakes_are_named_in_bounded_time(self):
        file = FOLDER / "test_mistakes.cu"
        code, said, _ = self.check(file, "--", "none")
        self.assertEqual(code, 0, said)
        for mistake, words in MISTAKES.items():
            with self.subTest(mistake=mistake):
                code, said, _ = self.check(file, "--limit", "1", "--", mistake)
                self.assertEqual(code, 2 if mistake in ("launches", "nothing") else 1, said)
                self.assertIn(words, said)
                if code == 1:
                    self.assertRegex(said, "\nnot right on schedule|^not right on schedule")

    def test_of_a_loop_that_does_not_end_thread_and_line_are_named(self):
        code, said, _ = self.check(FOLDER / "test_mistakes.cu", "--limit", "6", "--", "endless")
        self.assertEqual(code, 1, said)
        source = (FOLDER / "test_mistakes.cu").read_text(encoding="utf-8").split("\n")
        line = next(number for number, text in enumerate(source, 1) if "again;)" in text)
        self.assertRegex(said, r"kernel 'transpose': the thread runs for [\d.]+ s without a wait or an exit, at "
                               rf"own_kernel/test_mistakes.cu:{line} in ")
        self.assertIn("\n  in block (0,0,0) warp 0 lane 0\n", said)
        self.assertIn("\nnot right on schedule round-robin/late: it had not ended after 6 s; --limit gives more time", said)
        _, said, _ = self.check(FOLDER / "test_mistakes.cu", "--limit", "2", "--", "endless")
        self.assertIn(f" s without a wait or an exit, at own_kernel/test_mistakes.cu:{line} in ", said)

    def test_what_cuda_has_and_the_cpu_device_has_not_is_one_line(self):
        (self.folder / "mine.h").write_text("const int kMine = cudaArrayCubemap;\n", encoding="utf-8")
        for text, words in UNSUPPORTED.items():
            with self.subTest(text=text):
                code, said, _ = self.check(text=text)
                self.assertEqual((code, said.count("\n")), (2, 2), said)
                self.assertTrue(said.startswith(words), said)
                self.assertIn("\nit does not compile; ", said)

    def test_what_does_not_compile_is_said_in_a_few_lines(self):
        for text, words in {
            "#include <cub/cub.cuh>\n": "my_kernel.cu:1: the CPU device has no such header",
            BEGIN + "int main() { return missing; }\n": "my_kernel.cu:3: error: ",
            "int main() { missing<<<1, 32>>>(); }\n": "my_kernel.cu:1: error: ",
            "__global__ void k(float*) {}\nint main() { k<<<1, 32>>>(0, 1); }\n":
                "my_kernel.cu:2: error: a kernel with the parameters (float*) is launched with (int, int)",
            "__global__ void k() {}\nint main() { k<<<1>>>(); }\n": "my_kernel.cu:2: error: (int) stands between <<< and >>>: ",
            BEGIN: "my_kernel.cu: there is no main()",
        }.items():
            with self.subTest(text=text):
                code, said, _ = self.check(text=text)
                self.assertEqual((code, said.count("\n")), (2, 2), said)
                self.assertTrue(said.startswith(words), said)
                self.assertIn("\nit does not compile; ", said)
                self.assertNotIn("cpu_device", said.split("it does not compile")[0])

    def test_files_are_taken_as_their_writers_wrote_them(self):
        code, said, _ = self.check(FOLDER / "test_forms.cu")
        self.assertEqual(code, 0, said)
        code, said, _ = self.check(FOLDER / "test_forms.cu", "--explain")
        self.assertEqual(code, 0, said)
        self.assertIn('::ladder::own::launcher("overloaded", ', said)
        self.assertNotIn("<<<", said)

    def test_mistakes_in_them_are_named_in_their_words(self):
        (self.folder / "kernel.cu").write_text(MISTAKEN_FORMS, encoding="utf-8")
        for mistake, words in FORMS.items():
            with self.subTest(mistake=mistake):
                code, said, _ = self.check(self.folder / "kernel.cu", "--", mistake)
                self.assertEqual(code, 1, said)
                self.assertIn(words, "\n".join(said.splitlines()[:2]))
        code, said, progress = self.check(self.folder / "kernel.cu", "--limit", "3", "--", "slow")
        self.assertEqual(code, 2, said)
        self.assertRegex(progress, r"[0-9]+ of 1048576 blocks of kernel 'slow', launch 1, after 2 s\n")
        self.assertRegex(said, r"partly, on round-robin/late: [0-9]+ of 1048576 blocks of kernel 'slow'")
        self.assertIn("not checked to the end: give smaller sizes, by -D NAME=VALUE or by", said)
        code, said, _ = self.check(self.folder / "kernel.cu", "--limit", "1", "--", "slow_block")
        self.assertEqual(code, 2, said)
        self.assertIn("partly, on round-robin/late: 0 of 2 blocks of kernel 'slow_block', launch 1, ran in 1 s", said)
        self.assertRegex(said, r"without a\s+mistake; block\s+\(0,0,0\):\s+all\s+threads\s+have\s+passed\s+the\s+__syncthreads\s+at\s+\S*kernel\.cu:\d+\s+\d+\s+times:\s+does\s+the\s+loop\s+end\?")

    def test_the_cause_stands_in_the_first_two_lines(self):
        (self.folder / "causes.cu").write_text(CAUSES_TEXT, encoding="utf-8")
        for mistake, words in CAUSES.items():
            with self.subTest(mistake=mistake):
                code, said, _ = self.check(self.folder / "causes.cu", "--", mistake)
                self.assertEqual(code, 1, said)
                self.assertRegex(" ".join(line.strip() for line in said.splitlines()[:2]), words)
        for right in ("waits", "polls"):
            code, said, _ = self.check(self.folder / "causes.cu", "--schedule", "all", "--", right)
            self.assertEqual(code, 0, said)

    def test_what_main_does_not_notice_is_found_and_what_is_right_is_not_refused(self):
        (self.folder / "unseen.cu").write_text(UNSEEN_TEXT, encoding="utf-8")
        for mistake, words in UNSEEN.items():
            with self.subTest(mistake=mistake):
                code, said, _ = self.check(self.folder / "unseen.cu", "--", mistake)
                self.assertEqual(code, 1, said)
                self.assertRegex(" ".join(said.split()), words)
        for right in RIGHT_ALL_THE_SAME:
            with self.subTest(right=right):
                code, said, _ = self.check(self.folder / "unseen.cu", "--schedule", "all", "--", right)
                self.assertEqual(code, 0, said)
                remark = ("remark: main() copies to the host what nobody has written: kernels wrote 240 of the 256 bytes allocated at "
                          "unseen.cu:")
                self.assertEqual(remark in " ".join(said.split()), right == "padding", said)

    def test_plain_accesses_race_with_atomic_operations_and_what_is_ordered_does_not(self):
        file = FOLDER / "test_atomics.cu"
        code, said, _ = self.check(file, "--schedule", "all", "--", "none")
        self.assertEqual(code, 0, said)
        for mistake, words in ATOMICS.items():
            with self.subTest(mistake=mistake):
                code, said, _ = self.check(file, "--", mistake)
                self.assertEqual(code, 1, said)
                self.assertRegex(" ".join(said.split()), words)

    def test_inline_ptx_runs_or_is_named(self):
        text = """#include <cuda_runtime.h>
#define LANE(x) asm volatile("mov.u32 %0, %%laneid;" : "=r"(x))
template <int kAdd> __global__ void k(unsigned* out) {
  unsigned lane, sum;
  LANE(lane);
  asm("{\\n"
      "  .reg .u32 t;\\n"
      "  add.u32 t, %1, %[more];\\n"
      "  mov.u32 %0, t;\\n"
      "}" : "=r"(sum) : "r"(lane), [more] "n"(kAdd) : "memory");
  if (lane < 32) asm volatile("add.u32 %0, %0, 1;" : "+r"(sum)); else sum = 0;
  asm volatile("" ::: "memory");
  out[threadIdx.x] = sum;
}
__global__ void unknown(unsigned* out) { asm volatile("frobnicate.u32 %0, 1;" : "=r"(out[0])); }
int main(int argc, char**) {
  unsigned *x, last;
  cudaMalloc(&x, 128);
  k<7><<<1, 32>>>(x);
  cudaMemcpy(&last, x + 31, 4, cudaMemcpyDeviceToHost);
  if (argc > 1) unknown<<<1, 1>>>(x);
  return last != 39;
}
"""
        code, said, _ = self.check(text=text)
        self.assertEqual(code, 0, said)
        code, said, _ = self.check(self.folder / "my_kernel.cu", "--", "unknown")
        self.assertEqual(code, 2, said)
        self.assertRegex(said, r"frobnicate.u32 is not one that the CPU device runs\n.* at my_kernel.cu:15 in unknown\n")

    def test_options_of_nvcc_and_constrained_kernels(self):
        text = ("#include <concepts>\ntemplate <std::integral T> __global__ void k(T* o) { o[threadIdx.x] = 1; }\n"
                "int main() { int* o; cudaMalloc(&o, 128); k<<<1, 32>>>(o); return cudaDeviceSynchronize(); }\n")
        code, said, error = self.check("-O3", "-arch=sm_90a", "-std", "c++17", text=text)
        self.assertEqual(code, 0, said)
        self.assertEqual(error, "ladder check: these are nvcc's, and passed over: -O3 -arch=sm_90a -std c++17\n")

    def test_several_files_folders_of_headers_and_macros(self):
        (self.folder / "include").mkdir()
        (self.folder / "include/size.cuh").write_text("constexpr int kSize = SIZE;\n", encoding="utf-8")
        (self.folder / "more.cu").write_text(
            '#include "size.cuh"\nextern "C"__global__ void fill(int* x) { const const int v = kSize; x[threadIdx.x] = v; }\n'
            "void launch(int* x) { fill<<<1, kSize>>>(x); }\n", encoding="utf-8")
        text = ('#include "size.cuh"\nvoid launch(int* x);\nint main() {\n  int *x, last = 0;\n  cudaMalloc(&x, 4 * kSize);\n'
                "  launch(x);\n  cudaMemcpy(&last, x + kSize - 1, 4, cudaMemcpyDefault);\n  return last != 96;\n}\n")
        more = (self.folder / "more.cu", "-I", self.folder / "include")
        code, said, _ = self.check(*more, "-D", "SIZE=96", text=text)
        self.assertEqual(code, 0, said)
        code, said, _ = self.check(*more, "-DSIZE=32", text=text)
        self.assertEqual(code, 1, said)
        self.assertIn("its exit code is 1", said)

    def test_bad_input_is_one_line(self):
        for words, message in {
            ("nowhere.cu",): "'nowhere.cu': no such file",
            (): "name a file; ladder check --example > my_kernel.cu makes one",
            (FOLDER,): f"'{FOLDER}' is a folder: name the .cu files in it",
            (FOLDER / "example.cu", "512"): "'512': arguments of main() come after --, as in: ladder check ",
            (FOLDER / "example.cu", "--limit", "0"): "--limit '0': ",
            (FOLDER / "example.cu", "-I", "/nonexistent"): "-I '/nonexistent': no such folder",
            (FOLDER / "example.cu", "--schedule", "never"): "--schedule 'never': ",
            (FOLDER / "example.cu", "--timeline", "/nonexistent/t.json"): "--timeline '/nonexistent/t.json'",
        }.items():
            with self.subTest(words=words):
                code, said, error = self.check(*words)
                self.assertEqual((code, said, error.count("\n")), (2, "", 1), error)
                self.assertIn(f"ladder check: error: {message}", error)


if __name__ == "__main__":
    LADDER = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
