/// @file
/// The check of exercise 04.6.
#include EXERCISE

#include "common/exercise/reversed_tiles.hpp"

int main(int argc, char** argv) {
  const auto check = [] {
    ladder::exercise::check_reversed_tiles<exercise::kTile>(exercise::launch_reverse);
  };
  return ladder::exercise::run_check(argc, argv, check, 90);
}
