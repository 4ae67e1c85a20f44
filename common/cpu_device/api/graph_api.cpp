/// @file
/// Captures of streams, and launches of what they recorded.
#include <algorithm>
#include <utility>

#include "common/cpu_device/api/host_calls.hpp"
#include "common/cpu_device/streams/graph_capture.hpp"

namespace cpu_device {

namespace {

/// For each node that was captured, whether it comes before the end of the stream.
std::vector<bool> nodes_before_end(const Capture& capture, const CUstream_st& stream) {
  const std::vector<GraphNode>& nodes = capture.graph->nodes;
  std::vector<bool> reached(nodes.size());
  std::vector<size_t> open = stream.capture_front;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    open.insert(open.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  return reached;
}

/// Which streams have joined the capture, where, and did not come back.
void explain_unjoined(const Capture& capture, const CUstream_st& origin, const std::vector<bool>& reached) {
  std::string text;
  for (const CUstream_st* stream : capture.streams) {
    size_t last = reached.size();  // that it has captured
    for (size_t i = 0; i < reached.size(); ++i)
      if (capture.graph->nodes[i].lane == stream->capture_lane) last = i;
    if (last == reached.size() || reached[last] || stream == &origin) continue;
    const Work& work = capture.graph->nodes[last].work;
    const Location joined = stream->joined_capture_at;
    text += (text.empty() ? "  " : "\n  ") + stream->name +
            (stream->origin.empty() || stream->creators ? "" : " (" + stream->origin + ")") +
            " has joined the capture" + (joined.line ? " at " + describe_place(joined) : "") + ", and " +
            origin.name + ", which ends it, does not wait for its last operation, the " + work.kind +
            (work.where.line ? " at " + describe_place(work.where) : "") +
            ": record an event behind that, and let " + origin.name + " wait for it";
  }
  if (!text.empty()) explain_error(text);
}

cudaStreamCaptureStatus status_of(const Capture* capture) {
  if (!capture) return cudaStreamCaptureStatusNone;
  return capture->is_invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

/// Each node behind those that it waits for; fewer where some wait for each other in a circle.
std::vector<size_t> order_of(const std::vector<GraphNode>& nodes) {
  std::vector<size_t> order;
  std::vector<bool> is_in(nodes.size());
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto is_before = [&](size_t before) { return is_in[before]; };
      if (is_in[i] || !std::all_of(nodes[i].after.begin(), nodes[i].after.end(), is_before)) continue;
      order.push_back(i);
      is_in[i] = goes_on = true;
    }
  }
  return order;
}

void launch_graph(CUgraphExec_st& exec, CUstream_st& stream, const std::byte* frame) {
  StreamEngine& engine = streams();
  for (const size_t index : exec.order) {
    const Work& work = exec.graph.nodes[index].work;
    if (work.before_launch) work.before_launch(frame);
  }
  Work begin{"graph launch"};
  begin.is_on_timeline = false;
  std::vector<OperationPointer> before;
  if (exec.last) before.push_back(exec.last);
  const OperationPointer first = engine.enqueue(stream, std::move(begin), before);

  std::vector<Lane> lanes(exec.graph.lanes);
  for (unsigned i = 0; i < lanes.size(); ++i) {
    lanes[i].device = stream.device;
    lanes[i].number = exec.lanes[i];
    lanes[i].name = "a graph on " + stream.name;
    lanes[i].origin = stream.origin;
  }
  std::vector<OperationPointer> launched(exec.graph.nodes.size());
  for (const size_t index : exec.order) {
    const GraphNode& node = exec.graph.nodes[index];
    std::vector<OperationPointer> after{first};
    for (size_t i : node.after) after.push_back(launched[i]);
    Work work = node.work;
    work.before_launch = nullptr;  // It keeps memory, whose history keeps operations.
    launched[index] = engine.add(lanes[node.lane], std::move(work), std::move(after));
  }
  launched.push_back(first);
  Work end{"graph"};
  end.is_on_timeline = false;
  if (!exec.graph.user_objects.empty())
    end.run = [objects = exec.graph.user_objects](Operation& launch) {
      for (const auto& object : objects) object->launches.join(launch.clock);
    };
  exec.last = engine.enqueue(stream, std::move(end), launched);
}

}  // namespace

GraphCalls graph_calls() {
  const std::lock_guard<std::recursive_mutex> lock(streams().mutex);
  return streams().graph_calls;
}

}  // namespace cpu_device

