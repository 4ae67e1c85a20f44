/// @file
/// `ladder`: every lesson's rungs in one table. See `ladder --help`.
#include "common/host/lesson_registry.hpp"
#include "common/ladder/climb.hpp"

int main(int argc, char** argv) { return ladder::run_ladder(ladder::all_lessons(), argc, argv); }
