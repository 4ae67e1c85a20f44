/// @file
/// The table of instructions, one after the other, on fixed operands: the same source is inline PTX on a GPU
/// and goes through the interpreter on the CPU device. Both must give, bit for bit, what expected_table.txt
/// says: for each row a hash of all its results.
///
/// With LADDER_PTX_RESULTS=FILE the results themselves are written: to compare two devices, or, with the
/// hashes in front, to make expected_table.txt after a change of the table (on the CPU device; then a GPU
/// confirms it).
#include <cuda_runtime.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/host/device/device.hpp"
#include "common/host/program/program.hpp"

#ifdef LADDER_CPU_DEVICE
#include "common/own_kernel/ptx/asm.hpp"
#define OUT(constraint, x) ::ladder::inline_ptx::out("=" constraint, "", x)
#define IN(constraint, x) ::ladder::inline_ptx::in(constraint, "", x)
#define PTX(text, out, a, b, c)                                              \
  {                                                                          \
    static ::ladder::inline_ptx::Site ladder_site(text, __FILE__, __LINE__); \
    ladder_site.run(out, a, b, c);                                           \
  }
#define PTX_4(text, d0, d1, d2, d3, ...)                                     \
  {                                                                          \
    static ::ladder::inline_ptx::Site ladder_site(text, __FILE__, __LINE__); \
    ladder_site.run(d0, d1, d2, d3, __VA_ARGS__);                            \
  }
#else
#define OUT(constraint, x) "=" constraint(x)
#define IN(constraint, x) constraint(x)
#define PTX(text, out, a, b, c) asm volatile(text:out : a, b, c);
#define PTX_4(text, d0, d1, d2, d3, ...) asm volatile(text : d0, d1, d2, d3:__VA_ARGS__ : "memory");
#endif

