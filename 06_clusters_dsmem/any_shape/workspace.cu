/// @file
/// Workspaces of streams and of graphs.
#include "06_clusters_dsmem/any_shape/workspace.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "06_clusters_dsmem/any_shape/residents.hpp"
#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/error.hpp"

namespace lesson06::any_shape {
namespace {

/// While it lives, this thread may allocate and free beside any capture. By default CUDA refuses that, and
/// the capture is lost: who allocates might wait for work that is only recorded.
class BesideCaptures {
 public:
  BesideCaptures() { CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~BesideCaptures() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  BesideCaptures(const BesideCaptures&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

struct Memory {
  ladder::DeviceBuffer<float4> sums;
  ladder::DeviceBuffer<unsigned> arrived;

  bool is_empty() const { return sums.size() == 0; }
  Workspace workspace() { return {sums.data(), arrived.data()}; }
};

/// On the current GPU. The counters are set to 0 in the order of the stream; every launch leaves them so.
/// @throws ladder::OutOfDeviceMemory
Memory allocate(cudaStream_t stream) {
  constexpr size_t kTiles = 2;  // of a cluster, at most: Sharing::contributors() of each shared tile
  constexpr size_t kLargestTile = 192 * 192;
  const size_t tiles = kTiles * this_gpu().resident[1], floats = tiles * kLargestTile;
  Memory memory{ladder::DeviceBuffer<float4>(floats / 4), ladder::DeviceBuffer<unsigned>(tiles)};
  CUDA_CHECK(cudaMemsetAsync(memory.arrived.data(), 0, tiles * sizeof(unsigned), stream));
  return memory;
}

/// Whose a workspace is. Numbers of streams and of captures do not return. Handles do, when streams are
/// destroyed, and one handle stands for the default streams of all threads.
struct Owner {
  int device = 0;
  unsigned long long stream = 0;  ///< its number; of one that captures its handle, which then is unique
  std::optional<unsigned long long> capture;  ///< of the stream; the workspace is the graph's then

  auto operator<=>(const Owner&) const = default;
};

/// Who asks.
struct Request {
  cudaStream_t stream = nullptr;
  Owner owner;
  cudaGraph_t graph = nullptr;  ///< that is captured
};

Request request_of(cudaStream_t stream) {
  Request request{stream, {}};
  CUDA_CHECK(cudaGetDevice(&request.owner.device));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long capture = 0;
  CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status, &capture, &request.graph));
  if (status == cudaStreamCaptureStatusActive) {  // then CUDA refuses to tell the stream's number
    request.owner.capture = capture;
    request.owner.stream = reinterpret_cast<uintptr_t>(stream);
  } else {
    const BesideCaptures guard;
    CUDA_CHECK(cudaStreamGetId(stream, &request.owner.stream));
  }
  return request;
}

/// All workspaces.
struct Table {
  std::mutex mutex;
  std::map<Owner, Memory> memory;
  std::multimap<int, Memory> unused;  ///< by GPU; no work uses it any more, and all counters are 0
  /// The second lock: CUDA says that a graph is gone while it has locks of its own, for which the holder of
  /// the first one may wait.
  std::mutex mutex_of_gone;
  std::vector<Owner> gone;
};
Table& table() {
  static auto& only = *new Table;  // never destroyed: the driver may have shut down by then
  return only;
}

/// Called by CUDA when neither the graph nor an executable is left, and no launch.
void graph_is_gone(void* data) {
  const std::unique_ptr<Owner> owner(static_cast<Owner*>(data));
  const std::lock_guard lock(table().mutex_of_gone);
  table().gone.push_back(*owner);
}

void give_to_graph(const Request& request) {
  auto owner = std::make_unique<Owner>(request.owner);
  cudaUserObject_t object = nullptr;
  CUDA_CHECK(cudaUserObjectCreate(&object, owner.get(), graph_is_gone, 1, cudaUserObjectNoDestructorSync));
  owner.release();
  CUDA_CHECK(cudaGraphRetainUserObject(request.graph, object, 1, cudaGraphUserObjectMove));
}

void collect_unused() {
  std::vector<Owner> gone;
  {
    const std::lock_guard lock(table().mutex_of_gone);
    gone.swap(table().gone);
  }
  for (const Owner& owner : gone)
    if (auto entry = table().memory.extract(owner); !entry.empty() && !entry.mapped().is_empty())
      table().unused.emplace(owner.device, std::move(entry.mapped()));
}

/// @throws ladder::OutOfDeviceMemory
Memory memory_for(const Request& request) {
  collect_unused();
  if (auto entry = table().unused.extract(request.owner.device); !entry.empty())
    return std::move(entry.mapped());
  if (!request.owner.capture) return allocate(request.stream);
  // What is queued in a stream that captures becomes a part of the graph.
  const ladder::Stream own = ladder::make_stream();
  Memory memory = allocate(own.get());
  CUDA_CHECK(cudaStreamSynchronize(own.get()));
  return memory;
}

Memory& keep(const Request& request, Memory memory) {
  const auto [entry, is_new] = table().memory.try_emplace(request.owner);
  if (is_new && request.owner.capture) give_to_graph(request);
  return entry->second = std::move(memory);
}

}  // namespace

Workspace workspace_of(cudaStream_t stream) {
  const Request request = request_of(stream);
  const std::lock_guard lock(table().mutex);
  if (const auto found = table().memory.find(request.owner); found != table().memory.end())
    return found->second.workspace();
  const BesideCaptures guard;
  Memory memory;
  try {
    memory = memory_for(request);
  } catch (const ladder::OutOfDeviceMemory&) {
  }
  return keep(request, std::move(memory)).workspace();
}

void prepare(cudaStream_t stream) {
  const Request request = request_of(stream);
  const std::lock_guard lock(table().mutex);
  const auto found = table().memory.find(request.owner);
  if (found != table().memory.end() && !found->second.is_empty()) return;
  const BesideCaptures guard;
  keep(request, memory_for(request));
}

void release(cudaStream_t stream) {
  CUDA_CHECK(cudaStreamSynchronize(stream));
  const Request request = request_of(stream);
  const std::lock_guard lock(table().mutex);
  const BesideCaptures guard;
  collect_unused();
  table().memory.erase(request.owner);
  table().unused.erase(request.owner.device);
}

}  // namespace lesson06::any_shape
