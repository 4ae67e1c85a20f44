/// @file
/// The program of lesson 06: verifies the kernel and times it against cuBLAS. `06_clusters_dsmem --help`
/// lists what it can do.
#include "common/host/problem/lessons.hpp"
#include "common/host/program/run_lesson.hpp"

int main(int argc, char** argv) { return ladder::run_lesson(lesson06::lesson(), argc, argv); }
