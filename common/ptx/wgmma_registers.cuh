/// @file
/// wgmma with A from registers (sm_90a; PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16"). A result
/// of one product can be the operand of the next: it needs no shared memory in between.
#pragma once
#include <cstdint>

#include "common/ptx/wgmma.cuh"

namespace ptx {

/// No instruction: tells the compiler that the operands are still read here, so that nothing is put into
/// their registers before. It follows the wait for the product that reads them.
template <int kSteps>
__device__ __forceinline__ void keep_in_registers(uint32_t (&a)[kSteps][4]) {
#pragma unroll
  for (int i = 0; i < kSteps; ++i)
    asm volatile("" : "+r"(a[i][0]), "+r"(a[i][1]), "+r"(a[i][2]), "+r"(a[i][3])::"memory");
}

// Where the code is for another GPU, these are a trap, as in wgmma.cuh.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define LADDER_WGMMA(...) asm volatile(__VA_ARGS__)
#else
#define LADDER_WGMMA(...) __trap()
#endif
#define LADDER_ACC8(d, i)                                                                     \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])

/// `wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16`: d [64, 128] (+)= a [64, 16] · b [16, 128]. Lane t
/// of a warp holds of its 16 rows of a, two bf16 to a register, the first in the low half: a[0] = A(t/4,
/// 2*(t%4)) and the column after it, a[1] the same 8 rows below, a[2] and a[3] these 8 columns to the right.
/// The tensor cores read the registers of a at any time until the wait.
template <bool kBRowMajor>
__device__ __forceinline__ void wgmma_m64n128k16(float (&d)[64], const uint32_t (&a)[4], uint64_t b,
                                                 bool accumulate) {
  LADDER_WGMMA(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, %70;\n}\n"
      : LADDER_ACC8(d, 0), LADDER_ACC8(d, 8), LADDER_ACC8(d, 16), LADDER_ACC8(d, 24), LADDER_ACC8(d, 32),
        LADDER_ACC8(d, 40), LADDER_ACC8(d, 48), LADDER_ACC8(d, 56)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)),
        "n"(kBRowMajor ? 1 : 0));
}

#undef LADDER_ACC8
#undef LADDER_WGMMA

}  // namespace ptx
