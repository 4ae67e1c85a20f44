/// @file
/// Three ways to multiply a tile. A warpgroup multiplies kRows rows of A by the tile of B into registers.
///
/// All cores have the interface below. With wgmma and fma a warpgroup has 64 rows, each of its warps 16:
/// thread t of the warpgroup holds, for every 8 columns j, d[4j], d[4j+1] = C(row, 8j + 2*(t%4)),
/// C(row, ... + 1) with row = 16*(t/32) + t%32/4, and d[4j+2], d[4j+3] the same 8 rows below. This is the
/// accumulator of wgmma, which is that of mma.sync, four warps high: a strip of 16 rows for each warp. With
/// mma_sync a warp has several strips; each is laid out like that. fragment.cuh says where strips lie.
///
///   core.publish()       before the barrier after which other threads' tiles are multiplied
///   core.start(a, r, b, first)  d += a[r .. r+kRows-1][:] · b; the first of a tile overwrites d instead
///   core.finish<n>()     waits until at most n products are unfinished; finish() until none is
///   core.d               the sums of this thread; store_sums (epilogue.cuh) asks the core where they lie
#pragma once
#include "common/device/fma_core.cuh"
#include "common/device/mma_sync_core.cuh"
#include "common/device/wgmma_core.cuh"
