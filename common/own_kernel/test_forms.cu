// For the test of `ladder check`: the forms in which CUDA files launch kernels and declare shared memory.
// main() returns the line of the first result that is wrong.
#include <cooperative_groups.h>
#include <mma.h>
#include <cstdio>
#include <cuda/barrier>
#include <vector>

int* on_device;
#define LAUNCH(kernel, ...) kernel<<<__VA_ARGS__>>>
#define DECLARE_TILE(T, name) __shared__ T name[32]

constexpr int kThreads = 32;

template <class T>
struct Size {
  static constexpr int value = kThreads;
};

struct Pair {
  Pair() { *this = Pair(1, 2); }  // a constructor, which must not run
  Pair(int one, int other) : one(one), other(other) {}
  int one, other;
};

namespace deep {
template <class T, int N>
__global__ void __launch_bounds__(N * 32, 2) scaled(T* to, const T* from, T by, int n = 0);

template <class T, int N>
__global__ void __launch_bounds__(N * 32, 2) scaled(T* to, const T* from, T by, int n) {
  __shared__ alignas(128) T tile[N][32], factor;
  __shared__ volatile int flag;
  if (threadIdx.x == 0) factor = by, flag = 1;
  tile[threadIdx.x / 32][threadIdx.x % 32] = from[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n) to[threadIdx.x] = tile[threadIdx.x / 32][threadIdx.x % 32] * factor * flag;
}

template <class T>
__global__ void deduced(T* to, int n, T plus) {
  extern __shared__ __align__(16) unsigned char raw[];
  T* const values = reinterpret_cast<T*>(raw);
  values[threadIdx.x] = static_cast<T>(threadIdx.x);
  __syncthreads();
  if (threadIdx.x < n) to[threadIdx.x] = values[n - 1 - threadIdx.x] + plus;
}
}  // namespace deep

__global__ void overloaded(int* to) { to[threadIdx.x] = 1; }
__global__ void overloaded(float* to) { to[threadIdx.x] = 2; }

static __global__ void shapes(int* to, int) {
  extern __shared__ int dynamic[];
  static __shared__ int four[2][3][4][5];
  alignas(64) __shared__ int three[2][3][5];
  DECLARE_TILE(int, one);
  __shared__ Pair pair;
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    pair = Pair(3, 4);
  }
  __syncthreads();
  if (threadIdx.x < 5) four[1][2][3][threadIdx.x] = three[1][2][threadIdx.x] = 1;
  one[threadIdx.x] = dynamic[threadIdx.x] = threadIdx.x;
  barrier.arrive_and_wait();
  to[threadIdx.x] = dynamic[kThreads - 1 - threadIdx.x] + one[threadIdx.x] + pair.other +
                    four[1][2][3][threadIdx.x % 5] + three[1][2][threadIdx.x % 5];
}

template <class F>
__global__ void apply(int* to, F f) {
  to[threadIdx.x] = f(threadIdx.x);
}

__shared__ int of_namespace[kThreads];
__device__ __noinline__ int other_end() { return of_namespace[blockDim.x - 1 - threadIdx.x]; }
__global__ void uses_namespace(int* to) {
  of_namespace[threadIdx.x] = threadIdx.x;
  __syncthreads();
  to[threadIdx.x] = other_end();
}

template <class T>
__global__ void twice(T* to) {
  to[threadIdx.x] *= 2;
}

__constant__ int table[2];
__global__ void __cluster_dims__(2) in_clusters(int* to) {
  if (threadIdx.x == 0) to[blockIdx.x] = cooperative_groups::this_cluster().num_blocks() + table[1];
}

__host__ __device__ int architecture() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  return 90;
#else
  return 0;
#endif
}
__global__ void of_architecture(int* to) { *to = architecture(); }

