/// @file
/// For the test of `ladder check`: plain accesses and atomic operations of the same bytes, in shared memory,
/// in global memory and in `__device__` variables. The argument names the mistake; "none" runs all that is
/// right.
#include <cuda_runtime.h>
#include <cstring>
#include <cuda/atomic>

__device__ int lock_, count_, best_ = 1 << 30;
__device__ double sum_;

// --- mistakes

__global__ void cleared_late(int* out) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;
  atomicAdd(&n, 1);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = n;
}
__global__ void read_early(int* out) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  atomicAdd(&n, 1);
  if (threadIdx.x == 0) out[blockIdx.x] = n;
}
__global__ void global_cleared_late(int* n) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *n = 0;
  atomicAdd(n, 1);
}
__global__ void global_read_early(int* n, int* out) {
  atomicAdd(n, 1);
  if (threadIdx.x == 0) out[blockIdx.x] = *n;
}
__global__ void counts_plainly() {
  if (threadIdx.x == 0) count_ = count_ + 1;
}
__global__ void lock_without_fences() {
  if (threadIdx.x) return;
  while (atomicCAS(&lock_, 0, 1)) continue;
  count_ = count_ + 1;
  lock_ = 0;
}

// --- what is right

__device__ void add(double* address, double value) {
  auto* const bits = reinterpret_cast<unsigned long long*>(address);
  unsigned long long old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
  } while (assumed != old);
}
/// A plain store behind a fence gives the lock back, and plain loads are guesses.
__global__ void lock_and_guess() {
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock_, 0, 1)) continue;
    __threadfence();
    count_ = count_ + 1;
    __threadfence();
    lock_ = 0;
  }
  add(&sum_, 1);
  const int mine = 1000 - blockIdx.x + threadIdx.x;
  if (best_ > mine) atomicMin(&best_, mine);
}
__global__ void in_a_block(int* out) {
  __shared__ unsigned bins[8];
  __shared__ int best, ticket, lock, count, box;
  __shared__ cuda::atomic<int, cuda::thread_scope_block> full;
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    best = 1 << 30;
    ticket = lock = count = 0;
    full.store(0);
  }
  __syncthreads();
  atomicAdd(&bins[threadIdx.x % 8], 1u);
  const int mine = threadIdx.x * 7 % 64;
  if (mine < best) atomicMin(&best, mine);
  __threadfence_block();
  if (atomicAdd(&ticket, 1) == 127) {  // the last one
    __threadfence_block();
    for (const unsigned bin : bins) out[blockIdx.x] += bin;
    ticket = 0;
  }
  if (threadIdx.x % 32 == 0) {
    while (atomicCAS(&lock, 0, 1)) continue;
    __threadfence_block();
    count = count + 1;
    __threadfence_block();
    lock = 0;
  }
  if (threadIdx.x == 0) {
    box = 7;
    full.store(1, cuda::memory_order_release);
  }
  if (threadIdx.x == 32) {
    while (full.load(cuda::memory_order_acquire) == 0) continue;
    count_ = box * (blockIdx.x == 0) + count_ * (blockIdx.x != 0);
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] += bins[3] + best + count;
}
__global__ void last_block(int* partial, unsigned* arrived, int* total, int* out) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = 1;
    atomicAdd(total, 1);
    __threadfence();
    is_last = atomicInc(arrived, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last || threadIdx.x) return;
  __threadfence();
  *out = *total;
  for (unsigned i = 0; i < gridDim.x; ++i) *out += partial[i];
  *arrived = 0;
}
__global__ void strong_accesses(int* n, int* out) {
  int x;
  atomicAdd(n, 1);
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(n) : "memory");
  asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" ::"l"(n), "r"(1) : "memory");
  asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(n + 1), "r"(1) : "memory");
  asm volatile("ld.volatile.global.s32 %0, [%1];" : "=r"(x) : "l"(n) : "memory");
  const cuda::atomic_ref<int, cuda::thread_scope_device> third(n[2]);
  third.fetch_add(1, cuda::memory_order_relaxed);
  if (threadIdx.x == 0) out[blockIdx.x] = x + third.load() + *(volatile int*)n + __ldcg(n);
  third.store(3);
}

int main(int, char** argv) {
  int* n;
  cudaMalloc(&n, 4096);
  cudaMemset(n, 0, 4096);
#define IF(kernel, ...) \
  if (!std::strcmp(argv[1], #kernel)) kernel<<<4, 64>>>(__VA_ARGS__)
  IF(cleared_late, n);
  IF(read_early, n);
  IF(global_cleared_late, n);
  IF(global_read_early, n, n + 1);
  IF(counts_plainly);
  IF(lock_without_fences);
  if (!std::strcmp(argv[1], "none")) {
    lock_and_guess<<<6, 64>>>();
    int count = 0;
    cudaMemcpyFromSymbol(&count, count_, sizeof count);
    if (count != 6) return 1;
    in_a_block<<<1, 128>>>(n);
    last_block<<<5, 64>>>(n + 100, reinterpret_cast<unsigned*>(n) + 200, n + 201, n + 202);
    strong_accesses<<<4, 64>>>(n + 300, n + 310);
  }
  return cudaDeviceSynchronize();
}
