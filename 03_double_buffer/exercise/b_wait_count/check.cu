/// @file
/// The check of exercise 03.b: both orders, with and without empty batches, for one to four tiles ahead.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using exercise::Loads;
using ladder::exercise::expect_returned;

void expect_count(int step, int tiles, int ahead, Loads loads, bool empty_batches) {
  const bool is_before = loads == Loads::before_the_wait;
  int committed = 0;  // batches committed when the step waits
  for (int tile = 0; tile < step + ahead + (is_before ? 1 : 0); ++tile)
    committed += tile < tiles || empty_batches;
  const int right = committed - 1 - step;
  const std::string call = fmt::format("unfinished({}, {}, {}, {}, {})", step, tiles, ahead,
                                       is_before ? "before_the_wait" : "after_the_wait", empty_batches);
  const int got = exercise::unfinished(step, tiles, ahead, loads, empty_batches);
  const std::string newest = committed > tiles ? "the newest batch is an empty one"
                                               : fmt::format("the newest batch is tile {}'s", committed - 1);
  const std::string too_many =
      fmt::format("{} when the step waits: with that count, tile {}'s may be unfinished", newest, step);
  const std::string too_few =
      right - got == 1 ? fmt::format("that waits for the batch after tile {}'s, too", step)
                       : fmt::format("that waits for the {} batches after tile {}'s, too", right - got, step);
  std::vector<ladder::exercise::Slip> slips;
  if (is_before && got == right - 1)
    slips.push_back({fmt::format("tile {}'s batch has been committed before the wait", step + ahead)});
  slips.push_back({got < 0 ? "a count is at least 0" : got < right ? too_few : too_many});
  expect_returned(call, got, right, slips);
}

void check() {
  for (const bool empty_batches : {true, false})
    for (const Loads loads : {Loads::after_the_wait, Loads::before_the_wait})
      for (int ahead = 1; ahead <= 4; ++ahead)
        for (int tiles = 3 * ahead; tiles >= 1; --tiles)
          for (int step = 0; step < tiles; ++step) expect_count(step, tiles, ahead, loads, empty_batches);
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
