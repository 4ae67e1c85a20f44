/// @file
/// The check of exercise 04.c: one to three warpgroups, and all ways to release.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using ladder::exercise::expect_returned;

void check() {
  struct Way {
    exercise::Release release;
    const char* name;
    int arrivals;  // by each warpgroup
  };
  const Way ways[] = {{exercise::Release::one_thread_of_each_warpgroup, "one_thread_of_each_warpgroup", 1},
                      {exercise::Release::one_lane_of_each_warp, "one_lane_of_each_warp", 4},
                      {exercise::Release::every_thread, "every_thread", 128}};
  for (int warpgroups = 1; warpgroups <= 3; ++warpgroups)
    for (const Way& way : ways) {
      const int boxes = 1 + warpgroups;
      const exercise::Counts loader = exercise::loader_to_compute(warpgroups, boxes, way.release);
      const std::string call = fmt::format("loader_to_compute({}, {}, {})", warpgroups, boxes, way.name);
      expect_returned(call + ".full", loader.full, 1,
                      {{boxes, "a box completes bytes, and is no arrival"},
                       {boxes + 1, "a box completes bytes, and is no arrival"},
                       {32, "one thread loads, not its warp"}});
      expect_returned(call + ".empty", loader.empty, way.arrivals * warpgroups,
                      {{way.arrivals, "each warpgroup releases the slot"}, {"which threads arrive?"}});
      const exercise::Counts compute = exercise::compute_to_storer(warpgroups);
      const std::string storer = fmt::format("compute_to_storer({})", warpgroups);
      expect_returned(storer + ".full", compute.full, 128 * warpgroups,
                      {{warpgroups, "each thread stages a part, so each must arrive"},
                       {4 * warpgroups, "each thread stages a part, so each must arrive"}});
      expect_returned(storer + ".empty", compute.empty, 1, {{"one thread stores"}});
    }
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
