/// @file
/// A kernel that must not compile: without __launch_bounds__, ptxas ignores setmaxnreg and only remarks on
/// it.

__global__ void ignored_setmaxnreg() { asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); }
