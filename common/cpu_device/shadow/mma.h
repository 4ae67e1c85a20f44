/// @file
/// Shadow of <mma.h>.
#pragma once
#error "<mma.h> (nvcuda::wmma) exists on a GPU, not on the CPU device: see common/ptx/mma_sync.cuh"
