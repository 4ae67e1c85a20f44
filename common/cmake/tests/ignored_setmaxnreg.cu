/// @file
/// A kernel that must not compile: without __launch_bounds__, ptxas ignores setmaxnreg and only remarks on
/// it.
#include "common/ptx/registers.cuh"

__global__ void ignored_setmaxnreg() { ptx::setmaxnreg_dec<40>(); }
