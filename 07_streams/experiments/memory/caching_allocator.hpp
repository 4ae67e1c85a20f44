/// @file
/// A caching allocator as deep-learning frameworks have one, in its simplest form: for experiment
/// `fragments`.
#pragma once
#include <cstddef>
#include <map>

namespace lesson07 {

/// Takes segments from cudaMalloc, cuts pieces from them, and keeps what is freed for the next request: the
/// smallest free piece that is large enough. Free neighbours are joined, but only within a segment: two
/// segments are two allocations, and nothing makes them one.
class CachingAllocator {
 public:
  /// @param budget_bytes of all segments together: what the device has
  /// @param segment_bytes of a segment for small requests; a larger one gets a segment of its own
  /// @param gives_back whether segments that are free as a whole go back to the device when there is no room
  CachingAllocator(size_t budget_bytes, size_t segment_bytes, bool gives_back = false);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// @returns nullptr if there is no room
  void* allocate(size_t bytes);
  void free(void* memory);

  size_t reserved() const { return reserved_; }  ///< bytes of all segments
  size_t used() const { return used_; }
  size_t largest_free() const;  ///< bytes of the largest free piece

 private:
  struct Piece {
    size_t bytes;
    bool is_free, begins_segment;
  };
  using Pieces = std::map<std::byte*, Piece>;

  std::byte* take(size_t bytes);
  bool add_segment(size_t bytes);
  void give_back_free_segments();
  /// Whether the piece is all of its segment.
  bool is_whole(Pieces::const_iterator piece) const;

  const size_t budget_, segment_bytes_;
  const bool gives_back_;
  size_t reserved_ = 0, used_ = 0;
  Pieces pieces_;  ///< by address
};

}  // namespace lesson07
