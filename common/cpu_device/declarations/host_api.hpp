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
#define LADDER_STREAM_MEANING cpu_device::DefaultStream meaning = cpu_device::kDefaultStream
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
/// Returns the device to how it was: what the program holds there has ended.
cudaError_t cudaDeviceReset();
/// An H200's, as far as the CPU device can know; 0 or an H200's limit for what it lacks, as textures.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
/// Limits, caches and profilers are accepted, and change nothing.
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value);
cudaError_t cudaCtxResetPersistingL2Cache();
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit);
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config);
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config);
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaGetDeviceFlags(unsigned* flags);
/// Of tensor maps and of what programs ask first.
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* result = nullptr);
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result = nullptr);
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();
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
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags);
cudaError_t cudaHostGetFlags(unsigned* flags, void* host);
/// Memory of host and device. What a kernel leaves there the host sees after a wait, as on a GPU.
cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags = cudaMemAttachGlobal,
                              CPU_DEVICE_WHERE);
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device,
                                 cudaStream_t stream = nullptr);
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation, unsigned flags,
                                 cudaStream_t stream = nullptr);
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, int device);
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, cudaMemLocation);
/// Rows of a multiple of 512 bytes.
cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height, CPU_DEVICE_WHERE);
cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent, CPU_DEVICE_WHERE);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, LADDER_DEFAULT_STREAM,
                       CPU_DEVICE_WHERE);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr, LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                         size_t height, cudaMemcpyKind kind, LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                              LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
/// Between pitched memory; there are no arrays.
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy, LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream = nullptr,
                              LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes,
                           LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream = nullptr, LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemset(void* to, int value, size_t bytes, LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream = nullptr,
                            LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height,
                         LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream = nullptr, LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent, LADDER_DEFAULT_STREAM,
                         CPU_DEVICE_WHERE);

namespace cpu_device {
/// The variable counts as memory of the device from now on.
void* symbol_address(const void* symbol, size_t bytes, Location);
/// To or from `bytes` bytes of a variable of a kernel, from byte `offset` on.
cudaError_t copy_to_symbol(const char* call, const void* symbol, size_t size, const void* from, size_t bytes,
                           size_t offset, cudaMemcpyKind, bool waits, cudaStream_t, DefaultStream, Location);
cudaError_t copy_from_symbol(const char* call, void* to, const void* symbol, size_t size, size_t bytes,
                             size_t offset, cudaMemcpyKind, bool waits, cudaStream_t, DefaultStream,
                             Location);
}  // namespace cpu_device

// --- memory in the order of a stream ----------------------------------------------------------------------

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream, LADDER_DEFAULT_STREAM,
                            CPU_DEVICE_WHERE);
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream,
                                    LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream, LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* accesses, size_t count);

// --- streams and events -----------------------------------------------------------------------------------

cudaError_t cudaStreamCreate(cudaStream_t* stream, CPU_DEVICE_WHERE);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags, CPU_DEVICE_WHERE);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority,
                                         CPU_DEVICE_WHERE);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream, LADDER_DEFAULT_STREAM);
/// Of a stream there is and of one that is gone, never the same.
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id, LADDER_DEFAULT_STREAM);
cudaError_t cudaStreamQuery(cudaStream_t stream, LADDER_DEFAULT_STREAM);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0,
                                LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data,
                               LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags);
using cudaStreamCallback_t = void (*)(cudaStream_t stream, cudaError_t status, void* user_data);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* user_data,
                                  unsigned flags, LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t bytes = 0,
                                     unsigned flags = cudaMemAttachSingle);

cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr, LADDER_DEFAULT_STREAM,
                            CPU_DEVICE_WHERE);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr, unsigned flags = 0,
                                     LADDER_DEFAULT_STREAM, CPU_DEVICE_WHERE);
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
/// There is nothing to do.
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
/// Takes over what the nodes of `graph` do, if it has the same nodes with the same dependencies.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
/// Without nodes. Each is added with the nodes that come before it.
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags);
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph);
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                  size_t count);
/// Between pitched memory, one slice deep; there are no arrays.
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                   size_t count, const cudaMemcpy3DParms* copy, CPU_DEVICE_WHERE);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                     size_t count, void* to, const void* from, size_t bytes,
                                     cudaMemcpyKind kind, CPU_DEVICE_WHERE);
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                   size_t count, const cudaMemsetParams* fill, CPU_DEVICE_WHERE);
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                 size_t count, const cudaHostNodeParams* function, CPU_DEVICE_WHERE);
/// A graph whose nodes wait for each other in a circle cannot be instantiated.
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, size_t count);
/// Without `nodes` only counts them.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type);

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

