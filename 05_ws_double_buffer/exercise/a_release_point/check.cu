/// @file
/// The check of exercise 05.a: loops with none to three products in flight.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using ladder::exercise::expect_returned;

void check() {
  // With one product in flight "this step" and "the oldest unfinished step" are the same, so that case comes
  // last.
  for (const int in_flight : {0, 2, 3, 1})
    for (int step = 0; step < 8; ++step) {
      const int right = step < in_flight ? -1 : step - in_flight;
      const int returned = exercise::released_in(step, in_flight);
      const std::string call = fmt::format("released_in({}, {})", step, in_flight);
      if (right >= 0 && returned == -1)
        expect_returned(call, returned, right, {{fmt::format("the product of step {} has finished", right)}});
      expect_returned(call, returned, right,
                      {{step + 1, "its product has not started"},
                       {step, "its product has started, and may be unfinished"},
                       {step - in_flight, "there is no such step: which slots have been read so far?"},
                       {step - in_flight + 1, "that product may be the oldest unfinished one"}});
      expect_returned(fmt::format("released_after({}, {})", step, in_flight),
                      exercise::released_after(step, in_flight), std::min(step, in_flight),
                      {{0, "their products are unfinished when the loop ends"},
                       {in_flight, "the loop was shorter than that"},
                       {step, "the loop has already released slots"}});
    }
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
