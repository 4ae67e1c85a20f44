/// @file
/// What a stream does with its work while it captures.
#include "common/cpu_device/streams/graph_capture.hpp"

#include <string_view>
#include <utility>

namespace cpu_device {

UserObject::~UserObject() {
  streams().host_learns(launches, {});
  destroy(data);
}

void capture_work(CUstream_st& stream, Work work) {
  std::vector<GraphNode>& nodes = stream.capture->graph->nodes;
  nodes.push_back({std::move(work), stream.capture_front, stream.capture_lane});
  stream.capture_front = {nodes.size() - 1};
}

cudaGraphNodeType type_of(const GraphNode& node) {
  if (!node.work.run) return cudaGraphNodeTypeEmpty;
  const std::string_view kind = node.work.kind;
  return node.work.is_host_function ? cudaGraphNodeTypeHost
         : kind == "kernel"         ? cudaGraphNodeTypeKernel
         : kind == "memset"         ? cudaGraphNodeTypeMemset
                                    : cudaGraphNodeTypeMemcpy;
}

void join_capture(CUstream_st& stream, const std::shared_ptr<Capture>& capture) {
  stream.capture = capture;
  stream.capture_front.clear();
  stream.capture_lane = capture->graph->lanes++;
  capture->streams.insert(&stream);
}

bool refused_while_capturing() {
  if (mode_of_thread == cudaStreamCaptureModeRelaxed) return false;
  bool refused = false;
  for (Capture* capture : streams().captures) {
    const bool reaches_thread =
        capture->thread == std::this_thread::get_id() ||
        (capture->mode == cudaStreamCaptureModeGlobal && mode_of_thread == cudaStreamCaptureModeGlobal);
    if (capture->mode == cudaStreamCaptureModeRelaxed || !reaches_thread) continue;
    capture->is_invalid = refused = true;
  }
  return refused;
}

void end_capture(Capture& capture) {
  streams().captures.erase(&capture);
  for (CUstream_st* stream : std::exchange(capture.streams, {})) {
    stream->capture_front.clear();
    stream->capture.reset();
  }
}

}  // namespace cpu_device
