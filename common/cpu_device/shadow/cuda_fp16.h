/// @file
/// Shadow of <cuda_fp16.h>.
#pragma once
#error "<cuda_fp16.h> exists on a GPU, not on the CPU device, which has bf16: <cuda_bf16.h>"