using namespace cpu_device;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return host_call("cudaStreamBeginCapture", [&] {
    CUstream_st* found = streams().find(stream, DefaultStream::legacy, current_device());
    if (!found || mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed)
      return cudaErrorInvalidValue;
    if (found->is_legacy) return cudaErrorStreamCaptureUnsupported;
    if (found->capture) return cudaErrorIllegalState;
    static unsigned long long ids = 0;
    auto capture = std::make_shared<Capture>();
    capture->graph = std::make_unique<CUgraph_st>();
    capture->id = ++ids;
    capture->origin = found;
    capture->mode = mode;
    join_capture(*found, capture);
    streams().captures.insert(capture.get());
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return host_call("cudaStreamEndCapture", [&] {
    CUstream_st* found = streams().find(stream, DefaultStream::legacy, current_device());
    if (!found || !graph) return cudaErrorInvalidValue;
    *graph = nullptr;
    if (!found->capture) return cudaErrorIllegalState;
    const std::shared_ptr<Capture> capture = found->capture;
    if (capture->origin != found) return cudaErrorStreamCaptureUnmatched;
    const std::vector<bool> reached = nodes_before_end(*capture, *found);
    const bool is_whole = std::find(reached.begin(), reached.end(), false) == reached.end();
    if (!is_whole && !capture->is_invalid) explain_unjoined(*capture, *found, reached);
    end_capture(*capture);
    if (capture->is_invalid) return cudaErrorStreamCaptureInvalidated;
    if (!is_whole) return cudaErrorStreamCaptureUnjoined;
    fail_if_memory_is_left(*capture->graph);
    *graph = capture->graph.release();
    ++streams().graphs;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return host_call("cudaStreamIsCapturing", [&] {
    const CUstream_st* found = streams().find(stream, DefaultStream::legacy, current_device());
    if (!found || !status) return cudaErrorInvalidValue;
    *status = status_of(found->capture.get());
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph, DefaultStream meaning) {
  return host_call("cudaStreamGetCaptureInfo", [&] {
    const CUstream_st* found = streams().find(stream, meaning, current_device());
    if (!found || !status) return cudaErrorInvalidValue;
    const Capture* const capture = found->capture.get();
    *status = status_of(capture);
    if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
    if (id) *id = capture->id;
    if (graph) *graph = capture->graph.get();
    return cudaSuccess;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return host_call("cudaThreadExchangeStreamCaptureMode", [&] {
    if (!mode || *mode < cudaStreamCaptureModeGlobal || *mode > cudaStreamCaptureModeRelaxed)
      return cudaErrorInvalidValue;
    std::swap(*mode, mode_of_thread);
    return cudaSuccess;
  });
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy,
                                 unsigned references, unsigned flags) {
  return host_call("cudaUserObjectCreate", [&] {
    if (!object || !destroy || references != 1 || flags != cudaUserObjectNoDestructorSync)
      return cudaErrorInvalidValue;
    *object = new CUuserObject_st{std::make_shared<UserObject>(data, destroy)};
    return cudaSuccess;
  });
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags) {
  return host_call("cudaGraphRetainUserObject", [&] {
    if (!graph || !object || count != 1 || flags != cudaGraphUserObjectMove) return cudaErrorInvalidValue;
    graph->user_objects.push_back(std::move(object->object));
    delete object;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return host_call("cudaGraphInstantiate", [&] {
    if (!exec || !graph || flags) return cudaErrorInvalidValue;
    const std::vector<size_t> order = order_of(graph->nodes);
    if (order.size() < graph->nodes.size()) return cudaErrorInvalidValue;
    *exec = new CUgraphExec_st{*graph, {}, order, nullptr};
    for (unsigned i = 0; i < graph->lanes; ++i) (*exec)->lanes.push_back(streams().take_lane());
    ++streams().graphs;
    ++streams().graph_calls.instantiations;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream, DefaultStream meaning) {
  const auto* const frame = static_cast<const std::byte*>(__builtin_frame_address(0));
  return host_call("cudaGraphLaunch", [&] {
    CUstream_st* found = streams().find(stream, meaning, current_device());
    if (!exec || !found) return cudaErrorInvalidValue;
    if (found->capture) return cudaErrorStreamCaptureUnsupported;
    launch_graph(*exec, *found, frame);
    ++streams().graph_calls.launches;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return host_call("cudaGraphUpload", [&] {
    const bool is_known = exec && streams().find(stream, DefaultStream::legacy, current_device());
    return is_known ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  return host_call("cudaGraphExecUpdate", [&] {
    if (!exec || !graph || !result) return cudaErrorInvalidValue;
    std::vector<GraphNode>&nodes = exec->graph.nodes, &wanted = graph->nodes;
    *result = {cudaGraphExecUpdateErrorTopologyChanged, nullptr, nullptr};
    if (nodes.size() != wanted.size()) return cudaErrorGraphExecUpdateFailure;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].after != wanted[i].after) return cudaErrorGraphExecUpdateFailure;
    result->result = cudaGraphExecUpdateErrorNodeTypeChanged;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (type_of(nodes[i]) != type_of(wanted[i])) return cudaErrorGraphExecUpdateFailure;
    for (size_t i = 0; i < nodes.size(); ++i) nodes[i].work = wanted[i].work;
    exec->graph.user_objects = graph->user_objects;
    result->result = cudaGraphExecUpdateSuccess;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return destroying_call("cudaGraphExecDestroy", [&] {
    if (!exec) return cudaErrorInvalidValue;
    // A launch that is under way goes on without it, as with CUDA.
    for (unsigned number : exec->lanes) streams().give_lane_back(number);
    delete exec;
    --streams().graphs;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return destroying_call("cudaGraphDestroy", [&] {
    if (!graph) return cudaErrorInvalidValue;
    delete graph;
    --streams().graphs;
    return cudaSuccess;
  });
}
