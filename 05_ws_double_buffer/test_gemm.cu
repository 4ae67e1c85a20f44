/// @file
/// Lesson 05's kernel: a ring of slots between roles, at the trip counts where parities go wrong; ratios of
/// roles; epilogues.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "04_warp_specialized/variants/roles_without_wgmma.cuh"
#include "common/host/device/device.hpp"
#include "common/host/measure/contender.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"
#include "common/host/verify/verifier.hpp"
#include "common/testing/gemm_checks.hpp"

using Catch::Matchers::ContainsSubstring;
using ladder::Shape;
using ladder::testing::check_gemm;
using ladder::testing::check_gemm_by_turns;
using ladder::testing::check_gemm_on_three_schedules;
using ladder::testing::check_ring;
using ladder::testing::expect_refused;
using ladder::testing::loaders_without_wgmma;
using ladder::testing::skip_unless_runnable;
using lesson04::without_wgmma::slots_that_fit;

namespace {
/// A ring, and the extent of its tile.
struct Choice {
  std::string ratio;
  int slots, rows, columns;
};

/// The kernels of the lesson that have no variant's knob.
const ladder::Settings kRing{{"step", "ring"}}, kPieces{{"step", "pieces"}},
    kWide{{"step", "wide"}, {"tile", "128x256"}}, kRegisters{{"tile", "128x256"}};

/// These settings, with a ring of so many slots.
ladder::Settings with_slots(ladder::Settings settings, const std::string& slots) {
  settings["slots"] = slots;
  return settings;
}

/// The most that `--slots` may ask for on this device.
int slots_without_wgmma() { return slots_that_fit(5, ladder::device_info().block_shared_bytes); }
}  // namespace

TEST_CASE("05: a ring of any depth survives any number of steps") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto& kernel = GENERATE(kRing, kPieces, kWide, kRegisters);
  const int slots = GENERATE(1, 2, 3, 4);
  check_ring(
      lesson05::lesson(), slots,
      [](int steps) {
        return Shape{128, 256, 64 * steps};
      },
      with_slots(kernel, std::to_string(slots)), 2);
}

TEST_CASE("05: the ring turns on from tile to tile") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto& kernel = GENERATE(kRing, kPieces, kWide, kRegisters);
  const int slots = GENERATE(2, 3, 4);
  const int steps = GENERATE(1, 3, 5);  // of K: a tile ends at another slot each time
  const Shape shape = steps == 1   ? Shape{128, 256 * 9, 64}
                      : steps == 3 ? Shape{128 * 5, 256 * 2, 64 * 3}
                                   : Shape{128 * 3, 256 * 3, 64 * 5};
  const ladder::Settings settings = with_slots(kernel, std::to_string(slots));
  // Every number of slots and every number of steps is tried on three schedules.
  if (slots == 2 + steps / 2)
    check_gemm_on_three_schedules(lesson05::lesson(), shape, settings, 1);
  else
    check_gemm_by_turns(lesson05::lesson(), shape, settings);
}

TEST_CASE("05: edges are cut by TMA") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto& kernel = GENERATE(kRing, kPieces, kWide, kRegisters);
  const auto shape =
      GENERATE(Shape{1, 8, 8},         // the smallest
               Shape{1, 264, 72},      // one row
               Shape{130, 8, 64},      // the fewest columns
               Shape{65, 136, 200},    // the second warpgroup has one row, the third panel 8 columns
               Shape{257, 520, 136});  // nothing fits
  check_gemm_by_turns(lesson05::lesson(), shape, kernel);
}

TEST_CASE("05: the wide tile is taken where every multiprocessor gets one, and can be forced") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const ladder::Lesson& lesson = lesson05::lesson();
  const Shape few{128, 256, 64}, many{128 * 20, 256 * 20, 64};
  for (const ladder::Settings& step : {ladder::Settings{}, ladder::Settings{{"step", "wide"}}}) {
    CHECK_THAT(lesson.remark(few, lesson.settings(step)), ContainsSubstring("--tile auto takes 128x128"));
    CHECK(lesson.remark(many, lesson.settings(step)).empty());
    check_gemm(lesson, few, step);
  }
  CHECK(lesson.remark(few, lesson.settings(kWide)).empty());
  CHECK(lesson.remark(few, lesson.settings(kPieces)).empty());
  check_gemm(lesson, few, {{"tile", "128x128"}});
  CHECK(lesson.resources(lesson.settings({{"tile", "128x128"}})).tile == "128x128");
  expect_refused(lesson, few, {{"tile", "128x256"}, {"step", "ring"}}, {"--tile 128x256"});
  expect_refused(lesson, few, {{"tile", "128x256"}, {"ratio", "1:1"}}, {"--tile 128x256"});
}

