/// @file
/// What kernels have done, for who explains a wrong result.
#pragma once
#include <array>
#include <functional>
#include <string>
#include <vector>

namespace ladder {

/// What the launches since the last call of take_work_of_kernels() have done, as far as the device sees it.
struct WorkOfKernels {
  bool lacks_products = false;  ///< of wgmma and mma.sync all, though one of the kernels has had some before
  bool stages = true;           ///< perhaps: a thread has written shared memory, or races were not checked
  /// Where sums were stored to shared memory, if that is one line of the lesson's; else empty.
  std::string (*staged_at)() = nullptr;
  /// Have boxes of TMA loads covered all columns of this matrix?
  bool (*has_loaded_columns)(const void* matrix, int columns) = nullptr;
  /// "wgmma at gemm.cuh:35", without the line where there are several; empty if there was none.
  std::string (*multiplied_by)() = nullptr;
  /// Have several warpgroups of a block taken both operands of wgmma from the same places in shared memory,
  /// and from no others?
  bool (*warpgroups_share_operands)() = nullptr;
  /// The leading and the stride offset, in bytes, that all matrix descriptors of wgmma have whose operand has
  /// k contiguous, or has not, with the 128-byte swizzle; ~0u where they differ, or wgmma ignores it.
  std::array<unsigned, 2> (*offsets_of_descriptors)(bool has_k_contiguous) = nullptr;
  /// A sentence about a block that ended with filled slots for which nobody waited; empty if there is none.
  std::string (*unread_fills)() = nullptr;
  /// Which array an access leaves that its line names; empty if none does, or races were not checked.
  std::string (*left_array)() = nullptr;
  /// A sentence about warps of which no TMA store has read what they staged, though one has of others.
  std::string (*unsent_sums)() = nullptr;
  /// Where no cp.async of a line has read its source: a sentence, with the line; else empty.
  std::string (*zero_copies)() = nullptr;
  /// Of a matrix of bf16 that one launch has written: where two warps of a block have stored the same
  /// element.
  std::string (*stored_twice)(const void* matrix, int columns) = nullptr;
  /// The same of TMA stores that lie outside it: whether with row and column exchanged they would have
  /// written all that was never written.
  std::string (*exchanged_store)(const void* matrix, int rows, int columns,
                                 const std::function<bool(int row, int column)>& is_unwritten) = nullptr;
  /// Where there was one launch: what its block lacks of what the kernel's source says. Else empty.
  std::string (*explain_block)() = nullptr;
  /// Of that launch, if it was one, its clusters are blocks, and its kernel is not persistent; else 0.
  unsigned grid[3] = {};
  std::string (*launched_at)() = nullptr;
  /// The block of that launch that has written the byte last; false if none has, or that is not known.
  bool (*find_writer)(const void* address, unsigned (&block)[3]) = nullptr;
  /// A box that TMA has brought to a block's shared memory, or has stored from there.
  struct MovedBox {
    unsigned block, thread;  ///< numbers in the grid: of the block whose shared memory it is, of who sent it
    const void* matrix;
    int row, column;  ///< in the matrix: the tensor's dimensions 1 and 0
    int rows, columns;
    bool is_load;
  };
  /// Boxes of matrices in that launch, if it was one, those of a thread in its order; empty if they are too
  /// many.
  std::vector<MovedBox> (*moved_boxes)() = nullptr;
  unsigned blocks_of_cluster = 1;  ///< in that launch, of one row of the grid; 1 where they form no row
};

}  // namespace ladder
