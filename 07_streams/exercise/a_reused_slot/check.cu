/// @file
/// The check of exercise 07.a: one to four streams, one to eight slots, and several laps.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using exercise::Order;
using ladder::exercise::expect_returned;

const char* name_of(Order order) {
  return order == Order::nothing ? "nothing" : order == Order::stream ? "stream" : "event";
}

void expect_before(int batch, int streams, int slots) {
  const exercise::Before got = exercise::before_upload(batch, streams, slots);
  const std::string call = fmt::format("before_upload({}, {}, {})", batch, streams, slots);
  const int before = batch < slots ? -1 : batch - slots;
  const std::string wrong_batch =
      before < 0           ? fmt::format("no batch has used slot {} before", batch % slots)
      : got.batch < 0      ? fmt::format("slot {} was used before: by which batch?", batch % slots)
      : got.batch >= batch ? fmt::format("batch {} does not come before batch {}", got.batch, batch)
      : got.batch % slots == batch % slots
          ? "another batch has used the slot since"
          : fmt::format("batch {} uses slot {}, not slot {}", got.batch, got.batch % slots, batch % slots);
  expect_returned(call + ".batch", got.batch, before, {{wrong_batch}});

  const int of_before = before % streams, mine = batch % streams;
  const Order right = before < 0 ? Order::nothing : of_before == mine ? Order::stream : Order::event;
  const std::string why =
      right == Order::nothing ? "no batch has used the slot before"
      : right == Order::stream
          ? fmt::format("both batches are in stream {}, whose operations run in order", mine)
          : fmt::format("batch {} is in stream {} and batch {} in stream {}: do they run in order?", before,
                        of_before, batch, mine);
  ladder::exercise::expect(got.by == right, fmt::format("{}.by is {}, must be {}: {}", call, name_of(got.by),
                                                        name_of(right), why));
}

void check() {
  for (int streams = 1; streams <= 4; ++streams)
    for (int slots = 1; slots <= 8; ++slots)
      for (int batch = 0; batch < 4 * slots; ++batch) expect_before(batch, streams, slots);
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
