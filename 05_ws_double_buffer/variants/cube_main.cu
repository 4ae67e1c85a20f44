/// @file
/// The program of the cube: verifies its kernels and times them in one run. `05_cube --help` lists its axes.
#include "05_ws_double_buffer/variants/cube.hpp"
#include "common/host/program/run_lesson.hpp"

int main(int argc, char** argv) { return ladder::run_lesson(lesson05::cube::lesson(), argc, argv); }