// Older than C++20's, in helper_math.h.
__host__ __device__ float lerp(float from, float to, float at) { return from + at * (to - from); }
__global__ void with_defaults(volatile int* to, int first, int plus = Size<int>::value, bool doubles = false);
__global__ void with_defaults(volatile int* to, int first, int plus, bool doubles) {
  to[threadIdx.x] = (first + plus) * (doubles ? 2 : 1) + static_cast<int>(lerp(0, 8, 0.5f));
}
template <class T>
__global__ void deduced_with_defaults(T* to, int value = 7) {
  to[threadIdx.x] = value;
}
// A host function with the kernel's name.
void with_defaults(int first) { with_defaults<<<1, kThreads>>>(on_device, first, 2); }

template <class T>
struct Runner {
  void (*kernel)(T*);
  void run(T* to) { kernel<<<1, kThreads>>>(to); }
  template <void (*kKernel)(T*)>
  void go(T* to) {
    kKernel<<<dim3{1}, {kThreads, 1}>>>(to);
  }
};

/// The first value, and the last.
bool is(int first, int last, int count = kThreads) {
  std::vector<int> got(count);
  cudaMemcpy(got.data(), on_device, count * sizeof(int), cudaMemcpyDeviceToHost);
  return got.front() == first && got.back() == last;
}

#define EXPECT(condition)                                                           \
  if (!(condition)) {                                                               \
    std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(cudaGetLastError())); \
    return 1;                                                                       \
  }

/// Compilers put them one behind the other, and a swizzled tile must begin at a multiple of 1024.
__global__ void tiles_in_a_row(int* to) {
  __shared__ alignas(128) char a[8192];
  __shared__ alignas(128) char b[4096];
  __shared__ alignas(128) char c[2048 + 128];
  __shared__ alignas(128) char d[2048];
  a[threadIdx.x] = b[threadIdx.x] = c[threadIdx.x] = d[threadIdx.x] = 1;
  const auto rest = [](const void* tile) { return static_cast<int>(__cvta_generic_to_shared(tile) % 1024); };
  to[threadIdx.x] = rest(a) + rest(b) + rest(c);
}

/// Lanes look into the fragments of others, which lie where those of the block before lay.
__global__ void product_of_fragments(int* to, const half* from) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> a;
  fragment<matrix_b, 16, 16, 16, half, col_major> b;
  fragment<accumulator, 16, 16, 16, float> sums;
  fill_fragment(sums, 1);
  load_matrix_sync(a, from, 16);
  load_matrix_sync(b, from, 16);
  mma_sync(sums, a, b, sums);
  if (threadIdx.x == 0) to[blockIdx.x] = static_cast<int>(sums.x[0]);
}

