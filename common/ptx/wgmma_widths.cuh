/// @file
/// wgmma of every width: n of 8 to 256, in steps of 8 (sm_90a). See wgmma.cuh, which has the four that the
/// lessons need; inline PTX names every register, so that each width is an instruction of its own.
#pragma once
#include <cstdint>

// As in wgmma.cuh: code for other GPUs, which the launchers never choose a wgmma kernel for, traps.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define LADDER_WGMMA(...) asm volatile(__VA_ARGS__)
#else
#define LADDER_WGMMA(...) __trap()
#endif

namespace ptx {

// For each width the names of its registers, and the sums that they hold.
// clang-format off
#define LADDER_REGISTERS_8 "%0, %1, %2, %3"
#define LADDER_REGISTERS_16 LADDER_REGISTERS_8 ", %4, %5, %6, %7"
#define LADDER_REGISTERS_24 LADDER_REGISTERS_16 ", %8, %9, %10, %11"
#define LADDER_REGISTERS_32 LADDER_REGISTERS_24 ", %12, %13, %14, %15"
#define LADDER_REGISTERS_40 LADDER_REGISTERS_32 ", %16, %17, %18, %19"
#define LADDER_REGISTERS_48 LADDER_REGISTERS_40 ", %20, %21, %22, %23"
#define LADDER_REGISTERS_56 LADDER_REGISTERS_48 ", %24, %25, %26, %27"
#define LADDER_REGISTERS_64 LADDER_REGISTERS_56 ", %28, %29, %30, %31"
#define LADDER_REGISTERS_72 LADDER_REGISTERS_64 ", %32, %33, %34, %35"
#define LADDER_REGISTERS_80 LADDER_REGISTERS_72 ", %36, %37, %38, %39"
#define LADDER_REGISTERS_88 LADDER_REGISTERS_80 ", %40, %41, %42, %43"
#define LADDER_REGISTERS_96 LADDER_REGISTERS_88 ", %44, %45, %46, %47"
#define LADDER_REGISTERS_104 LADDER_REGISTERS_96 ", %48, %49, %50, %51"
#define LADDER_REGISTERS_112 LADDER_REGISTERS_104 ", %52, %53, %54, %55"
#define LADDER_REGISTERS_120 LADDER_REGISTERS_112 ", %56, %57, %58, %59"
#define LADDER_REGISTERS_128 LADDER_REGISTERS_120 ", %60, %61, %62, %63"
#define LADDER_REGISTERS_136 LADDER_REGISTERS_128 ", %64, %65, %66, %67"
#define LADDER_REGISTERS_144 LADDER_REGISTERS_136 ", %68, %69, %70, %71"
#define LADDER_REGISTERS_152 LADDER_REGISTERS_144 ", %72, %73, %74, %75"
#define LADDER_REGISTERS_160 LADDER_REGISTERS_152 ", %76, %77, %78, %79"
#define LADDER_REGISTERS_168 LADDER_REGISTERS_160 ", %80, %81, %82, %83"
#define LADDER_REGISTERS_176 LADDER_REGISTERS_168 ", %84, %85, %86, %87"
#define LADDER_REGISTERS_184 LADDER_REGISTERS_176 ", %88, %89, %90, %91"
#define LADDER_REGISTERS_192 LADDER_REGISTERS_184 ", %92, %93, %94, %95"
#define LADDER_REGISTERS_200 LADDER_REGISTERS_192 ", %96, %97, %98, %99"
#define LADDER_REGISTERS_208 LADDER_REGISTERS_200 ", %100, %101, %102, %103"
#define LADDER_REGISTERS_216 LADDER_REGISTERS_208 ", %104, %105, %106, %107"
#define LADDER_REGISTERS_224 LADDER_REGISTERS_216 ", %108, %109, %110, %111"
#define LADDER_REGISTERS_232 LADDER_REGISTERS_224 ", %112, %113, %114, %115"
#define LADDER_REGISTERS_240 LADDER_REGISTERS_232 ", %116, %117, %118, %119"
#define LADDER_REGISTERS_248 LADDER_REGISTERS_240 ", %120, %121, %122, %123"
#define LADDER_REGISTERS_256 LADDER_REGISTERS_248 ", %124, %125, %126, %127"
#define LADDER_FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define LADDER_SUMS_8 LADDER_FOUR(0)
#define LADDER_SUMS_16 LADDER_SUMS_8, LADDER_FOUR(4)
#define LADDER_SUMS_24 LADDER_SUMS_16, LADDER_FOUR(8)
#define LADDER_SUMS_32 LADDER_SUMS_24, LADDER_FOUR(12)
#define LADDER_SUMS_40 LADDER_SUMS_32, LADDER_FOUR(16)
#define LADDER_SUMS_48 LADDER_SUMS_40, LADDER_FOUR(20)
#define LADDER_SUMS_56 LADDER_SUMS_48, LADDER_FOUR(24)
#define LADDER_SUMS_64 LADDER_SUMS_56, LADDER_FOUR(28)
#define LADDER_SUMS_72 LADDER_SUMS_64, LADDER_FOUR(32)
#define LADDER_SUMS_80 LADDER_SUMS_72, LADDER_FOUR(36)
#define LADDER_SUMS_88 LADDER_SUMS_80, LADDER_FOUR(40)
#define LADDER_SUMS_96 LADDER_SUMS_88, LADDER_FOUR(44)
#define LADDER_SUMS_104 LADDER_SUMS_96, LADDER_FOUR(48)
#define LADDER_SUMS_112 LADDER_SUMS_104, LADDER_FOUR(52)
#define LADDER_SUMS_120 LADDER_SUMS_112, LADDER_FOUR(56)
#define LADDER_SUMS_128 LADDER_SUMS_120, LADDER_FOUR(60)
#define LADDER_SUMS_136 LADDER_SUMS_128, LADDER_FOUR(64)
#define LADDER_SUMS_144 LADDER_SUMS_136, LADDER_FOUR(68)
#define LADDER_SUMS_152 LADDER_SUMS_144, LADDER_FOUR(72)
#define LADDER_SUMS_160 LADDER_SUMS_152, LADDER_FOUR(76)
#define LADDER_SUMS_168 LADDER_SUMS_160, LADDER_FOUR(80)
#define LADDER_SUMS_176 LADDER_SUMS_168, LADDER_FOUR(84)
#define LADDER_SUMS_184 LADDER_SUMS_176, LADDER_FOUR(88)
#define LADDER_SUMS_192 LADDER_SUMS_184, LADDER_FOUR(92)
#define LADDER_SUMS_200 LADDER_SUMS_192, LADDER_FOUR(96)
#define LADDER_SUMS_208 LADDER_SUMS_200, LADDER_FOUR(100)
#define LADDER_SUMS_216 LADDER_SUMS_208, LADDER_FOUR(104)
#define LADDER_SUMS_224 LADDER_SUMS_216, LADDER_FOUR(108)
#define LADDER_SUMS_232 LADDER_SUMS_224, LADDER_FOUR(112)
#define LADDER_SUMS_240 LADDER_SUMS_232, LADDER_FOUR(116)
#define LADDER_SUMS_248 LADDER_SUMS_240, LADDER_FOUR(120)
#define LADDER_SUMS_256 LADDER_SUMS_248, LADDER_FOUR(124)
// The operands that follow them: A, B, whether to accumulate, whether A is column-major and B row-major.
#define LADDER_WIDTH(n, a_, b_, add, a_major, b_major)                                               \
  if constexpr (kN == n)                                                                             \
    LADDER_WGMMA("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add ", 0;\n"                                  \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" LADDER_REGISTERS_##n   \
                 "}, %" #a_ ", %" #b_ ", p, 1, 1, %" #a_major ", %" #b_major ";\n}\n"                \
                 : LADDER_SUMS_##n                                                                   \
                 : "l"(a), "l"(b), "r"(int(accumulate)), "n"(int(kAColumnMajor)), "n"(int(kBRowMajor)));
// clang-format on

/// `wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16`: d [64, kN] (+)= a [64, 16] · b [16, kN]. With
/// kAColumnMajor a has m contiguous, as b with kBRowMajor has n: products of transposed matrices.
template <int kN, bool kBRowMajor, bool kAColumnMajor = false>
__device__ __forceinline__ void wgmma_m64k16(float (&d)[kN / 2], uint64_t a, uint64_t b, bool accumulate) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256);
  // clang-format off
  LADDER_WIDTH(8, 4, 5, 6, 7, 8)
  LADDER_WIDTH(16, 8, 9, 10, 11, 12)
  LADDER_WIDTH(24, 12, 13, 14, 15, 16)
  LADDER_WIDTH(32, 16, 17, 18, 19, 20)
  LADDER_WIDTH(40, 20, 21, 22, 23, 24)
  LADDER_WIDTH(48, 24, 25, 26, 27, 28)
  LADDER_WIDTH(56, 28, 29, 30, 31, 32)
  LADDER_WIDTH(64, 32, 33, 34, 35, 36)
  LADDER_WIDTH(72, 36, 37, 38, 39, 40)
  LADDER_WIDTH(80, 40, 41, 42, 43, 44)
  LADDER_WIDTH(88, 44, 45, 46, 47, 48)
  LADDER_WIDTH(96, 48, 49, 50, 51, 52)
  LADDER_WIDTH(104, 52, 53, 54, 55, 56)
  LADDER_WIDTH(112, 56, 57, 58, 59, 60)
  LADDER_WIDTH(120, 60, 61, 62, 63, 64)
  LADDER_WIDTH(128, 64, 65, 66, 67, 68)
  LADDER_WIDTH(136, 68, 69, 70, 71, 72)
  LADDER_WIDTH(144, 72, 73, 74, 75, 76)
  LADDER_WIDTH(152, 76, 77, 78, 79, 80)
  LADDER_WIDTH(160, 80, 81, 82, 83, 84)
  LADDER_WIDTH(168, 84, 85, 86, 87, 88)
  LADDER_WIDTH(176, 88, 89, 90, 91, 92)
  LADDER_WIDTH(184, 92, 93, 94, 95, 96)
  LADDER_WIDTH(192, 96, 97, 98, 99, 100)
  LADDER_WIDTH(200, 100, 101, 102, 103, 104)
  LADDER_WIDTH(208, 104, 105, 106, 107, 108)
  LADDER_WIDTH(216, 108, 109, 110, 111, 112)
  LADDER_WIDTH(224, 112, 113, 114, 115, 116)
  LADDER_WIDTH(232, 116, 117, 118, 119, 120)
  LADDER_WIDTH(240, 120, 121, 122, 123, 124)
  LADDER_WIDTH(248, 124, 125, 126, 127, 128)
  LADDER_WIDTH(256, 128, 129, 130, 131, 132)
  // clang-format on
}

#undef LADDER_WIDTH
#undef LADDER_FOUR
#undef LADDER_WGMMA

}  // namespace ptx