TEST_CASE("05: every order of tiles covers C") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto group = GENERATE("1", "4", "8", "16");
  check_gemm(lesson05::lesson(), {128 * 9 + 8, 256 * 3, 64}, {{"group", group}});
}

TEST_CASE("05: every ratio of roles survives any number of steps") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto [ratio, slots, rows, columns] = GENERATE(Choice{"1:1", 2, 64, 256}, Choice{"1:1", 5, 64, 256},
                                                      Choice{"1:3", 2, 192, 128}, Choice{"1:3", 5, 192, 128});
  check_ring(lesson05::lesson(), slots,
             [rows = rows, columns = columns](int steps) {
               return Shape{rows, columns, 64 * steps};
             },
             {{"slots", std::to_string(slots)}, {"ratio", ratio}});
}

TEST_CASE("05: a kernel that finishes C itself survives any number of steps") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const int slots = GENERATE(2, 3, 4);
  check_ring(lesson05::lesson(), slots,
             [](int steps) {
               return Shape{128, 256, 64 * steps};
             },
             {{"slots", std::to_string(slots)}, {"epilogue", "bias_relu"}});
}

TEST_CASE("05: every ratio of roles covers C, tile after tile, and its edges") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto ratio = GENERATE("1:1", "1:3");
  const auto shape = GENERATE(Shape{192 * 2 + 65, 256 * 2 + 72, 200}, Shape{1, 8, 8}, Shape{130, 136, 64});
  check_gemm_by_turns(lesson05::lesson(), shape, {{"ratio", ratio}, {"slots", "3"}});
}

TEST_CASE("05: an epilogue finishes every element, as separate kernels do") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto epilogue = GENERATE("bias_relu", "bias_gelu");
  const auto ratio = GENERATE("1:1", "1:2", "1:3");
  const auto shape =
      GENERATE(Shape{192, 256, 128},  // GELU is far from ReLU where sums are small: few products
               Shape{65, 136, 200}, Shape{1, 8, 8}, Shape{257, 520, 16});
  check_gemm_by_turns(lesson05::lesson(), shape, {{"ratio", ratio}, {"epilogue", epilogue}});
}

TEST_CASE("05: the verifier sees an epilogue that is missing, or another") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto contender = [](const std::string& epilogue) {
    return ladder::contender_of(lesson05::lesson(), "05", {{"epilogue", epilogue}});
  };
  ladder::Verifier verifier({65, 136, 64}, 1);
  for (const char* wanted : {"none", "bias_relu", "bias_gelu"})
    for (const char* applied : {"none", "bias_relu", "bias_gelu"}) {
      const ladder::Contender lesson = contender(applied);
      INFO(applied << " instead of " << wanted);
      CHECK(verifier
                .check([&](const ladder::Gemm& gemm) { multiply_and_wait(lesson, gemm); },
                       contender(wanted).epilogue)
                .passed() == (std::string(wanted) == applied));
    }
}

TEST_CASE("05: an epilogue without a bias is refused") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const ladder::Gemm no_bias{nullptr, nullptr, nullptr, 128, 256, 64};
  CHECK_THROWS_WITH(
      lesson05::lesson().launch(no_bias, lesson05::lesson().settings({{"epilogue", "bias_relu"}}), nullptr),
      ContainsSubstring("--epilogue bias_relu") && ContainsSubstring("needs a bias"));
}

TEST_CASE("05: matrices and a bias whose addresses do not suit are refused") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto at = [](uintptr_t address) { return reinterpret_cast<__nv_bfloat16*>(address); };
  const auto launch = [&](const ladder::Gemm& p, const ladder::Settings& chosen) {
    lesson05::lesson().launch(p, lesson05::lesson().settings(chosen), nullptr);
  };
  CHECK_THROWS_WITH(launch({at(1024), at(1032), at(1024), 128, 256, 64}, {}),
                    ContainsSubstring("b = 0x408: must start at a multiple of 16 bytes"));
  CHECK_THROWS_WITH(
      launch({at(1024), at(1024), at(1024), 128, 256, 64, at(1026)}, {{"epilogue", "bias_relu"}}),
      ContainsSubstring("bias = 0x402: begins 2 bytes past a multiple of 4"));
}

TEST_CASE("05: a ring that does not fit is refused with its sizes") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  expect_refused(lesson05::lesson(), {128, 256, 64}, {{"slots", "5"}},
                 {"--slots 5", "48 KB", "32 KB", "227 KB"});
}

TEST_CASE("05: only the lesson's own kernel and the step to it run with one slot") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto other =
      GENERATE(std::pair("ratio", "1:1"), std::pair("epilogue", "bias_relu"),
               std::pair("consumers", "ping-pong"), std::pair("group", "4"), std::pair("in_flight", "1"));
  expect_refused(lesson05::lesson(), {128, 256, 64}, {{"slots", "1"}, {other.first, other.second}},
                 {"--slots 1"});
}