namespace {

/// Whose NaN a double is, nobody says.
#define NUMBER_64(text) text "{.reg .pred p; testp.notanumber.f64 p, %0; @p mov.b64 %0, 0;}"

/// Rows: the registers of the result and of the operands (h 16 bits, r 32, l 64), and the text.
#define ROWS(ROW)                                                                             \
  ROW(r, r, "add.u32 %0, %1, %2;")                                                            \
  ROW(r, r, "add.sat.s32 %0, %1, %2;")                                                        \
  ROW(r, r, "sub.s32 %0, %1, %2;")                                                            \
  ROW(l, l, "add.s64 %0, %1, %2;")                                                            \
  ROW(l, l, "sub.u64 %0, %1, %2;")                                                            \
  ROW(h, h, "add.u16 %0, %1, %2;")                                                            \
  ROW(r, r, "{.reg .u32 t; add.cc.u32 t, %1, %2; addc.u32 %0, %3, 0;}")                       \
  ROW(r, r, "{.reg .u32 t; sub.cc.u32 t, %1, %2; subc.u32 %0, %3, 0;}")                       \
  ROW(r, r, "mul.lo.u32 %0, %1, %2;")                                                         \
  ROW(r, r, "mul.hi.u32 %0, %1, %2;")                                                         \
  ROW(r, r, "mul.hi.s32 %0, %1, %2;")                                                         \
  ROW(l, l, "mul.lo.s64 %0, %1, %2;")                                                         \
  ROW(l, l, "mul.hi.u64 %0, %1, %2;")                                                         \
  ROW(l, l, "mul.hi.s64 %0, %1, %2;")                                                         \
  ROW(l, r, "mul.wide.u32 %0, %1, %2;")                                                       \
  ROW(l, r, "mul.wide.s32 %0, %1, %2;")                                                       \
  ROW(r, h, "mul.wide.s16 %0, %1, %2;")                                                       \
  ROW(r, r, "mad.lo.s32 %0, %1, %2, %3;")                                                     \
  ROW(r, r, "mad.hi.u32 %0, %1, %2, %3;")                                                     \
  ROW(r, r, "div.s32 %0, %1, 7;")                                                             \
  ROW(r, r, "rem.u32 %0, %1, 13;")                                                            \
  ROW(r, r, "min.s32 %0, %1, %2;")                                                            \
  ROW(r, r, "max.u32 %0, %1, %2;")                                                            \
  ROW(l, l, "min.s64 %0, %1, %2;")                                                            \
  ROW(r, r, "abs.s32 %0, %1;")                                                                \
  ROW(r, r, "neg.s32 %0, %1;")                                                                \
  ROW(r, r, "sad.u32 %0, %1, %2, %3;")                                                        \
  ROW(r, r, "and.b32 %0, %1, %2;")                                                            \
  ROW(r, r, "or.b32 %0, %1, %2;")                                                             \
  ROW(l, l, "xor.b64 %0, %1, %2;")                                                            \
  ROW(r, r, "not.b32 %0, %1;")                                                                \
  ROW(r, r, "cnot.b32 %0, %1;")                                                               \
  ROW(r, r, "shl.b32 %0, %1, %2;")                                                            \
  ROW(r, r, "shr.u32 %0, %1, %2;")                                                            \
  ROW(r, r, "shr.s32 %0, %1, %2;")                                                            \
  ROW(l, l, "{.reg .u32 s; cvt.u32.u64 s, %2; shr.s64 %0, %1, s;}")                           \
  ROW(r, r, "shf.l.wrap.b32 %0, %1, %2, %3;")                                                 \
  ROW(r, r, "shf.r.clamp.b32 %0, %1, %2, %3;")                                                \
  ROW(r, r, "bfe.u32 %0, %1, %2, %3;")                                                        \
  ROW(r, r, "bfe.s32 %0, %1, %2, %3;")                                                        \
  ROW(r, r, "bfi.b32 %0, %1, %2, %3, 9;")                                                     \
  ROW(r, r, "popc.b32 %0, %1;")                                                               \
  ROW(r, l, "popc.b64 %0, %1;")                                                               \
  ROW(r, r, "clz.b32 %0, %1;")                                                                \
  ROW(r, l, "clz.b64 %0, %1;")                                                                \
  ROW(r, r, "brev.b32 %0, %1;")                                                               \
  ROW(r, r, "bfind.u32 %0, %1;")                                                              \
  ROW(r, r, "bfind.s32 %0, %1;")                                                              \
  ROW(r, r, "bfind.shiftamt.u32 %0, %1;")                                                     \
  ROW(r, r, "lop3.b32 %0, %1, %2, %3, 0xca;")                                                 \
  ROW(r, r, "lop3.b32 %0, %1, %2, %3, 0x96;")                                                 \
  ROW(r, r, "prmt.b32 %0, %1, %2, %3;")                                                       \
  ROW(r, r, "add.f32 %0, %1, %2;")                                                            \
  ROW(r, r, "add.ftz.f32 %0, %1, %2;")                                                        \
  ROW(r, r, "sub.rn.f32 %0, %1, %2;")                                                         \
  ROW(r, r, "mul.f32 %0, %1, %2;")                                                            \
  ROW(r, r, "mul.ftz.f32 %0, %1, %2;")                                                        \
  ROW(r, r, "fma.rn.f32 %0, %1, %2, %3;")                                                     \
  ROW(r, r, "fma.rn.sat.f32 %0, %1, %2, %3;")                                                 \
  ROW(r, r, "min.f32 %0, %1, %2;")                                                            \
  ROW(r, r, "max.f32 %0, %1, %2;")                                                            \
  ROW(r, r, "max.NaN.f32 %0, %1, %2;")                                                        \
  ROW(r, r, "abs.f32 %0, %1;")                                                                \
  ROW(r, r, "neg.f32 %0, %1;")                                                                \
  ROW(r, r, "copysign.f32 %0, %1, %2;")                                                       \
  ROW(r, r, "div.rn.f32 %0, %1, %2;")                                                         \
  ROW(r, r, "rcp.rn.f32 %0, %1;")                                                             \
  ROW(r, r, "sqrt.rn.f32 %0, %1;")                                                            \
  ROW(l, l, NUMBER_64("add.f64 %0, %1, %2;"))                                                 \
  ROW(l, l, NUMBER_64("mul.f64 %0, %1, %2;"))                                                 \
  ROW(l, l, NUMBER_64("fma.rn.f64 %0, %1, %2, %3;"))                                          \
  ROW(l, l, NUMBER_64("sqrt.rn.f64 %0, %1;"))                                                 \
  ROW(h, h, "add.f16 %0, %1, %2;")                                                            \
  ROW(h, h, "mul.f16 %0, %1, %2;")                                                            \
  ROW(h, h, "fma.rn.f16 %0, %1, %2, %3;")                                                     \
  ROW(r, r, "add.f16x2 %0, %1, %2;")                                                          \
  ROW(r, r, "fma.rn.f16x2 %0, %1, %2, %3;")                                                   \
  ROW(r, r, "fma.rn.relu.f16x2 %0, %1, %2, %3;")                                              \
  ROW(r, r, "max.f16x2 %0, %1, %2;")                                                          \
  ROW(r, r, "neg.f16x2 %0, %1;")                                                              \
  ROW(h, h, "fma.rn.bf16 %0, %1, %2, %3;")                                                    \
  ROW(r, r, "fma.rn.bf16x2 %0, %1, %2, %3;")                                                  \
  ROW(r, r, "add.bf16x2 %0, %1, %2;")                                                         \
  ROW(r, r, "mul.bf16x2 %0, %1, %2;")                                                         \
  ROW(r, r, "min.bf16x2 %0, %1, %2;")                                                         \
  ROW(r, r, "{.reg .pred p; setp.lt.s32 p, %1, %2; selp.b32 %0, %3, 5, p;}")                  \
  ROW(r, r, "{.reg .pred p, q; setp.hi.u32 p|q, %1, %2; selp.b32 %0, 1, 2, q;}")              \
  ROW(r, r, "{.reg .pred p; setp.gtu.f32 p, %1, %2; selp.b32 %0, 1, 0, p;}")                  \
  ROW(r, r, "{.reg .pred p; setp.num.f32 p, %1, %2; selp.b32 %0, 1, 0, p;}")                  \
  ROW(r, r,                                                                                   \
      "{.reg .pred p, q; setp.ne.b32 p, %1, 0; setp.ge.and.s32 q, %2, %3, !p;\n"              \
      "not.pred p, q; or.pred p, p, q; selp.u32 %0, %1, %2, q;}")                             \
  ROW(r, r, "set.le.u32.f32 %0, %1, %2;")                                                     \
  ROW(r, r, "slct.b32.s32 %0, %1, %2, %3;")                                                   \
  ROW(r, r, "{.reg .pred p; setp.eq.u32 p, %1, %2; mov.u32 %0, 3; @!p mov.u32 %0, 4;}")       \
  ROW(r, r,                                                                                   \
      "{.reg .b32 n; .reg .pred p; mov.u32 n, 0; and.b32 %0, %1, 15;\n"                       \
      "AGAIN: add.u32 n, n, %0; sub.u32 %0, %0, 1; setp.gt.s32 p, %0, 0;\n"                   \
      "@p bra AGAIN; mov.u32 %0, n;}")                                                        \
  ROW(l, r, "mov.b64 %0, {%1, %2};")                                                          \
  ROW(r, l, "{.reg .b32 low; mov.b64 {low, %0}, %1;}")                                        \
  ROW(r, h, "mov.b32 %0, {%1, %2};")                                                          \
  ROW(r, r, "mov.f32 %0, 0f3f800000;")                                                        \
  ROW(r, l, "cvt.u32.u64 %0, %1;")                                                            \
  ROW(l, r, "cvt.s64.s32 %0, %1;")                                                            \
  ROW(l, r, "cvt.u64.u32 %0, %1;")                                                            \
  ROW(r, r, "{.reg .s8 t; cvt.s8.s32 t, %1; cvt.s32.s8 %0, t;}")                              \
  ROW(r, r, "cvt.sat.s8.s32 %0, %1;")                                                         \
  ROW(r, r, "cvt.sat.u16.u32 %0, %1;")                                                        \
  ROW(r, r, "cvt.rn.f32.s32 %0, %1;")                                                         \
  ROW(r, r, "cvt.rz.f32.u32 %0, %1;")                                                         \
  ROW(r, l, "cvt.rn.f32.u64 %0, %1;")                                                         \
  ROW(r, l, "cvt.rp.f32.s64 %0, %1;")                                                         \
  ROW(l, l, "cvt.rn.f64.s64 %0, %1;")                                                         \
  ROW(r, r, "cvt.rzi.s32.f32 %0, %1;")                                                        \
  ROW(r, r, "cvt.rni.s32.f32 %0, %1;")                                                        \
  ROW(r, r, "cvt.rmi.u32.f32 %0, %1;")                                                        \
  ROW(l, r, "cvt.rpi.s64.f32 %0, %1;")                                                        \
  ROW(r, l, "cvt.rzi.s32.f64 %0, %1;")                                                        \
  ROW(r, r, "cvt.rni.f32.f32 %0, %1;")                                                        \
  ROW(r, l, "cvt.rn.f32.f64 %0, %1;")                                                         \
  ROW(r, l, "cvt.rz.f32.f64 %0, %1;")                                                         \
  ROW(l, r, "cvt.f64.f32 %0, %1;")                                                            \
  ROW(h, r, "cvt.rn.f16.f32 %0, %1;")                                                         \
  ROW(h, r, "cvt.rz.f16.f32 %0, %1;")                                                         \
  ROW(r, h, "cvt.f32.f16 %0, %1;")                                                            \
  ROW(h, r, "cvt.rn.bf16.f32 %0, %1;")                                                        \
  ROW(r, h, "cvt.f32.bf16 %0, %1;")                                                           \
  ROW(r, r, "cvt.rn.bf16x2.f32 %0, %1, %2;")                                                  \
  ROW(r, r, "cvt.rz.bf16x2.f32 %0, %1, %2;")                                                  \
  ROW(r, r, "cvt.rn.relu.bf16x2.f32 %0, %1, %2;")                                             \
  ROW(r, r, "cvt.rn.f16x2.f32 %0, %1, %2;")                                                   \
  ROW(r, r, "cvt.rna.tf32.f32 %0, %1;")                                                       \
  ROW(h, r, "cvt.rn.f16.s32 %0, %1;")                                                         \
  ROW(r, h, "cvt.rzi.s32.f16 %0, %1;")                                                        \
  ROW(r, r, "shfl.sync.bfly.b32 %0, %1, 3, 31, -1;")                                          \
  ROW(r, r, "{.reg .pred p; shfl.sync.up.b32 %0|p, %1, 2, 0, -1; @!p mov.u32 %0, 77;}")       \
  ROW(r, r, "{.reg .pred p; shfl.sync.down.b32 %0|p, %1, 5, 0x181f, -1; @!p mov.u32 %0, 7;}") \
  ROW(r, r, "shfl.sync.idx.b32 %0, %1, 6, 0x181f, -1;")                                       \
  ROW(r, r, "{.reg .pred p; setp.lt.s32 p, %1, %2; vote.sync.ballot.b32 %0, p, -1;}")         \
  ROW(r, r,                                                                                   \
      "{.reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.all.pred p, p, -1;\n"                   \
      "selp.u32 %0, 1, 0, p;}")                                                               \
  ROW(r, r, "match.any.sync.b32 %0, %1, -1;")                                                 \
  ROW(r, r, "redux.sync.add.s32 %0, %1, -1;")                                                 \
  ROW(r, r, "redux.sync.max.s32 %0, %1, -1;")                                                 \
  ROW(r, r, "redux.sync.xor.b32 %0, %1, -1;")                                                 \
  ROW(r, r, "mov.u32 %0, %%laneid;")                                                          \
  ROW(r, r, "mov.u32 %0, %%lanemask_lt;")                                                     \
  ROW(r, r, "{.reg .u32 t; mov.u32 t, %%ntid.x; mov.u32 %0, %%tid.x; mad.lo.u32 %0, t, 100, %0;}")

/// Rows of a whole warp: four results of each lane, of registers a0 to a3, b0, b1 and c0 to c3 that hold
/// small numbers of the type, and of its row in shared memory.
#define WARP_ROWS(ROW)                                                                                \
  ROW(bf16, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];")                       \
  ROW(bf16, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];")                 \
  ROW(bf16, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%4]; mov.u32 %2, 0; mov.u32 %3, 0;") \
  ROW(bf16,                                                                                           \
      "{.reg .b32 z; mov.u32 z, 0; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%4];\n"      \
      "mov.u32 %1, z; mov.u32 %2, z; mov.u32 %3, z;}")                                                \
  ROW(bf16,                                                                                           \
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%4], {%5, %6, %7, %8}; bar.warp.sync -1;\n"    \
      "ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];")                                                     \
  ROW(bf16,                                                                                           \
      "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%4], {%5, %6}; bar.warp.sync -1;\n"                  \
      "ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];")                                                     \
  ROW(bf16,                                                                                           \
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%5, %6, %7, %8},\n"     \
      "{%9, %10}, {%11, %12, %13, %14};")                                                             \
  ROW(bf16,                                                                                           \
      "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%5, %6}, {%9},\n"        \
      "{%11, %12, %13, %14};")                                                                        \
  ROW(f16,                                                                                            \
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%5, %6, %7, %8},\n"       \
      "{%9, %10}, {%11, %12, %13, %14};")                                                             \
  ROW(f16,                                                                                            \
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%5, %6}, {%9},\n"          \
      "{%11, %12, %13, %14};")                                                                        \
  ROW(f16,                                                                                            \
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%5, %6, %7, %8}, {%9, %10},\n"    \
      "{%7, %8}; mov.u32 %2, 0; mov.u32 %3, 0;")                                                      \
  ROW(f16,                                                                                            \
      "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%5, %6}, {%9}, {%7, %8};\n"        \
      "mov.u32 %2, 0; mov.u32 %3, 0;")                                                                \
  ROW(tf32,                                                                                           \
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%5, %6, %7, %8},\n"      \
      "{%9, %10}, {%11, %12, %13, %14};")                                                             \
  ROW(tf32,                                                                                           \
      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%5, %6}, {%9},\n"        \
      "{%11, %12, %13, %14};")

