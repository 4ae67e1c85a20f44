/// @file
/// cudaMallocAsync and its relatives. While a stream captures they become nodes: the memory is the graph's,
/// from the capture until nothing can launch the graph any more, and every launch finds it as NaN.
#include <algorithm>
#include <cstring>

#include "common/cpu_device/api/host_calls.hpp"
#include "common/cpu_device/observe/source_lines.hpp"
#include "common/cpu_device/streams/graph_capture.hpp"
#include "common/cpu_device/streams/memory_pool.hpp"

namespace cpu_device {
namespace {

CUmemPoolHandle_st* default_pool(int number) {
  Device& device = streams().device(number);
  if (!device.default_pool) {
    device.default_pool = new CUmemPoolHandle_st(number, 0);
    streams().pools.insert(device.default_pool);
  }
  return device.default_pool;
}

CUmemPoolHandle_st* find_pool(cudaMemPool_t pool) {
  return streams().pools.count(pool) && !pool->is_destroyed ? pool : nullptr;
}

/// Of a call in a header, which may be a helper's.
std::vector<uintptr_t> callers_of_helper(const Location& where) {
  return std::string_view(where.file).ends_with(".hpp") ? calling_now() : std::vector<uintptr_t>{};
}

/// Called when nothing can launch the graph any more: its memory goes back to the pool.
void release_memory_of_graph(void* memory) {
  StreamEngine& engine = streams();
  const AllocationPointer allocation = engine.memory.find_begin(memory);
  // After the launches that have ended, of which the host knows by now.
  allocation->pool->give_back(allocation->begin, {}, engine.last_id());
  engine.memory.free(allocation, engine.last_id() + 1, /*is_over=*/false);
}

/// The first allocation of a graph that the graph does not free; null if there is none.
AllocationPointer left_allocated(const CUgraph_st& graph) {
  for (const auto& object : graph.user_objects) {
    if (object->destroy != release_memory_of_graph) continue;
    const AllocationPointer allocation = streams().memory.find_begin(object->data);
    if (allocation->of_graph == Allocation::OfGraph::allocated) return allocation;
  }
  return nullptr;
}

cudaError_t allocate(void** pointer, size_t bytes, CUmemPoolHandle_st* pool, CUstream_st* stream,
                     Location where) {
  if (!pointer) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (!pool || !stream) return cudaErrorInvalidResourceHandle;
  if (!bytes) return cudaSuccess;
  StreamEngine& engine = streams();
  std::byte* memory = pool->allocate(bytes, engine.known_to_next(*stream));
  if (!memory) return cudaErrorMemoryAllocation;
  const AllocationPointer allocation = engine.memory.add(
      MemoryKind::device, memory, bytes, pool->device,
      (stream->capture ? "allocated by a graph captured on " : "allocated on ") + stream->name,
      engine.last_id());
  if (stream->capture) {
    allocation->of_graph = Allocation::OfGraph::allocated;
    stream->capture->graph->user_objects.push_back(
        std::make_shared<UserObject>(memory, release_memory_of_graph));
  }
  allocation->pool = pool;
  allocation->where = where;
  *pointer = memory;
  Work work{"allocation", "", where};
  work.callers = callers_of_helper(where);
  work.run = [memory, bytes, name = allocation->describe()](Operation&) {
    poison_pool_memory(memory, bytes, name);
  };
  work.touches = {{memory, bytes, true}};
  work.is_on_timeline = false;
  work.gives_back = true;
  engine.enqueue(*stream, std::move(work));
  return cudaSuccess;
}

cudaError_t release(void* pointer, CUstream_st* stream, Location where) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!pointer) return cudaSuccess;
  StreamEngine& engine = streams();
  const AllocationPointer allocation = engine.memory.find_begin(pointer);
  if (!allocation || allocation->kind != MemoryKind::device) {
    if (const AllocationPointer freed = engine.memory.find_freed(pointer))
      fail("cudaFreeAsync on " + stream->name + " frees memory that was freed before",
           freed->describe_free() + "\n  freed again at " + describe_place(where));
    return cudaErrorInvalidValue;
  }
  if (!allocation->pool) return cudaErrorInvalidValue;
  const bool captures = stream->capture != nullptr;
  if (allocation->of_graph != (captures ? Allocation::OfGraph::allocated : Allocation::OfGraph::no))
    return cudaErrorInvalidValue;
  Work work{"cudaFreeAsync", "", where};
  work.callers = callers_of_helper(where);
  std::byte* const memory = allocation->begin;
  const size_t bytes = allocation->bytes;
  work.run = [memory, bytes](Operation&) { poison_pool_memory(memory, bytes); };
  work.touches = {{memory, bytes, true}};
  work.is_on_timeline = false;
  work.gives_back = true;
  if (captures) {
    allocation->of_graph = Allocation::OfGraph::freed;
    engine.enqueue(*stream, std::move(work));
    return cudaSuccess;
  }
  work.enqueued = [pool = allocation->pool, memory](const Operation& operation) {
    pool->give_back(memory, operation.clock, operation.id);
  };
  engine.memory.free(allocation, engine.last_id() + 1, /*is_over=*/false);
  allocation->free = engine.enqueue(*stream, std::move(work));
  return cudaSuccess;
}

}  // namespace

