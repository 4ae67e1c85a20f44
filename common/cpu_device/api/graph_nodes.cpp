/// @file
/// Nodes that calls add to graphs. Each is captured by a stream of its own, which begins behind the nodes
/// that come before: so that it is what a captured node is, with all its checks.
#include <algorithm>
#include <utility>

#include "common/cpu_device/api/host_calls.hpp"
#include "common/cpu_device/api/kernel_launch.hpp"
#include "common/cpu_device/streams/graph_capture.hpp"

namespace cpu_device {
namespace {

/// A stream that captures into a graph, for the time of one call.
class Builder {
 public:
  explicit Builder(CUgraph_st& graph)
      : stream_(streams().create_builder(current_device())), capture_(std::make_shared<Capture>()) {
    capture_->graph.reset(&graph);
    join_capture(*stream_, capture_);
  }
  ~Builder() {
    static_cast<void>(capture_->graph.release());  // is the program's
    streams().destroy_builder(stream_);
  }
  Builder(const Builder&) = delete;
  CUstream_st* stream() { return stream_; }

 private:
  CUstream_st* const stream_;
  const std::shared_ptr<Capture> capture_;
};

cudaGraphNode_t handle_of(CUgraph_st& graph, size_t index) {
  GraphNode& node = graph.nodes[index];
  if (!node.handle) node.handle = std::make_shared<CUgraphNode_st>(CUgraphNode_st{&graph, index});
  return node.handle.get();
}

/// @param enqueue enqueues what the node does on the stream that it is given
template <class Enqueue>
cudaError_t add_node(const char* call, cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                     size_t count, const Enqueue& enqueue) {
  return host_call(call, [&] {
    if (!node || !graph || (count && !after)) return cudaErrorInvalidValue;
    std::vector<size_t> before;
    for (size_t i = 0; i < count; ++i) {
      if (!after[i] || after[i]->graph != graph) return cudaErrorInvalidValue;
      before.push_back(after[i]->index);
    }
    const size_t known = graph->nodes.size();
    Builder builder(*graph);
    builder.stream()->capture_front = std::move(before);
    if (const cudaError_t error = enqueue(builder.stream()); error != cudaSuccess) return error;
    if (graph->nodes.size() == known) capture_work(*builder.stream(), Work{"empty node"});
    *node = handle_of(*graph, graph->nodes.size() - 1);
    return cudaSuccess;
  });
}

cudaError_t list_nodes(const char* call, cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count,
                       bool only_roots) {
  return host_call(call, [&] {
    if (!graph || !count) return cudaErrorInvalidValue;
    std::vector<cudaGraphNode_t> found;
    for (size_t i = 0; i < graph->nodes.size(); ++i)
      if (!only_roots || graph->nodes[i].after.empty()) found.push_back(handle_of(*graph, i));
    if (nodes) std::copy_n(found.begin(), std::min(*count, found.size()), nodes);
    *count = nodes ? std::min(*count, found.size()) : found.size();
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t add_kernel_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                            size_t count, const void* kernel, const KernelLaunch& launch, void** arguments) {
  return add_node("cudaGraphAddKernelNode", node, graph, after, count, [&](CUstream_st* stream) {
    return launch_remembered(kernel, launch, arguments, stream, DefaultStream::legacy);
  });
}

cudaError_t change_kernel_node(cudaGraphExec_t exec, cudaGraphNode_t node, const void* kernel,
                               const KernelLaunch& launch, void** arguments) {
  return host_call(exec ? "cudaGraphExecKernelNodeSetParams" : "cudaGraphKernelNodeSetParams", [&] {
    if (!node) return cudaErrorInvalidValue;
    std::vector<GraphNode>& nodes = exec ? exec->graph.nodes : node->graph->nodes;
    if (node->index >= nodes.size() || type_of(nodes[node->index]) != cudaGraphNodeTypeKernel)
      return cudaErrorInvalidValue;
    CUgraph_st scratch;
    cudaGraphNode_t changed = nullptr;
    const cudaError_t error = add_kernel_node(&changed, &scratch, nullptr, 0, kernel, launch, arguments);
    if (error == cudaSuccess) nodes[node->index].work = std::move(scratch.nodes.front().work);
    return error;
  });
}

}  // namespace cpu_device

using namespace cpu_device;

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return host_call("cudaGraphCreate", [&] {
    if (!graph || flags) return cudaErrorInvalidValue;
    *graph = new CUgraph_st;
    ++streams().graphs;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return host_call("cudaGraphClone", [&] {
    if (!clone || !graph) return cudaErrorInvalidValue;
    *clone = new CUgraph_st(*graph);
    for (GraphNode& node : (*clone)->nodes) node.handle.reset();
    ++streams().graphs;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                  size_t count) {
  return add_node("cudaGraphAddEmptyNode", node, graph, after, count,
                  [](CUstream_st*) { return cudaSuccess; });
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                   size_t count, const cudaMemcpy3DParms* copy, Location where) {
  return add_node("cudaGraphAddMemcpyNode", node, graph, after, count, [&](CUstream_st* stream) {
    return copy && copy->extent.depth == 1 ? cudaMemcpy3DAsync(copy, stream, DefaultStream::legacy, where)
                                           : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                     size_t count, void* to, const void* from, size_t bytes,
                                     cudaMemcpyKind kind, Location where) {
  return add_node("cudaGraphAddMemcpyNode1D", node, graph, after, count, [&](CUstream_st* stream) {
    return cudaMemcpyAsync(to, from, bytes, kind, stream, DefaultStream::legacy, where);
  });
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                   size_t count, const cudaMemsetParams* fill, Location where) {
  return add_node("cudaGraphAddMemsetNode", node, graph, after, count, [&](CUstream_st* stream) {
    return fill ? fill_elements(*fill, stream, where) : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                 size_t count, const cudaHostNodeParams* function, Location where) {
  return add_node("cudaGraphAddHostNode", node, graph, after, count, [&](CUstream_st* stream) {
    return function
               ? cudaLaunchHostFunc(stream, function->fn, function->userData, DefaultStream::legacy, where)
               : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, size_t count) {
  return host_call("cudaGraphAddDependencies", [&] {
    if (!graph || (count && (!from || !to))) return cudaErrorInvalidValue;
    for (size_t i = 0; i < count; ++i) {
      if (!from[i] || !to[i] || from[i]->graph != graph || to[i]->graph != graph || from[i] == to[i])
        return cudaErrorInvalidValue;
      graph->nodes[to[i]->index].after.push_back(from[i]->index);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return list_nodes("cudaGraphGetNodes", graph, nodes, count, /*only_roots=*/false);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return list_nodes("cudaGraphGetRootNodes", graph, nodes, count, /*only_roots=*/true);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return host_call("cudaGraphNodeGetType", [&] {
    if (!node || !type) return cudaErrorInvalidValue;
    *type = type_of(node->graph->nodes[node->index]);
    return cudaSuccess;
  });
}
