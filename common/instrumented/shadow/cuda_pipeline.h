/// @file
/// Shadow of <cuda_pipeline.h>: waits of a thread for its own copies are timed.
#pragma once
#define __pipeline_wait_prior untimed_pipeline_wait_prior
#include_next <cuda_pipeline.h>
#undef __pipeline_wait_prior

#include "common/instrumented/trace.cuh"

__device__ __forceinline__ void __pipeline_wait_prior(size_t later) {
  const ladder::trace::Span span(ladder::trace::Event::wait_copies);
  untimed_pipeline_wait_prior(later);
}
