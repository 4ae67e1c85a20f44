/// @file
/// The program of the dual GEMM: verifies it and times it against separate kernels. `05_dual_gemm --help`
/// lists what it can do.
#include "05_ws_double_buffer/variants/dual_gemm.cuh"
#include "common/host/program/run_lesson.hpp"

int main(int argc, char** argv) { return ladder::run_lesson(lesson05::dual::lesson(), argc, argv); }