TEST_CASE("05: shared memory grows by one tile of A and one of B for each slot") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const ladder::Lesson& lesson = lesson05::lesson();
  const auto bytes = [&](const std::string& slots, const std::string& ratio) {
    return lesson.resources(lesson.settings({{"slots", slots}, {"ratio", ratio}})).shared_bytes;
  };
  for (const auto& [ratio, slot_bytes] : {std::pair("1:1", 40), std::pair("1:2", 48), std::pair("1:3", 40)}) {
    const size_t growth = bytes("3", ratio) - bytes("2", ratio);
    CHECK(growth / 1024 == static_cast<size_t>(slot_bytes));  // and the barriers, which hide in the padding
  }
  CHECK((bytes("2", "1:2") - bytes("1", "1:2")) / 1024 == 48);
  CHECK(bytes("4", "1:2") > 208 * 1024);
  CHECK(lesson.resources(lesson.settings()).tile == "128x256");
}

TEST_CASE("05: rows that TMA cannot copy are refused") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  expect_refused(lesson05::lesson(), {128, 132, 64}, {}, {"n = 132", "multiple of 8"});
  expect_refused(lesson05::lesson(), {128, 128, 63}, {}, {"k = 63", "multiple of 8"});
}

TEST_CASE("05: without wgmma a ring of any depth survives any number of steps", "[one_lane_arrives]") {
  skip_unless_runnable(lesson05::lesson());
  const int slots = GENERATE(2, 3, 4);
  if (slots > slots_without_wgmma()) SKIP("this GPU has no room for that many slots");
  for (const std::string& loader : loaders_without_wgmma())
    check_ring(lesson05::lesson(), slots,
               [](int steps) {
                 return Shape{128, 128, 64 * steps};
               },
               {{"core", "mma_sync"}, {"loader", loader}, {"slots", std::to_string(slots)}});
}

TEST_CASE("05: without wgmma the ring turns on from tile to tile, and edges are cut", "[one_lane_arrives]") {
  skip_unless_runnable(lesson05::lesson());
  const std::string slots = "2";  // as many as every GPU has room for
  const auto shape = GENERATE(Shape{128, 192 * 9, 64}, Shape{128 * 5, 192 * 2, 192}, Shape{1, 8, 8},
                              Shape{1, 136, 328}, Shape{129, 192 + 8, 136});
  const bool has_edges = shape.m % 128 != 0;
  for (const std::string& loader : loaders_without_wgmma()) {
    const ladder::Settings settings{{"core", "mma_sync"}, {"loader", loader}, {"slots", slots}};
    if (has_edges)
      check_gemm_by_turns(lesson05::lesson(), shape, settings);
    else
      check_gemm_on_three_schedules(lesson05::lesson(), shape, settings, 1);
  }
}

TEST_CASE("05: without wgmma there are as many slots as a block has room for") {
  constexpr size_t kKilobyte = 1024, kRtxBytes = 99 * kKilobyte, kA100Bytes = 163 * kKilobyte,
                   kHopperBytes = 227 * kKilobyte;
  CHECK(slots_that_fit(4, kRtxBytes) == 2);
  CHECK(slots_that_fit(4, kA100Bytes) == 4);
  CHECK(slots_that_fit(5, kA100Bytes) == 4);
  CHECK(slots_that_fit(5, kHopperBytes) == 5);
  CHECK(slots_that_fit(4, 0) == 2);

  const auto bytes = sizeof(lesson04::without_wgmma::SharedStorage<lesson04::without_wgmma::Ring<3>>);
  ladder::require_shared_memory("--slots 3", bytes, bytes);
  skip_unless_runnable(lesson05::lesson());  // the message names the device
  CHECK_THROWS_WITH(ladder::require_shared_memory("--slots 3", bytes, 99 * kKilobyte),
                    ContainsSubstring("--slots 3: a block needs 121 KB") && ContainsSubstring("99 KB"));
}

TEST_CASE("05: variants of the kernel need wgmma") {
  skip_unless_runnable(lesson05::lesson());
  for (const auto& [knob, value] : {std::pair{"consumers", "ping-pong"},
                                    {"ratio", "1:1"},
                                    {"epilogue", "bias_relu"},
                                    {"slots", "1"},
                                    {"in_flight", "1"}})
    expect_refused(lesson05::lesson(), {128, 128, 64},
                   {{"core", "mma_sync"}, {"loader", "cp_async"}, {knob, value}},
                   {std::string("--") + knob, "only with --core wgmma"});
}
