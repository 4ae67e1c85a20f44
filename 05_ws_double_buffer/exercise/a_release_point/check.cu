/// @file
/// The check of exercise 05.a: loops with none to three products in flight.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using ladder::exercise::expect_returned;

void check() {
  for (int in_flight = 0; in_flight <= 3; ++in_flight)
    for (int step = 0; step < 8; ++step) {
      expect_returned(fmt::format("released_in({}, {})", step, in_flight),
                      exercise::released_in(step, in_flight), step < in_flight ? -1 : step - in_flight,
                      {{step, "its product has been started, and may be unfinished"},
                       {step - in_flight, "there is no such step: what has been read so far?"},
                       {step - in_flight + 1, "that product may be the oldest that is unfinished"},
                       {step - in_flight - 1, "that slot has been released in the step before"}});
      expect_returned(fmt::format("released_after({}, {})", step, in_flight),
                      exercise::released_after(step, in_flight), std::min(step, in_flight),
                      {{0, "their products are unfinished when the loop ends"},
                       {in_flight, "the loop was shorter than that"},
                       {step, "most have been released in the loop"}});
    }
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
