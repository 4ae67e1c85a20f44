/// @file
/// The program of lesson 04: verifies the kernel and times it against cuBLAS. `04_warp_specialized --help`
/// lists what it can do.
#include "common/host/problem/lessons.hpp"
#include "common/host/program/run_lesson.hpp"

int main(int argc, char** argv) { return ladder::run_lesson(lesson04::lesson(), argc, argv); }
