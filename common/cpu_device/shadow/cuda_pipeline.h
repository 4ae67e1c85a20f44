/// @file
/// Shadow of <cuda_pipeline.h>.
#pragma once
#include <cuda_pipeline_primitives.h>
