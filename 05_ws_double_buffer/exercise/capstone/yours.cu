/// @file
/// The climb with the learner's kernel as a row of its own, beside lesson 05: what `ladder learn capstone
/// --run` runs. `capstone --help` lists what it can do.
namespace mine {}  // namespace mine
#include EXERCISE

#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"
#include "common/ladder/commands.hpp"

namespace {

void check(const ladder::Gemm& p, const ladder::Settings& settings) { ladder::require_tma(p, settings); }

void launch(const ladder::Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  mine::launch_gemm(p, stream);
}

const ladder::Lesson& yours() {
  static const ladder::Lesson lesson = {.name = "yours",
                                        .idea = "The kernel of the capstone.",
                                        .knobs = {ladder::wgmma_knob()},
                                        .rungs = {{.label = "my_gemm.cuh",
                                                   .settings = {},
                                                   .id = "yours",
                                                   .cause = "written from an empty file"}},
                                        .minimum_architecture = ladder::kHopper,
                                        .check = check,
                                        .launch = launch};
  return lesson;
}

}  // namespace

int main(int argc, char** argv) {
  return ladder::run_ladder({&lesson05::lesson(), &yours()}, nullptr, argc, argv);
}
