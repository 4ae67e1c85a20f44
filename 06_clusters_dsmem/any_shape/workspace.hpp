/// @file
/// Global memory for stream-K: who has which, and for how long.
///
/// Launches may share a workspace if each comes after the one before. So a stream has a workspace of its own,
/// which the first launch that needs one allocates. And a graph has one for each stream that was captured,
/// which lasts as long as the graph and its executables. Two executables of one graph share these: they must
/// not run at the same time.
///
/// A workspace takes tens of MB: it is enough for every kernel. That of a stream is kept
/// until release(); that of a graph that is gone is kept for the next graph or stream.
#pragma once
#include <cuda_runtime.h>

#include "06_clusters_dsmem/any_shape/stream_k.cuh"

namespace lesson06::any_shape {

/// The workspace for the next launch in the stream. Where there is no memory for one, an empty one, from then
/// on: a launch must not try again each time. Waits for no work but its own, and breaks no capture.
Workspace workspace_of(cudaStream_t stream);

/// Allocates the workspace ahead of the stream's first launch; also where there was no memory before.
/// @throws ladder::OutOfDeviceMemory
void prepare(cudaStream_t stream);

/// Waits for the stream, and frees its workspace and those of graphs that are gone. CUDA waits for the whole
/// GPU then. To be called before a stream is destroyed, or its workspace is kept until the process ends.
void release(cudaStream_t stream);

}  // namespace lesson06::any_shape
