/// @file
/// The kernels of the cube: each is right at the trip counts where rings go wrong, and what does not fit is
/// refused.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>

#include "05_ws_double_buffer/variants/cube.hpp"
#include "common/testing/gemm_checks.hpp"

using ladder::Shape;
using ladder::testing::check_gemm_by_turns;
using ladder::testing::check_ring;
using ladder::testing::expect_refused;
using ladder::testing::skip_unless_runnable;

namespace {

const ladder::Lesson& cube() { return lesson05::cube::lesson(); }

}  // namespace

TEST_CASE("05: without roles a ring of any depth survives any number of steps") {
  skip_unless_runnable(cube());
  const int slots = GENERATE(1, 2, 4);
  const std::string in_flight = GENERATE("0", "1");
  if (slots == 1 && in_flight == "1") return;
  check_ring(
      cube(), slots,
      [](int steps) {
        return Shape{128, 128, 64 * steps};
      },
      {{"roles", "off"}, {"slots", std::to_string(slots)}, {"in_flight", in_flight}}, 2);
}

TEST_CASE("05: without roles the ring goes on from tile to tile") {
  skip_unless_runnable(cube());
  const auto slots = GENERATE("1", "3");
  // The last: behind the last tile there is a group of tiles without rows.
  const auto shape = GENERATE(Shape{128, 128 * 9, 64}, Shape{128 * 5, 128 * 2, 192}, Shape{129, 136, 200},
                              Shape{128 * 16, 128, 64});
  check_gemm_by_turns(cube(), shape, {{"roles", "off"}, {"slots", slots}});
}

TEST_CASE("05: every corner of the cube multiplies") {
  skip_unless_runnable(cube());
  const auto roles = GENERATE("on", "off");
  const auto slots = GENERATE("1", "2", "3", "4");
  const auto blocks = GENERATE("1", "2");
  if (std::string(blocks) == "2" && std::stoi(slots) > 2) return;
  check_gemm_by_turns(cube(), {257, 264, 136}, {{"roles", roles}, {"slots", slots}, {"blocks", blocks}});
}

TEST_CASE("05: what does not fit on a multiprocessor, or into a ring, is refused") {
  skip_unless_runnable(cube());
  expect_refused(cube(), {128, 128, 64}, {{"slots", "4"}, {"blocks", "2"}}, {"--blocks 2", "4 slots"});
  expect_refused(cube(), {128, 128, 64}, {{"slots", "1"}, {"in_flight", "1"}},
                 {"--in_flight 1", "two slots"});
}
