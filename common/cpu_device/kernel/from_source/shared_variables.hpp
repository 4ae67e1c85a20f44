/// @file
/// Variables that a kernel declares with `__shared__`: which piece of a block's shared memory each has.
///
/// Dynamic shared memory comes first in a block's window, as if it were alone. A variable gets its place
/// behind it when a thread first executes the declaration; all blocks of a launch have it at the same place.
/// Behind each is a gap, in which an access is an index that is too large.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/kernel/engine.hpp"

namespace cpu_device {

/// What a declaration says. One object for each declaration and template instantiation, of static lifetime.
struct SharedVariable {
  static constexpr unsigned kMaxDimensions = 4;

  const char* name = nullptr;  ///< once it was needed
  size_t bytes = 0, alignment = 1;
  size_t element_bytes = 0;  ///< of an array; else as `bytes`
  unsigned dimensions = 0;
  size_t extents[kMaxDimensions] = {};
  std::atomic<unsigned> number = 0;  ///< in the process, from 1; 0 before it is first needed
};

/// Where the variable lies in the running block. @throws outside of a kernel
void* shared_variable(SharedVariable&, const char* name, Location where);
/// Dynamic shared memory of the running block, declared by this name. Its `bytes` are those of an element.
void* dynamic_shared_memory(SharedVariable&, const char* name, Location where);
/// Lets the kernels of this program declare such variables: their blocks reserve memory for them.
void reserve_shared_variables();

/// The places in one launch. Any thread may call it.
class SharedLayout {
 public:
  static constexpr size_t kMaxStaticBytes = 48 * 1024;  ///< of all variables of a kernel
  static constexpr size_t kGranule = 16;

  /// @param dynamic_bytes of each block
  explicit SharedLayout(size_t dynamic_bytes);
  SharedLayout(const SharedLayout&) = delete;

  /// Bytes of a block's window that may be used one day: all that a block allocates.
  size_t capacity() const { return capacity_; }
  bool has_variables() const { return capacity_ > dynamic_bytes_; }
  /// The end of what has been given out.
  size_t end();
  /// @returns the variable's offset; capacity() where no room is left for it
  size_t place(SharedVariable&);
  void name_dynamic(const SharedVariable&);
  /// Dynamic shared memory is a struct, as the line at `where` calls it.
  void name_storage(NameOfByte, Location where);
  /// Is each of these bytes one of dynamic shared memory or of a variable?
  bool covers(size_t offset, size_t bytes) const;
  /// "tile[3][1]", "smem.b[2].panels[1][32][0]"; empty where nothing has a name.
  std::string name_of(size_t offset);
  /// The same of a variable that is a barrier, or an array of barriers; else empty.
  std::string name_of_barrier(size_t offset);
  /// "reaches 4 bytes beyond the end of tile, which has 1024 bytes": of bytes that it does not cover.
  std::string describe_overrun(size_t offset, size_t bytes);

 private:
  struct Place {
    const SharedVariable* variable;
    size_t offset;
  };
  void cover(size_t offset, size_t bytes);

  const size_t dynamic_bytes_;
  size_t capacity_ = 0, end_ = 0, static_bytes_ = 0;
  std::mutex mutex_;
  std::vector<Place> places_;      ///< by offset
  std::vector<uint8_t> granules_;  ///< of every 16 bytes, how many of the first are covered
  const SharedVariable* dynamic_ = nullptr;
  bool is_dynamic_ambiguous_ = false;  ///< several names for it
  std::atomic<NameOfByte> storage_ = nullptr;
  Location storage_at_;
  std::string storage_name_;  ///< "smem", once it was needed
};

}  // namespace cpu_device
