/// @file
/// The check of exercise 04.a: steps of rings of one to five slots.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using ladder::exercise::expect_returned;

void check() {
  for (int slots = 1; slots <= 5; ++slots)
    for (int step = 0; step < 6 * slots; ++step) {
      const std::string arguments = fmt::format("({}, {})", step, slots);
      const int lap = step / slots % 2;
      expect_returned("consumer_parity" + arguments, exercise::consumer_parity(step, slots), lap,
                      {{"the slot is on lap " + std::to_string(step / slots)}});
      expect_returned("producer_parity" + arguments, exercise::producer_parity(step, slots), lap ^ 1,
                      {{step < slots ? "no thread releases the slot on lap 0: which wait returns at once?"
                                     : "the producer waits for the release of the lap before"}});
    }
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
