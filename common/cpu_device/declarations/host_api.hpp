/// @file
/// What <cuda_runtime.h> declares for the host: the calls of the CUDA runtime, defined in ../api. Streams are
/// queues; when their work runs, and what a call may throw, is said in common/cpu_device/README.md.
#pragma once
#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/declarations/host_types.hpp"

namespace cpu_device {
/// What stream 0 means to the source that makes the call: as with CUDA, that is chosen for each source by a
/// macro that is defined before the header is included. Calls pass it on in a last parameter.
enum class DefaultStream { legacy, per_thread };
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
static constexpr DefaultStream kDefaultStream = DefaultStream::per_thread;
#else
static constexpr DefaultStream kDefaultStream = DefaultStream::legacy;
#endif
}  // namespace cpu_device

// Default arguments are evaluated where the call is written.
#define LADDER_DEFAULT_STREAM cpu_device::DefaultStream = cpu_device::kDefaultStream

const char* cudaGetErrorName(cudaError_t);
const char* cudaGetErrorString(cudaError_t);
/// The last error of this host thread, which it forgets; Peek does not.
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

// --- devices ----------------------------------------------------------------------------------------------

/// As many as the environment variable LADDER_CPU_DEVICES says, 1 to 8; without it, one.
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceSynchronize();
/// An H200's, of the attributes in cudaDeviceAttr.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
/// A share of half of the machine's memory plays the part of the device's.
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);

// --- memory -----------------------------------------------------------------------------------------------

/// Fresh memory holds NaN. Every allocation is exactly as large as asked for, so that AddressSanitizer sees
/// accesses beyond its end.
cudaError_t cudaMalloc(void** pointer, size_t bytes, CPU_DEVICE_WHERE);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMallocHost(void** pointer, size_t bytes, CPU_DEVICE_WHERE);
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags, CPU_DEVICE_WHERE);
cudaError_t cudaFreeHost(void* pointer);
cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags, CPU_DEVICE_WHERE);
cudaError_t cudaHostUnregister(void* pointer);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, LADDER_DEFAULT_STREAM,
                       CPU_DEVICE_WHERE);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr, LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                         size_t height, cudaMemcpyKind kind, LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream = nullptr, LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemset(void* to, int value, size_t bytes, LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream = nullptr,
                            LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);

// --- memory in the order of a stream ----------------------------------------------------------------------

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream, LADDER_DEFAULT_STREAM,
                            CPU_DEVICE_WHERE);
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream,
                                    LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream, LADDER_DEFAULT_STREAM);
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* accesses, size_t count);

// --- streams and events -----------------------------------------------------------------------------------

cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream, LADDER_DEFAULT_STREAM);
/// Of a stream there is and of one that is gone, never the same.
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id, LADDER_DEFAULT_STREAM);
cudaError_t cudaStreamQuery(cudaStream_t stream, LADDER_DEFAULT_STREAM);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0,
                                LADDER_DEFAULT_STREAM);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data,
                               LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);

cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr, LADDER_DEFAULT_STREAM,
                            CPU_DEVICE_WHERE);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
/// Virtual time: see stream_time_us() in cpu_device.hpp.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

// --- graphs -----------------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
/// With the graph to be, which user objects may be given to already.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id = nullptr, cudaGraph_t* graph = nullptr,
                                     LADDER_DEFAULT_STREAM);
/// By which captures calls of this host thread are refused, as if it had begun captures of this mode.
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);
/// Only of one reference, which is moved to a graph. `destroy` is called when no graph, no executable of one
/// and no launch is left that has it; it must not call CUDA.
cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy,
                                 unsigned references, unsigned flags);
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count = 1,
                                      unsigned flags = 0);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream, LADDER_DEFAULT_STREAM);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

// --- what only C++ has ------------------------------------------------------------------------------------

template <class T>
cudaError_t cudaMalloc(T** pointer, size_t bytes, CPU_DEVICE_WHERE) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), bytes, where);
}
template <class T>
cudaError_t cudaMallocHost(T** pointer, size_t bytes, CPU_DEVICE_WHERE) {
  return cudaMallocHost(reinterpret_cast<void**>(pointer), bytes, where);
}
template <class T>
cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned flags, CPU_DEVICE_WHERE) {
  return cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags, where);
}
template <class T>
cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t stream,
                            cpu_device::DefaultStream meaning = cpu_device::kDefaultStream,
                            CPU_DEVICE_WHERE) {
  return cudaMallocAsync(reinterpret_cast<void**>(pointer), bytes, stream, meaning, where);
}
template <class T>
cudaError_t cudaMallocFromPoolAsync(T** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream,
                                    cpu_device::DefaultStream meaning = cpu_device::kDefaultStream,
                                    CPU_DEVICE_WHERE) {
  return cudaMallocFromPoolAsync(reinterpret_cast<void**>(pointer), bytes, pool, stream, meaning, where);
}

/// Launches need no preparation here; limits are checked when a kernel is launched.
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, int) {
  return cudaSuccess;
}

#undef LADDER_DEFAULT_STREAM