template <class T>
cudaError_t cudaMallocHost(T** pointer, size_t bytes, unsigned flags, CPU_DEVICE_WHERE) {
  return cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags, where);
}
template <class T>
cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned flags = cudaMemAttachGlobal,
                              CPU_DEVICE_WHERE) {
  return cudaMallocManaged(reinterpret_cast<void**>(pointer), bytes, flags, where);
}
template <class T>
cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height, CPU_DEVICE_WHERE) {
  return cudaMallocPitch(reinterpret_cast<void**>(pointer), pitch, width, height, where);
}
template <class T>
cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned flags) {
  return cudaHostGetDevicePointer(reinterpret_cast<void**>(device), host, flags);
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}
/// CUDA 11's.
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphNode_t*, char*,
                                        size_t) {
  return cudaGraphInstantiate(exec, graph, 0ULL);
}
/// CUDA 13's. Data of edges there is none.
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, std::nullptr_t, size_t count) {
  return cudaGraphAddDependencies(graph, from, to, count);
}
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphNode_t* error_node,
                                       cudaGraphExecUpdateResult* result) {
  cudaGraphExecUpdateResultInfo info{};
  const cudaError_t error = cudaGraphExecUpdate(exec, graph, &info);
  if (error_node) *error_node = info.errorNode;
  *result = info.result;
  return error;
}
inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }

// --- variables of kernels: __device__, __constant__

template <class T>
cudaError_t cudaGetSymbolAddress(void** pointer, const T& symbol, CPU_DEVICE_WHERE) {
  *pointer = cpu_device::symbol_address(&symbol, sizeof symbol, where);
  return cudaSuccess;
}
template <class Pointer, class T>
cudaError_t cudaGetSymbolAddress(Pointer** pointer, const T& symbol, CPU_DEVICE_WHERE) {
  return cudaGetSymbolAddress(reinterpret_cast<void**>(pointer), symbol, where);
}
template <class T>
cudaError_t cudaGetSymbolSize(size_t* bytes, const T& symbol) {
  *bytes = sizeof symbol;
  return cudaSuccess;
}
template <class T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice, LADDER_STREAM_MEANING,
                               CPU_DEVICE_WHERE) {
  return cpu_device::copy_to_symbol("cudaMemcpyToSymbol", &symbol, sizeof symbol, from, bytes, offset, kind,
                                    /*waits=*/true, nullptr, meaning, where);
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream = nullptr, LADDER_STREAM_MEANING,
                                    CPU_DEVICE_WHERE) {
  return cpu_device::copy_to_symbol("cudaMemcpyToSymbolAsync", &symbol, sizeof symbol, from, bytes, offset,
                                    kind, /*waits=*/false, stream, meaning, where);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost, LADDER_STREAM_MEANING,
                                 CPU_DEVICE_WHERE) {
  return cpu_device::copy_from_symbol("cudaMemcpyFromSymbol", to, &symbol, sizeof symbol, bytes, offset, kind,
                                      /*waits=*/true, nullptr, meaning, where);
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                                      LADDER_STREAM_MEANING, CPU_DEVICE_WHERE) {
  return cpu_device::copy_from_symbol("cudaMemcpyFromSymbolAsync", to, &symbol, sizeof symbol, bytes, offset,
                                      kind, /*waits=*/false, stream, meaning, where);
}

// --- what kernels need and may have

namespace cpu_device {
cudaError_t set_function_attribute(const void* kernel, cudaFuncAttribute, int value);
}  // namespace cpu_device
/// Launches need no preparation here; limits are checked when a kernel is launched.
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute attribute, int value) {
  return cpu_device::set_function_attribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class Kernel>
cudaError_t cudaFuncSetCacheConfig(Kernel*, cudaFuncCache) {
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetSharedMemConfig(Kernel*, cudaSharedMemConfig) {
  return cudaSuccess;
}
/// Registers and static shared memory are not known here: 32 registers, and nothing.
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  attributes->maxDynamicSharedSizeBytes = 227 * 1024;
  return cudaSuccess;
}

namespace cpu_device {
/// As many blocks as threads and shared memory allow an H200; registers are not known.
int blocks_per_multiprocessor(int threads, size_t shared_bytes);
}  // namespace cpu_device

template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel*, int threads,
                                                          size_t shared_bytes) {
  *blocks = cpu_device::blocks_per_multiprocessor(threads, shared_bytes);
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Kernel* kernel, int threads,
                                                                   size_t shared_bytes, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared_bytes);
}
/// The block with the most threads on a multiprocessor, and of those the largest.
template <class Function, class Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* least_grid, int* threads, Kernel*,
                                                           Function shared_bytes_of, int limit = 0) {
  int most = 0;
  for (int size = limit > 0 && limit < 1024 ? limit : 1024; size > 0; size -= size % 32 ? size % 32 : 32) {
    const int blocks =
        cpu_device::blocks_per_multiprocessor(size, static_cast<size_t>(shared_bytes_of(size)));
    if (blocks * size <= most) continue;
    most = blocks * size;
    *threads = size;
    *least_grid = 132 * blocks;
  }
  return most ? cudaSuccess : cudaErrorInvalidValue;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* least_grid, int* threads, Kernel* kernel,
                                               size_t shared_bytes = 0, int limit = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
      least_grid, threads, kernel, [=](int) { return shared_bytes; }, limit);
}
template <class Kernel>
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, Kernel*, int blocks, int) {
  if (blocks < 1) return cudaErrorInvalidValue;
  constexpr size_t kMost = 227 * 1024, kOfMultiprocessor = 228 * 1024, kReserved = 1024;
  const size_t share = kOfMultiprocessor / static_cast<size_t>(blocks);
  *bytes = share < kReserved ? 0 : share - kReserved < kMost ? share - kReserved : kMost;
  return cudaSuccess;
}

#undef LADDER_DEFAULT_STREAM
#undef LADDER_STREAM_MEANING
