/// @file
/// Graphs: what streams record while they capture. Private to the host's side of the CPU device.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "common/cpu_device/streams/stream_engine.hpp"

namespace cpu_device {

/// What graphs keep: the last that has it calls `destroy`. Whoever is told by that knows that no launch is
/// under way.
struct UserObject {
  UserObject(void* data, cudaHostFn_t destroy) : data(data), destroy(destroy) {}
  ~UserObject();
  UserObject(const UserObject&) = delete;

  void* data;
  cudaHostFn_t destroy;
  OrderClock launches;  ///< that have ended
};
using UserObjects = std::vector<std::shared_ptr<UserObject>>;

struct GraphNode {
  Work work;
  std::vector<size_t> after;                         ///< nodes that come before it
  unsigned lane = 0;                                 ///< nodes that one stream captured, in their order
  std::shared_ptr<CUgraphNode_st> handle = nullptr;  ///< of a node that the program knows
};

}  // namespace cpu_device

struct CUgraph_st {
  std::vector<cpu_device::GraphNode> nodes;
  unsigned lanes = 0;
  cpu_device::UserObjects user_objects = {};
};
struct CUgraphNode_st {
  CUgraph_st* graph;
  size_t index;
};
struct CUuserObject_st {
  std::shared_ptr<cpu_device::UserObject> object;
};

namespace cpu_device {

/// Streams that capture together: the one that began, and those that joined it by waiting for its events.
struct Capture {
  std::unique_ptr<CUgraph_st> graph;
  unsigned long long id = 0;  ///< never that of another capture
  CUstream_st* origin = nullptr;
  std::set<CUstream_st*> streams;
  bool is_invalid = false;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  /// Waits for an event in the stream that has recorded it, which orders nothing: where, and in which stream.
  std::map<const CUevent_st*, std::pair<Location, std::string>> waits_for_itself;
  std::thread::id thread = std::this_thread::get_id();  ///< that began it
};

/// What this host thread's calls are checked for, see cudaThreadExchangeStreamCaptureMode.
inline thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;

cudaGraphNodeType type_of(const GraphNode&);
void join_capture(CUstream_st&, const std::shared_ptr<Capture>&);
/// Calls that CUDA holds for unsafe while a stream captures (allocations that are not those of a stream) are
/// refused: by a capture of mode global to all threads, by one of mode thread-local to its own. The capture
/// is invalid then.
bool refused_while_capturing();
/// @throws Failure if a node of the graph allocates memory that no node of it frees
void fail_if_memory_is_left(const CUgraph_st&);
/// Its streams go back to running what they are given.
void end_capture(Capture&);

}  // namespace cpu_device

/// A graph that can be launched. One launch comes after the one before.
struct CUgraphExec_st {
  CUgraph_st graph;
  std::vector<unsigned> lanes;  ///< numbers for its branches
  std::vector<size_t> order;    ///< of its nodes: each behind those that it waits for
  cpu_device::OperationPointer last;
};
