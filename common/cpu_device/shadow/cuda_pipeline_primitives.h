/// @file
/// Shadow of <cuda_pipeline_primitives.h>: cp.async as C functions.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>

/// Copies all but the last `zfill` of `size` bytes and fills those with zeros.
inline void __pipeline_memcpy_async(void* to, const void* from, size_t size, size_t zfill = 0,
                                    CPU_DEVICE_WHERE) {
  cpu_device::copy_async(to, from, static_cast<uint32_t>(size), static_cast<uint32_t>(size - zfill), where);
}
/// Closes a batch: all copies that this thread has started since it closed the last one, be it none.
inline void __pipeline_commit(CPU_DEVICE_WHERE) { cpu_device::copy_commit(where); }
/// Waits until of this thread's batches at most those `in_flight` that it closed last are unfinished. It then
/// sees what its own copies brought; nothing is said of the copies of other threads.
inline void __pipeline_wait_prior(size_t in_flight, CPU_DEVICE_WHERE) {
  cpu_device::copy_wait(static_cast<unsigned>(in_flight), "__pipeline_wait_prior", where);
}
