/// @file
/// The tensor-core instructions of Hopper (sm_90a). All 128 threads of a warpgroup (four consecutive warps,
/// the first a multiple of four) execute them; they run in the async proxy.
#pragma once
#include <cstdint>

#include "common/ptx/shared_address.cuh"

// Only code for sm_90a can hold these instructions. In code for other GPUs, which the launchers never choose
// a wgmma kernel for, they become a trap.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define LADDER_WGMMA(...) asm volatile(__VA_ARGS__)
#else
#define LADDER_WGMMA(...) __trap()
#endif

namespace ptx {

// [groups]
/// `wgmma.fence.sync.aligned`: orders earlier accesses to registers before those of the wgmma that follow.
/// Needed before the first wgmma, and whenever ordinary instructions have touched these registers since.
__device__ __forceinline__ void wgmma_fence() { LADDER_WGMMA("wgmma.fence.sync.aligned;" ::: "memory"); }

/// `wgmma.commit_group.sync.aligned`: closes a group over all wgmma issued since the last one.
__device__ __forceinline__ void wgmma_commit_group() {
  LADDER_WGMMA("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// `wgmma.wait_group.sync.aligned`: waits until at most kInFlight groups are unfinished. Only then may the
/// accumulators of the finished groups be read, and their shared memory be overwritten.
template <int kInFlight>
__device__ __forceinline__ void wgmma_wait_group() {
  LADDER_WGMMA("wgmma.wait_group.sync.aligned %0;" ::"n"(kInFlight) : "memory");
}
// [groups]

/// No instruction: tells the compiler that the registers change here, so that no access moves across a wait.
template <int kCount>
__device__ __forceinline__ void keep_in_registers(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// [matrix_descriptor]
/// A shared-memory matrix descriptor (PTX ISA, "wgmma: Matrix Descriptor Format") for tiles with the 128-byte
/// swizzle: bits 0-13 start address / 16, bits 16-29 leading-dimension byte offset / 16, bits 32-45 stride
/// byte offset / 16, bits 62-63 the swizzle (1 = 128 bytes).
__device__ __forceinline__ uint64_t matrix_descriptor(const void* start, uint32_t leading_bytes,
                                                      uint32_t stride_bytes) {
  return static_cast<uint64_t>((shared_address(start) & 0x3FFFF) >> 4) |
         static_cast<uint64_t>(leading_bytes >> 4) << 16 | static_cast<uint64_t>(stride_bytes >> 4) << 32 |
         uint64_t{1} << 62;
}
// [matrix_descriptor]

// "wgmma.mma_async" in the PTX ISA: a and b are descriptors of shared memory, a with k contiguous; b with n
// contiguous if kBRowMajor, else with k contiguous. Without `accumulate` d is overwritten. Thread t holds in
// d[4j .. 4j+3] what lane t % 32 holds in d of mma.m16n8k16, for rows 16 * (t / 32) and columns 8j.
#define LADDER_ACC4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define LADDER_ACC16(d, i) \
  LADDER_ACC4(d, i), LADDER_ACC4(d, i + 4), LADDER_ACC4(d, i + 8), LADDER_ACC4(d, i + 12)

/// `wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16`: d [64, 64] (+)= a [64, 16] · b [16, 64].
template <bool kBRowMajor>
__device__ __forceinline__ void wgmma_m64n64k16(float (&d)[32], uint64_t a, uint64_t b, bool accumulate) {
  LADDER_WGMMA(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, %32, %33, p, 1, 1, 0, %35;\n}\n"
      : LADDER_ACC16(d, 0), LADDER_ACC16(d, 16)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(kBRowMajor ? 1 : 0));
}

/// `wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16`: d [64, 128] (+)= a [64, 16] · b [16, 128].
template <bool kBRowMajor>
__device__ __forceinline__ void wgmma_m64n128k16(float (&d)[64], uint64_t a, uint64_t b, bool accumulate) {
  LADDER_WGMMA(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      // [mma_async]
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, p, 1, 1, 0, %67;\n}\n"
      // [mma_async]
      : LADDER_ACC16(d, 0), LADDER_ACC16(d, 16), LADDER_ACC16(d, 32), LADDER_ACC16(d, 48)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(kBRowMajor ? 1 : 0));
}

/// `wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16`: d [64, 192] (+)= a [64, 16] · b [16, 192].
template <bool kBRowMajor>
__device__ __forceinline__ void wgmma_m64n192k16(float (&d)[96], uint64_t a, uint64_t b, bool accumulate) {
  LADDER_WGMMA(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
      "}, %96, %97, p, 1, 1, 0, %99;\n}\n"
      : LADDER_ACC16(d, 0), LADDER_ACC16(d, 16), LADDER_ACC16(d, 32), LADDER_ACC16(d, 48),
        LADDER_ACC16(d, 64), LADDER_ACC16(d, 80)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(kBRowMajor ? 1 : 0));
}

/// `wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16`: d [64, 256] (+)= a [64, 16] · b [16, 256].
template <bool kBRowMajor>
__device__ __forceinline__ void wgmma_m64n256k16(float (&d)[128], uint64_t a, uint64_t b, bool accumulate) {
  LADDER_WGMMA(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, %131;\n}\n"
      : LADDER_ACC16(d, 0), LADDER_ACC16(d, 16), LADDER_ACC16(d, 32), LADDER_ACC16(d, 48),
        LADDER_ACC16(d, 64), LADDER_ACC16(d, 80), LADDER_ACC16(d, 96), LADDER_ACC16(d, 112)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(kBRowMajor ? 1 : 0));
}

#undef LADDER_ACC16
#undef LADDER_ACC4
#undef LADDER_WGMMA

}  // namespace ptx
