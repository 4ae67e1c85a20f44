/// @file
/// Exercise 02.c: what wgmma must know of a tile.
///
/// A is a SwizzledTile<rows, 128> in shared memory, with k contiguous. A wgmma takes 64 of its rows and 16 of
/// its columns, which a descriptor of 64 bits names:
///   bits 0-13   where they begin: the address without its upper bits (& 0x3FFFF), in units of 16 bytes
///   bits 16-29  of no use with this swizzle and k contiguous: 1
///   bits 32-45  from eight rows to the next eight, in units of 16 bytes
///   bits 62-63  the swizzle: 1 is that of 128 bytes
#pragma once
#include <cstdint>

namespace exercise {

/// Of rows `row` .. row + 63 and columns k .. k + 15 of the tile that begins at the shared address `tile`.
/// row is a multiple of 8, k one of 16.
// Read 02_tiled/tensor_cores.md and common/ptx/wgmma.cuh.
// >>> yours
constexpr uint64_t descriptor(uint32_t tile, int rows, int row, int k) {
  const uint32_t start = tile + k / 64 * rows * 128 + row * 128 + k % 64 * 2;
  return uint64_t{(start & 0x3FFFF) >> 4} | uint64_t{1} << 16 | uint64_t{1024 / 16} << 32 | uint64_t{1} << 62;
}
// <<<

}  // namespace exercise
