/// @file
/// TMA: what loads and stores check and count.
#include "common/cpu_device/kernel/engine_tma.hpp"

#include <cstring>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_global_memory.hpp"
#include "common/cpu_device/kernel/engine_reports.hpp"
#include "common/cpu_device/kernel/engine_shared_memory.hpp"

namespace cpu_device {
namespace {

constexpr uint32_t kAlignment = 128, kSwizzleAlignment = 1024;

TensorMap decode(Thread& thread, const void* map, const char* what, Location where) {
  TensorMap decoded;
  std::memcpy(&decoded, map, sizeof decoded);
  if (decoded.tag != kTensorMapTag) {
    thread.cluster.fail(thread, std::string(what) + ": the tensor map was not made by cuTensorMapEncodeTiled",
                        where);
  }
  return decoded;
}

/// TMA clips the box at the bounds of the tensor, but knows nothing of allocations.
void check_allocated(Thread& thread, const TmaBox& box, const char* what, Location where) {
  for (uint32_t r = 0; r < box.map.box_rows; ++r) {
    const TmaBox::Piece piece = box.inside(r);
    if (const std::string blame = blame_global_access(thread, piece.global, piece.bytes); !blame.empty()) {
      thread.cluster.fail(
          thread, print("%s: row %lld of the tensor ", what, static_cast<long long>(box.row) + r) + blame,
          where);
    }
  }
}

}  // namespace

TmaBox make_box(Thread& thread, const void* map, const void* shared, int column, int row, const char* what,
                Location where) {
  TmaBox box;
  box.map = decode(thread, map, what, where);
  box.column = column;
  box.row = row;
  box.shared_offset = shared_offset(thread, shared, box.shared_bytes(), what, where);
  const uint32_t alignment = box.map.swizzled ? kSwizzleAlignment : kAlignment;
  if (box.shared_offset % alignment) {
    thread.cluster.fail(
        thread,
        print("%s: shared memory + 0x%x is not aligned to %u bytes%s", what, box.shared_offset, alignment,
              box.map.swizzled ? ", as boxes with the 128-byte swizzle must be" : ""),
        where);
  }
  check_allocated(thread, box, what, where);
  return box;
}

void count_box(Thread& thread, const TmaBox& box, bool load, Location where) {
  Cluster& cluster = thread.cluster;
  ++cluster.totals().async_copies;
  AccessCounter& counter = cluster.accesses();
  for (uint32_t r = 0; r < box.map.box_rows; ++r) {
    const TmaBox::Piece piece = box.inside(r);
    counter.bulk_access(Space::global, reinterpret_cast<uintptr_t>(piece.global), piece.bytes,
                        /*write=*/!load);
    note_global_access(thread, piece.global, piece.bytes, /*write=*/!load, where);
  }
  counter.bulk_access(Space::shared, box.shared_offset, box.bytes(), /*write=*/load);
}

void count_copies_of_box(Cluster& cluster, const TmaBox& box, unsigned blocks) {
  for (unsigned i = 0; i < blocks; ++i)
    cluster.accesses().bulk_access(Space::shared, box.shared_offset, box.bytes(), /*write=*/true);
}

void tma_prefetch(const void* map, Location where) {
  decode(this_thread(where), map, "prefetch.tensormap", where);
}

}  // namespace cpu_device