void fail_if_memory_is_left(const CUgraph_st& graph) {
  if (const AllocationPointer left = left_allocated(graph))
    fail("a graph keeps " + left->describe() + ", allocated at " + describe_place(left->where) +
         ": the CPU device runs graphs only that free what they allocate");
}

}  // namespace cpu_device

using namespace cpu_device;

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream, DefaultStream meaning,
                            Location where) {
  return host_call("cudaMallocAsync", [&] {
    CUstream_st* found = streams().find(stream, meaning, current_device());
    return allocate(pointer, bytes, default_pool(found ? found->device : current_device()), found, where);
  });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream,
                                    DefaultStream meaning, Location where) {
  return host_call("cudaMallocFromPoolAsync", [&] {
    return allocate(pointer, bytes, find_pool(pool), streams().find(stream, meaning, current_device()),
                    where);
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream, DefaultStream meaning, Location where) {
  return destroying_call("cudaFreeAsync", [&] {
    return release(pointer, streams().find(stream, meaning, current_device()), where);
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return host_call("cudaMemPoolCreate", [&] {
    if (!pool || !properties || properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice)
      return cudaErrorInvalidValue;
    if (properties->location.id < 0 || properties->location.id >= device_count())
      return cudaErrorInvalidDevice;
    *pool = new CUmemPoolHandle_st(properties->location.id, properties->maxSize);
    streams().pools.insert(*pool);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return destroying_call("cudaMemPoolDestroy", [&] {
    if (!find_pool(pool) || streams().device(pool->device).default_pool == pool) return cudaErrorInvalidValue;
    // Gone for the program; what it has given out lives on until it is freed, and the work that uses it ends.
    pool->is_destroyed = true;
    release_unused_memory_of_pools();
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return host_call("cudaDeviceGetDefaultMemPool", [&] {
    if (device < 0 || device >= device_count()) return cudaErrorInvalidDevice;
    *pool = default_pool(device);
    return cudaSuccess;
  });
}

namespace {

/// The attributes that are 64-bit numbers; null for the others.
uint64_t* number_of(CUmemPoolHandle_st& pool, cudaMemPoolAttr attribute) {
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      return &pool.release_threshold;
    case cudaMemPoolAttrReservedMemCurrent:
      return &pool.reserved.current;
    case cudaMemPoolAttrReservedMemHigh:
      return &pool.reserved.high;
    case cudaMemPoolAttrUsedMemCurrent:
      return &pool.used.current;
    case cudaMemPoolAttrUsedMemHigh:
      return &pool.used.high;
    default:
      return nullptr;
  }
}

bool is_reuse(cudaMemPoolAttr attribute) {
  return attribute >= cudaMemPoolReuseFollowEventDependencies &&
         attribute <= cudaMemPoolReuseAllowInternalDependencies;
}

}  // namespace

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return host_call("cudaMemPoolSetAttribute", [&] {
    if (!find_pool(pool) || !value) return cudaErrorInvalidValue;
    if (is_reuse(attribute)) {
      std::memcpy(&pool->reuse[attribute - 1], value, sizeof(int));
      return cudaSuccess;
    }
    uint64_t* number = number_of(*pool, attribute);
    uint64_t wanted = 0;
    std::memcpy(&wanted, value, sizeof wanted);
    if (attribute == cudaMemPoolAttrReleaseThreshold) {
      *number = wanted;
    } else if (attribute == cudaMemPoolAttrReservedMemHigh && !wanted) {
      *number = pool->reserved.current;
    } else if (attribute == cudaMemPoolAttrUsedMemHigh && !wanted) {
      *number = pool->used.current;
    } else {
      return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return host_call("cudaMemPoolGetAttribute", [&] {
    if (!find_pool(pool) || !value) return cudaErrorInvalidValue;
    if (is_reuse(attribute)) {
      std::memcpy(value, &pool->reuse[attribute - 1], sizeof(int));
    } else if (const uint64_t* number = number_of(*pool, attribute)) {
      std::memcpy(value, number, sizeof *number);
    } else {
      return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep) {
  return host_call("cudaMemPoolTrimTo", [&] {
    if (!find_pool(pool)) return cudaErrorInvalidValue;
    pool->trim(bytes_to_keep);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* accesses, size_t count) {
  return host_call("cudaMemPoolSetAccess", [&] {
    if (!find_pool(pool) || (!accesses && count)) return cudaErrorInvalidValue;
    for (size_t i = 0; i < count; ++i) {
      const int device = accesses[i].location.id;
      if (device < 0 || device >= device_count()) return cudaErrorInvalidDevice;
      if (accesses[i].flags == cudaMemAccessFlagsProtNone) {
        pool->accessible_from.erase(device);
      } else {
        pool->accessible_from.insert(device);
      }
    }
    return cudaSuccess;
  });
}