int main() {
  cudaMalloc(&on_device, 256 * sizeof(int));
  int* const x = on_device;
  std::vector<int> from(64, 5);
  int* five;
  cudaMalloc(&five, 256);
  cudaMemcpy(five, from.data(), 256, cudaMemcpyHostToDevice);
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

  deep::scaled<int, 2><<<1, 2 * Size<Size<int>>::value>>>(x, five, 3, 64);
  EXPECT(is(15, 15, 64));
  using deep::deduced;
  deduced<<<(kThreads + 63) / 64, kThreads, kThreads * sizeof(int)>>>(x, kThreads, 1);
  EXPECT(is(32, 1));
  LAUNCH(deep::deduced, 1, kThreads, kThreads * sizeof(int), 0)(x, kThreads, 2);
  EXPECT(is(33, 2));
  overloaded<<<1, kThreads, 0, stream>>>(x);
  cudaStreamSynchronize(stream);
  EXPECT(is(1, 1));
  overloaded<<<1, kThreads>>>(reinterpret_cast<float*>(x));
  EXPECT(is(0x40000000, 0x40000000));
  shapes<<<1, dim3(kThreads, 1), kThreads * sizeof(int)>>>(x, 0);
  EXPECT(is(37, 37));
  const int offset = 5;
  apply<<<1, kThreads>>>(x, [=] __device__(int i) { return i + offset; });
  EXPECT(is(5, 36));
  auto kernel = deep::deduced<int>;
  // clang-format off
  const int line = __LINE__;
  kernel<<<1, kThreads,
           128>>>(x,
                  kThreads, 4); EXPECT(__LINE__ == line + 3);
  // clang-format on
  EXPECT(is(35, 4));
  auto pointer = &shapes;
  (*pointer)<<<1, kThreads, 128>>>(x, 0);
  EXPECT(is(37, 37));
  uses_namespace<<<1, kThreads>>>(x);
  EXPECT(is(31, 0));
  Runner<int> runner{overloaded};
  runner.run(x);
  EXPECT(is(1, 1));
  uses_namespace<<<1, kThreads>>>(x);
  runner.go<overloaded>(x);
  EXPECT(is(1, 1));
  const int values[2] = {0, 7};
  cudaMemcpyToSymbol(table, values, sizeof values);
  in_clusters<<<4, kThreads>>>(x);
  EXPECT(is(9, 9, 4));
  of_architecture<<<1, 1>>>(x);
  EXPECT(is(90, 90, 1));

  with_defaults<<<1, kThreads>>>(x, 1);
  EXPECT(is(37, 37));
  with_defaults(1);
  EXPECT(is(7, 7));
  tiles_in_a_row<<<1, kThreads>>>(x);
  EXPECT(is(0, 0));
  std::vector<half> halves(256, 2);
  half* twos;
  cudaMalloc(&twos, 512);
  cudaMemcpy(twos, halves.data(), 512, cudaMemcpyHostToDevice);
  product_of_fragments<<<8, kThreads>>>(x, twos);
  EXPECT(is(65, 65, 8));
  deduced_with_defaults<<<1, kThreads>>>(x);
  EXPECT(is(7, 7));
  void* arguments[] = {&on_device};
  EXPECT(!cudaLaunchCooperativeKernel((void*)uses_namespace, 1, kThreads, arguments, 0, nullptr));
  EXPECT(is(31, 0));
  // A pointer that has lost its type is launched with the kernel's parameters, also by a graph.
  const void* const pointers[] = {(void*)twice<int>, reinterpret_cast<const void*>(&uses_namespace)};
  EXPECT(!cudaLaunchKernel(pointers[1], 1, kThreads, arguments, 0, nullptr));
  EXPECT(!cudaLaunchKernel(pointers[0], 1, kThreads, arguments, 0, nullptr));
  EXPECT(is(62, 0));
  cudaKernelNodeParams node_params = {0};
  node_params.func = (void*)twice<int>;
  node_params.gridDim = 1;
  node_params.blockDim = kThreads;
  node_params.kernelParams = arguments;
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  EXPECT(!cudaGraphCreate(&graph, 0) && !cudaGraphAddKernelNode(&node, graph, NULL, 0, &node_params));
  EXPECT(!cudaGraphInstantiate(&exec, graph, NULL, NULL, 0) && !cudaGraphLaunch(exec, 0));
  EXPECT(is(124, 0));
  EXPECT(cudaLaunchKernel(arguments, 1, 1, arguments, 0, nullptr) == cudaErrorInvalidDeviceFunction);
  EXPECT(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
  EXPECT(!cudaGraphExecDestroy(exec) && !cudaGraphDestroy(graph));

  shapes<<<1, 2000>>>(x, 3);
  EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
  EXPECT(cudaGetLastError() == cudaSuccess);
  in_clusters<<<3, kThreads>>>(x);
  EXPECT(cudaGetLastError() != cudaSuccess);
  deep::deduced<<<1, kThreads, 64 * 1024>>>(x, kThreads, 1);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  EXPECT(!cudaFuncSetAttribute(deep::deduced<int>, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024));
  deep::deduced<<<1, kThreads, 64 * 1024>>>(x, kThreads, 1);
  EXPECT(is(32, 1));
  return 0;
}