#define TEXT_OF(to, from, text) text,
const char* const kRows[] = {ROWS(TEXT_OF)};
#undef TEXT_OF
#define TEXT_OF(type, text) text,
const char* const kWarpRows[] = {WARP_ROWS(TEXT_OF)};
#undef TEXT_OF
constexpr int kRowCount = sizeof kRows / sizeof *kRows, kWarpRowCount = sizeof kWarpRows / sizeof *kWarpRows;
constexpr int kLanes = 32;

using h = uint16_t;
using r = uint32_t;
using l = uint64_t;

__global__ void scalar_table(const uint64_t* operands, int count, uint64_t* results) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kLanes) {
    const uint64_t x = operands[3 * i], y = operands[3 * i + 1], z = operands[3 * i + 2];
    uint64_t* to = results + i;
#define EXECUTE(to_type, from_type, text)                                                     \
  {                                                                                           \
    to_type d = 0;                                                                            \
    PTX(text, OUT(#to_type, d), IN(#from_type, static_cast<from_type>(x)),                    \
        IN(#from_type, static_cast<from_type>(y)), IN(#from_type, static_cast<from_type>(z))) \
    *to = d;                                                                                  \
    to += count;                                                                              \
  }
    ROWS(EXECUTE)
#undef EXECUTE
  }
}

enum Element { bf16, f16, tf32 };

/// A small whole number as the bits of a type; 16-bit ones twice.
__device__ uint32_t small(Element type, int value) {
  const float number = static_cast<float>(value);
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  if (type == tf32) return bits;
  const uint32_t half =
      value == 0     ? 0
      : type == bf16 ? bits >> 16
                     : (bits >> 16 & 0x8000) | ((bits >> 23 & 0xff) - 112) << 10 | (bits >> 13 & 0x3ff);
  return half << 16 | half;
}

struct Rows {
  alignas(16) uint32_t words[kLanes][4];
};

__global__ void warp_table(uint32_t* results) {
  auto& shared = ladder::shared_storage<Rows>();
  const int lane = static_cast<int>(threadIdx.x);
  int row = 0;
#define EXECUTE(type, text)                                                                                 \
  {                                                                                                         \
    for (int i = 0; i < 4; ++i)                                                                             \
      shared.words[lane][i] =                                                                               \
          static_cast<uint32_t>(lane * 8 + 2 * i) | static_cast<uint32_t>(lane * 8 + 2 * i + 1) << 16;      \
    __syncwarp();                                                                                           \
    uint32_t a[6], d[4];                                                                                    \
    float c[4];                                                                                             \
    for (int i = 0; i < 6; ++i) a[i] = small(type, (lane * 7 + i * 5 + row) % 9 - 4);                       \
    for (int i = 0; i < 4; ++i) c[i] = static_cast<float>((lane * 3 + i) % 13 - 6);                         \
    const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(shared.words[lane]));                    \
    PTX_4(text, OUT("r", d[0]), OUT("r", d[1]), OUT("r", d[2]), OUT("r", d[3]), IN("r", at), IN("r", a[0]), \
          IN("r", a[1]), IN("r", a[2]), IN("r", a[3]), IN("r", a[4]), IN("r", a[5]), IN("f", c[0]),         \
          IN("f", c[1]), IN("f", c[2]), IN("f", c[3]))                                                      \
    for (int i = 0; i < 4; ++i) results[(row * kLanes + lane) * 4 + i] = d[i];                              \
    __syncwarp();                                                                                           \
    ++row;                                                                                                  \
  }
  WARP_ROWS(EXECUTE)
#undef EXECUTE
}

/// Numbers that show what is special: of integers, of floats, doubles, fp16 and bf16.
std::vector<uint64_t> make_operands() {
  const uint64_t kSpecial[] = {0,
                               1,
                               2,
                               7,
                               31,
                               32,
                               33,
                               255,
                               0x7f,
                               0x80,
                               0x7fff,
                               0x8000,
                               0xffff,
                               0x10000,
                               0x7fffffff,
                               0x80000000,
                               0xffffffff,
                               0x3f8000003f800000,
                               0x3ff0000000000000,
                               0x3c003c00,
                               0xbf80bf80,
                               0x3fc00000,
                               0x40200000,
                               0xc0200000,
                               0x4f000000,
                               0x4f7fffff,
                               0xcf000001,
                               0x7f800000,
                               0xff800000,
                               0x7fc00000,
                               0x00000123,
                               0x80400000,
                               0x33800000,
                               0x477fe000,
                               0x477ff000,
                               0x387fc000,
                               0x3effffff,
                               0x4b000001,
                               0x7ff0000000000000,
                               0xfff8000000000001,
                               0x0000000000000123,
                               0x43e0000000000000,
                               0xc1e0000000200000,
                               0x7bff7bff,
                               0x04000400,
                               0x03ff0001,
                               0x7c007c00,
                               0xfc00fc00,
                               0x7e007e00};
  std::vector<uint64_t> operands(kSpecial, kSpecial + sizeof kSpecial / sizeof *kSpecial);
  uint64_t state = 0x9e3779b97f4a7c15;
  const auto random = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  };
  std::vector<uint64_t> triples;
  for (int i = 0; i < 20 * kLanes; ++i) {
    for (int j = 0; j < 3; ++j)
      triples.push_back(random() % 3 ? operands[random() % operands.size()] : random());
  }
  return triples;
}

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string hash_of(const std::vector<uint64_t>& values) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const uint64_t value : values)
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (value >> 8 * byte & 0xff)) * 0x100000001b3;
  return hex(hash);
}

