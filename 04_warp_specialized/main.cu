/// @file
/// The program of lesson 04: verifies the kernel and times it against cuBLAS. `04_warp_specialized --help`
/// lists what it can do.
#include "04_warp_specialized/gemm.cuh"
#include "common/host/program/run_lesson.hpp"

int main(int argc, char** argv) { return ladder::run_lesson(lesson04::lesson(), argc, argv); }
