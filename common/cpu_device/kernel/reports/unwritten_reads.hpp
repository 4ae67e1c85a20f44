/// @file
/// Reads of shared memory that nothing was written to. Legal, as long as the values reach no result: so they
/// are no failures, but explain one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "common/cpu_device/base/location.hpp"

namespace cpu_device {

struct Block;
class Cluster;

/// Of the clusters that one OS thread runs, later of a launch: the first of either kind.
class UnwrittenReads {
 public:
  /// Where a cluster begins.
  void begin(uint64_t cluster) {
    cluster_ = cluster;
    narrow_copies_.clear();
  }
  /// Somebody reads these 16 bytes of a view of shared memory.
  /// @param of_first_row of a product's rows or columns, which lies within the matrix: others may lie beyond
  void note(Block& block, size_t offset, const std::byte* view, const char* what, Location where,
            bool of_first_row = false) {
    if (is_poison(view + offset) || is_poison(view + offset + kHalf))
      remember(block, offset, view + offset, what, where, of_first_row);
  }
  /// A cp.async of fewer than 16 bytes to this place was issued.
  void note_narrow_copy(unsigned block, size_t offset, uint32_t bytes, Location where) {
    narrow_copies_[{block, offset / kChunk}] = {bytes, where};
  }
  /// A load of shared memory that nobody has written.
  void note_load(const Block& block, size_t offset, const void* return_address);
  /// A wgmma reads the same bytes for several elements, as a descriptor says that does not fit its operand.
  void note_overlap(const std::string& text) {
    if (overlap_.text.empty()) overlap_ = {cluster_, text};
  }
  /// Where a cluster has ended: says of its first unwritten read whether somebody has written there since.
  void end(Cluster&);
  void add(const UnwrittenReads& other);
  /// A sentence; empty if there is none. What was written and not published comes first, then what surely
  /// reaches a sum.
  const std::string& text() const {
    for (const First* first : {&unpublished_, &unwritten_first_row_, &unwritten_})
      if (!first->text.empty()) return first->text;
    return overlap_.text;
  }

 private:
  struct First {
    uint64_t cluster = 0;
    std::string text;
    unsigned block = 0;     ///< of the cluster,
    size_t offset = 0;      ///< in its shared memory
    bool is_ended = false;  ///< see end()
  };
  struct NarrowCopy {
    uint32_t bytes = 0;
    Location where;
  };
  static constexpr size_t kChunk = 16, kHalf = 8;  ///< bytes that are read at a time; half of them

  static bool is_poison(const std::byte* half);
  void remember(Block& block, size_t offset, const std::byte* seen, const char* what, Location where,
                bool of_first_row);
  void end(First&, Cluster&) const;
  std::string explain_narrow_copy(unsigned block, size_t offset, const std::byte* chunk) const;

  uint64_t cluster_ = 0;
  First unwritten_, unwritten_first_row_, unpublished_, overlap_;
  std::map<std::pair<unsigned, size_t>, NarrowCopy> narrow_copies_;  ///< the last to each chunk of a block
};

}  // namespace cpu_device
