/// @file
/// The program of lesson 05: verifies the kernel and times it against cuBLAS. `05_ws_double_buffer --help`
/// lists what it can do.
#include "common/host/problem/lessons.hpp"
#include "common/host/program/run_lesson.hpp"

int main(int argc, char** argv) { return ladder::run_lesson(lesson05::lesson(), argc, argv); }
