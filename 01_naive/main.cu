/// @file
/// The program of lesson 01: verifies the kernel and times it against cuBLAS. `01_naive --help` lists what it
/// can do.
#include "common/host/problem/lessons.hpp"
#include "common/host/program/run_lesson.hpp"

int main(int argc, char** argv) { return ladder::run_lesson(lesson01::lesson(), argc, argv); }
