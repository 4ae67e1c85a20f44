/// @file
/// The program of lesson 02: verifies the kernel and times it against cuBLAS. `02_tiled --help` lists what it
/// can do.
#include "common/host/problem/lessons.hpp"
#include "common/host/program/run_lesson.hpp"

int main(int argc, char** argv) { return ladder::run_lesson(lesson02::lesson(), argc, argv); }
