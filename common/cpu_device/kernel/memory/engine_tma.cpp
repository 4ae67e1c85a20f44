/// @file
/// TMA: what loads and stores check and count.
#include "common/cpu_device/kernel/engine_tma.hpp"

#include <algorithm>
#include <cstring>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_shared_memory.hpp"
#include "common/cpu_device/kernel/from_source/kernel_declaration.hpp"
#include "common/cpu_device/kernel/memory/engine_global_memory.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"

namespace cpu_device {
namespace {

constexpr uint32_t kPlainAlignment = 128, kSwizzleAlignment = 1024;

/// Not by memcmp: AddressSanitizer would stop it at the guards between the variables of a stack.
#ifdef CPU_DEVICE_ASAN
__attribute__((no_sanitize("address")))
#endif
bool are_same(const std::byte* one, const std::byte* other, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    if (one[i] != other[i]) return false;
  return true;
}

/// The parameter of the kernel of which the map at this place is a part; null if of none. Parameters lie on
/// each thread's stack, and are known by what is in them.
const MapParameter* parameter_around(const Thread& thread, const std::byte* map) {
  const auto is_on_stack = [&](const std::byte* begin) {
    return begin >= thread.observed.stack_begin && begin + sizeof(TensorMap) <= thread.observed.stack_end;
  };
  for (const MapParameter& parameter : thread.cluster.kernel().map_parameters) {
    for (const size_t this_one : parameter.offsets) {
      const bool all_agree =
          std::all_of(parameter.offsets.begin(), parameter.offsets.end(), [&](const size_t offset) {
            const std::byte* other = map - this_one + offset;
            return is_on_stack(other) && are_same(other, &parameter.value[offset], sizeof(TensorMap));
          });
      if (all_agree) return &parameter;
    }
  }
  return nullptr;
}

/// TMA reads a map where a kernel's parameters, constants or global memory are. A parameter is there if it is
/// __grid_constant__; else the kernel makes a copy when it takes the address, in local memory.
void check_place_of_map(Thread& thread, const void* map, const char* what, Location where) {
  constexpr const char* kAllowed =
      "; TMA reads it from a __grid_constant__ parameter, constant or global memory only";
  Cluster& cluster = thread.cluster;
  const Unobserved unobserved;
  const auto* bytes = static_cast<const std::byte*>(map);
  if (is_shared(map)) {
    cluster.fail(thread, std::string(what) + ": the tensor map lies in shared memory" + kAllowed, where);
  }
  if (bytes < thread.observed.stack_begin || bytes >= thread.observed.stack_end) return;
  const MapParameter* parameter = parameter_around(thread, bytes);
  if (!parameter) {
    cluster.fail(thread, std::string(what) + ": the tensor map lies in a local variable" + kAllowed, where);
  }
  const KernelDeclaration& declaration = declaration_of(cluster.kernel().function);
  if (!declaration.is_known || parameter->index >= declaration.parameters.size()) return;
  const std::string& text = declaration.parameters[parameter->index];
  if (text.find("__grid_constant__") != std::string::npos) return;
  cluster.fail(thread,
               std::string(what) + ": the tensor map lies in the parameter '" + name_of_parameter(text) +
                   "' of the kernel at " + declaration.place +
                   ", which is not __grid_constant__; on a GPU each thread then has a copy of it in local "
                   "memory, where TMA cannot read it",
               where);
}

TensorMap decode(Thread& thread, const void* map, const char* what, Location where) {
  TensorMap decoded;
  std::memcpy(&decoded, map, sizeof decoded);
  if (decoded.tag != kTensorMapTag) {
    thread.cluster.fail(thread, std::string(what) + ": the tensor map was not made by cuTensorMapEncodeTiled",
                        where);
  }
  check_place_of_map(thread, map, what, where);
  return decoded;
}

/// TMA clips the box at the bounds of the tensor, but knows nothing of allocations.
void check_allocated(Thread& thread, const TmaBox& box, const char* what, Location where) {
  for (uint32_t r = 0; r < box.rows(); ++r) {
    const TmaBox::Piece piece = box.inside(r);
    if (const std::string blame = blame_global_access(thread, piece.global, piece.bytes); !blame.empty()) {
      thread.cluster.fail(thread,
                          box.is_bulk
                              ? print("%s: its %u bytes ", what, box.bytes()) + blame
                              : print("%s: row %lld of the tensor ", what,
                                      static_cast<long long>(box.coordinates[1]) + r % box.map.box[1]) +
                                    blame,
                          where);
    }
  }
}

}  // namespace

TmaBox make_box(Thread& thread, const void* map, const void* shared, const int* coordinates,
                unsigned dimensions, const char* what, Location where) {
  TmaBox box;
  box.map = decode(thread, map, what, where);
  if (dimensions != box.map.dimensions) {
    thread.cluster.fail(thread,
                        print("%s of %u dimension%s with a tensor map of %u", what, dimensions,
                              dimensions == 1 ? "" : "s", box.map.dimensions),
                        where);
  }
  std::copy_n(coordinates, dimensions, box.coordinates);
  if (const std::string text = explain_box_over_end(thread, box, shared); !text.empty())
    thread.cluster.fail(thread, what + text, where);
  box.shared_offset = shared_offset(thread, shared, box.shared_bytes(), what, where);
  const bool is_wide = box.map.swizzle_bits + kTmaChunkBytes == kSwizzleRowBytes;
  const uint32_t alignment = is_wide ? kSwizzleAlignment : kPlainAlignment;
  if (box.shared_offset % alignment) {
    thread.cluster.fail(
        thread,
        print("%s: shared memory + 0x%x is not aligned to %u bytes%s", what, box.shared_offset, alignment,
              is_wide ? ", after which the 128-byte swizzle repeats: elsewhere its pattern is shifted" : ""),
        where);
  }
  check_allocated(thread, box, what, where);
  return box;
}

TmaBox make_bulk_box(Thread& thread, const void* global, const void* shared, uint32_t bytes, Location where) {
  constexpr const char* kCopy = "bulk copy";
  if (bytes % kTmaChunkBytes || !bytes)
    thread.cluster.fail(thread, print("bulk copy of %u bytes, which is no multiple of 16", bytes), where);
  TmaBox box = make_bulk_box(global, bytes);
  box.shared_offset = shared_offset(thread, shared, bytes, kCopy, where);
  if (box.shared_offset % kTmaChunkBytes || reinterpret_cast<uintptr_t>(global) % kTmaChunkBytes) {
    thread.cluster.fail(thread,
                        std::string("bulk copy: the address in ") +
                            (box.shared_offset % kTmaChunkBytes ? "shared" : "global") +
                            " memory is not aligned to 16 bytes",
                        where);
  }
  check_allocated(thread, box, kCopy, where);
  return box;
}

void count_box(Thread& thread, const TmaBox& box, bool load, Location where, bool is_atomic) {
  Cluster& cluster = thread.cluster;
  ++cluster.totals().async_copies;
  AccessCounter& counter = cluster.accesses();
  for (uint32_t r = 0; r < box.rows(); ++r) {
    const TmaBox::Piece piece = box.inside(r);
    counter.bulk_access(Space::global, reinterpret_cast<uintptr_t>(piece.global), piece.bytes,
                        /*write=*/!load);
    note_global_access(thread, piece.global, piece.bytes, /*write=*/!load, where, is_atomic,
                       box.is_bulk ? nullptr : &box);
  }
  counter.bulk_access(Space::shared, box.shared_offset, box.bytes(), /*write=*/load);
}

void count_copies_of_box(Cluster& cluster, const TmaBox& box, unsigned blocks) {
  for (unsigned i = 0; i < blocks; ++i)
    cluster.accesses().bulk_access(Space::shared, box.shared_offset, box.bytes(), /*write=*/true);
}

void MovedTiles::note_box(const Block& block, const Thread& issuer, const TmaBox& box, bool is_load) {
  constexpr size_t kMostBoxes = 1 << 16;
  constexpr unsigned kThreadsOfBlock = 1024;  // at most
  if (box.is_bulk || box.map.dimensions != 2 || has_too_many_boxes) return;
  const Unobserved unobserved;
  if (boxes.size() == kMostBoxes) {
    boxes.clear();
    has_too_many_boxes = true;
    return;
  }
  const auto number_of = [](const Block& one) {
    const Uint3 at = one.ids.index;
    return (at.z * one.ids.grid_dim.y + at.y) * one.ids.grid_dim.x + at.x;
  };
  boxes.push_back({number_of(block), number_of(*issuer.block) * kThreadsOfBlock + issuer.ids.rank,
                   box.map.base, box.coordinates[1], box.coordinates[0], box.map.box[1], box.map.box[0],
                   is_load});
}

void tma_prefetch(const void* map, Location where) {
  decode(this_thread(where), map, "prefetch.tensormap", where);
}

}  // namespace cpu_device
