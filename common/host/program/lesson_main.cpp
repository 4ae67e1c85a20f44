/// @file
/// The program of a lesson, which is in the namespace LADDER_LESSON: verifies its kernels and times them
/// against cuBLAS. `01_naive --help` lists what it can do.
#include "common/host/program/run_lesson.hpp"

namespace LADDER_LESSON {
const ladder::Lesson& lesson();
}  // namespace LADDER_LESSON

int main(int argc, char** argv) { return ladder::run_lesson(LADDER_LESSON::lesson(), argc, argv); }