std::string in_one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

}  // namespace

TEST_CASE("each instruction gives what expected_table.txt says, bit for bit") {
  if (!ladder::on_cpu_device()) {
    try {
      if (ladder::device_info().compute_capability < ladder::kHopper) SKIP("needs a Hopper GPU");
    } catch (const ladder::BadInput& missing) {
      SKIP(missing.what());
    }
  }
  const std::vector<uint64_t> triples = make_operands();
  const int count = static_cast<int>(triples.size() / 3);
  ladder::DeviceBuffer<uint64_t> operands(triples), results(static_cast<size_t>(kRowCount) * count);
  ladder::DeviceBuffer<uint32_t> warp_results(size_t{kWarpRowCount} * kLanes * 4);
  ladder::launch(scalar_table, {.name = "scalar_table", .grid = 1, .block = kLanes}, operands.data(), count,
                 results.data());
  ladder::launch(warp_table, {.name = "warp_table", .grid = 1, .block = kLanes, .shared_bytes = sizeof(Rows)},
                 warp_results.data());
  const auto scalars = ladder::download(results.data(), results.size());
  const auto warps = ladder::download(warp_results.data(), warp_results.size());

  std::map<std::string, std::vector<uint64_t>> rows;
  for (int row = 0; row < kRowCount; ++row)
    rows[in_one_line(kRows[row])].assign(scalars.begin() + row * count, scalars.begin() + (row + 1) * count);
  for (int row = 0; row < kWarpRowCount; ++row)
    rows[in_one_line(kWarpRows[row])].assign(warps.begin() + row * kLanes * 4,
                                             warps.begin() + (row + 1) * kLanes * 4);

  if (const char* const path = std::getenv("LADDER_PTX_RESULTS")) {
    std::ofstream file(path);
    for (const auto& [text, values] : rows) file << hash_of(values) << " " << text << "\n";
    for (const auto& [text, values] : rows) {
      file << "\n" << text << "\n";
      for (size_t i = 0; i < values.size(); ++i) {
        if (values.size() == static_cast<size_t>(count))
          file << hex(triples[3 * i]) << " " << hex(triples[3 * i + 1]) << " " << hex(triples[3 * i + 2])
               << ": ";
        file << hex(values[i]) << "\n";
      }
    }
  }
  std::map<std::string, std::string> expected;
  std::ifstream file(LADDER_PTX_EXPECTED);
  for (std::string hash, text; file >> hash && std::getline(file >> std::ws, text);) expected[text] = hash;
  CHECK(expected.size() == rows.size());
  for (const auto& [text, values] : rows) {
    CAPTURE(text);
    CHECK(hash_of(values) == expected[text]);
  }
}
