/// @file
/// Clocks of a step from parts: by hand for each kind of kernel, and records that lack a part.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <string>

#include "common/host/program/results.hpp"
#include "common/model/parts.hpp"
#include "common/testing/temporary_directory.hpp"

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using ladder::model::clocks_of_epilogue;
using ladder::model::clocks_of_exchange;
using ladder::model::clocks_of_step;
using ladder::model::landed_ns;
using ladder::model::Mover;
using ladder::model::Paces;
using ladder::model::Parts;

namespace parts_test {
namespace {

/// A load that takes as long at any pace down to the fastest.
Paces at_any_pace(double fastest, double landed) { return {{fastest, landed}, {10000, landed}}; }

/// Round numbers, so that sums can be made by hand. A product of 128 x 128 takes 512 clocks; at 1000 MHz, as
/// StepKind has it, clocks are ns.
const Parts kParts = {.load_128 = at_any_pace(400, 1400),
                      .load_256 = at_any_pace(600, 1700),
                      .load_steady = at_any_pace(400, 1300),
                      .async = at_any_pace(400, 1250),
                      .registers = at_any_pace(400, 1600),
                      .copy_meets = 180,
                      .product_meets = 40,
                      .async_asked = 200,
                      .hand_over = 130,
                      .sync = 30,
                      .fence_and_sync = 210,
                      .drain = 60,
                      .stage_128 = 150,
                      .stage_256 = 400,
                      .store_128 = 1100,
                      .store_256 = 2100,
                      .store_registers = 2000,
                      .exchange = 3800,
                      .launch = 2500};

double step(Mover mover, int tile_n, int slots, int blocks = 1) {
  return clocks_of_step(kParts, {mover, tile_n, slots, blocks});
}

/// As `ladder parts --json` writes a row.
std::string row(const std::string& part, const std::string& settings, double clocks, double mhz = 2000) {
  return R"({"part":")" + part + R"(","settings":{)" + settings + R"(},"clocks":)" + std::to_string(clocks) +
         R"(,"mhz":)" + std::to_string(mhz) + "}";
}

}  // namespace

TEST_CASE(
    "A slot goes round in a load, a hand-over, a product and its drain, until the tensor cores are busy") {
  constexpr double kRound = 1400 + 130 + 512 + 60;
  CHECK(step(Mover::role, 128, 1) == Approx(kRound));
  CHECK(step(Mover::role, 128, 2) == Approx(kRound / 2));
  CHECK(step(Mover::role, 128, 4) == Approx(kRound / 4));
  CHECK(step(Mover::role, 128, 5) == Approx(512));
  CHECK(step(Mover::role, 256, 1) == Approx(1700 + 130 + 1024 + 60));
  CHECK(step(Mover::role, 256, 3) == Approx(1024));
  CHECK(step(Mover::thread, 128, 1) == Approx(1400 + 512 + 60 + 30));
  CHECK(step(Mover::registers, 128, 1) == Approx(1600 + 210 + 512 + 60 + 30));
  // Two blocks hold each other's copies and products up.
  constexpr double kOfTwo = 1600 + 180 + 210 + 512 + 60 + 40 + 30;
  CHECK(step(Mover::registers, 128, 1, 2) == Approx(kOfTwo / 2 + 512 * 512 / (4 * kOfTwo)));
}

TEST_CASE("Threads that copy and multiply in turn need a turn in each step, however many slots there are") {
  CHECK(step(Mover::cp_async, 128, 1) == Approx(1250 + 210 + 512 + 60 + 30));
  CHECK(step(Mover::cp_async, 128, 2) == Approx(1250 + 210));
  CHECK(step(Mover::cp_async, 128, 3) == Approx(200 + 210 + 512 + 60));
  CHECK(step(Mover::cp_async, 128, 5) == step(Mover::cp_async, 128, 3));
}

TEST_CASE(
    "Without roles a slot is filled as with them, from three slots on half a product and a step later") {
  CHECK(step(Mover::thread_behind, 128, 2) == step(Mover::role, 128, 2));
  CHECK(step(Mover::thread_behind, 128, 3) == Approx((1400 + 130 + 256) / 2.));
  CHECK(step(Mover::thread_behind, 128, 3) > 1.2 * step(Mover::role, 128, 3));
}

TEST_CASE("Two blocks halve a step, and wait for each other at the tensor cores") {
  // One load on its way in each block comes at a steady pace.
  constexpr double kSteady = 1300 + 130 + 512 + 60;
  CHECK(step(Mover::role, 128, 1, 2) == Approx(kSteady / 2 + 512. * 512 / (4 * kSteady)));
  constexpr double kRound = 1400 + 130 + 512 + 60, kMet = 512. * 512 / (4 * kRound);
  CHECK(step(Mover::role, 128, 2, 2) == Approx(kRound / 4 + 2 * kMet));
  CHECK(step(Mover::role, 128, 8, 2) == Approx(512));
  constexpr double kTurn = 200 + 210 + 512 + 60;
  CHECK(step(Mover::cp_async, 128, 3, 2) == Approx(kTurn / 2 + 512. * 512 / (4 * kTurn)));
}

TEST_CASE("A load takes longer where loads come more often, and keeps its time at another clock") {
  const Paces paces = {{400, 1600}, {800, 1000}, {1200, 800}};
  CHECK(landed_ns(paces, 100) == Approx(1600));
  CHECK(landed_ns(paces, 600) == Approx(1300));
  CHECK(landed_ns(paces, 1000) == Approx(900));
  CHECK(landed_ns(paces, 5000) == Approx(800));
  Parts parts = kParts;
  parts.load_128 = paces;
  // Two slots: 2 x = load + 702, and the load of a step of x is 1000 - (x - 800) / 2.
  CHECK(clocks_of_step(parts, {Mover::role, 128, 2, 1}) == Approx((1400 + 702) / 2.5).epsilon(1e-4));
  // At twice the clock a load has twice the clocks, and all else has as many. A step of x clocks lasts x / 2
  // ns: 2 x = 2 (1000 + 1.5 (800 - x / 2)) + 702.
  CHECK(clocks_of_step(parts, {Mover::role, 128, 2, 1, 2000}) == Approx((4400 + 702) / 3.5).epsilon(1e-4));
  // Measured paces scatter: a slower one may have the longer load. One slot: x = load + 702.
  parts.load_128 = {{400, 1000}, {800, 900}, {1200, 1100}, {3000, 1100}};
  CHECK(clocks_of_step(parts, {Mover::role, 128, 1, 1}) == Approx(1100 + 702));
  parts.load_128 = paces;
  // However many slots there are, loads come no faster than the fastest.
  CHECK(clocks_of_step(parts, {Mover::role, 128, 9, 1, 2000}) == Approx(800));
}

TEST_CASE("What takes the time of a step is named") {
  const auto bound = [](Mover mover, int slots) {
    return std::string(ladder::model::bound_of_step(kParts, {mover, 128, slots, 1}));
  };
  CHECK(bound(Mover::role, 1) == "load + compute");
  CHECK(bound(Mover::role, 2) == "load");
  CHECK(bound(Mover::role, 5) == "tensor cores");
  CHECK(bound(Mover::cp_async, 2) == "load");
  CHECK(bound(Mover::cp_async, 3) == "copy, then compute");
}

TEST_CASE("A wide tile is stored panel after panel, and an exchange halves the panels") {
  // A panel: a quarter of 400 and a barrier; each store but the last: 1100 - 500.
  CHECK(clocks_of_epilogue(kParts, {Mover::role, 256, 4, 1}) == Approx(4 * 310 + 3 * 600));
  CHECK(clocks_of_epilogue(kParts, {Mover::role, 128, 4, 1}) == Approx(150 + 210));
  CHECK(clocks_of_epilogue(kParts, {Mover::cp_async, 128, 4, 1}) == Approx(2000));
  CHECK(clocks_of_epilogue(kParts, {Mover::role, 128, 1, 2}) == 0);
  CHECK(clocks_of_exchange(kParts, {Mover::role, 256, 4, 1}) == Approx(3800 - 2 * 310 - 2 * 600));
}

TEST_CASE("What a record of parts lacks, or has twice, is named") {
  const ladder::testing::TemporaryDirectory folder;
  const std::string path = folder.file("parts.json"), paces_path = folder.file("paces.json");
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return ladder::model::read_parts("--results", {path, paces_path, ""});
  };
  CHECK_THROWS_WITH(read("[]"), ContainsSubstring("--results '" + path + "': is no record of parts"));
  CHECK_THROWS_WITH(read(R"({"max_clock_mhz":2000,"runs":[]})"),
                    ContainsSubstring("has no row 'tile, 32 KB, 3 in flight"));
  const std::string tile =
      row("tile", R"("size":"32 KB","in_flight":"3 in flight","rows":"whole lines","from":"memory")", 700);
  CHECK_THROWS_WITH(read(R"({"max_clock_mhz":2000,"runs":[)" + tile + "," + tile + "]}"),
                    ContainsSubstring("has several rows 'tile, 32 KB, 3 in flight"));
}

TEST_CASE("Loads are read in ns, the fastest pace first") {
  const ladder::testing::TemporaryDirectory folder;
  const std::string recorded = *ladder::newest_result_file(LADDER_RESULTS_DIR "/experiments", "-parts.json");
  const std::string paces_path = folder.file("paces.json"), path = folder.file("path.json");
  const auto paced = [](const char* way, const char* what, double clocks) {
    return row("paced",
               std::string(R"("size":"32 KB","rows":"whole lines","every":"0","way":")") + way +
                   R"(","what":")" + what + '"',
               clocks);
  };
  const std::string async = paced("cp.async", "landed", 1500) + "," + paced("cp.async", "interval", 1000);
  std::string steady;
  for (const int every : {600, 700, 800, 1000, 1200, 1400, 1700, 2000, 2400})
    for (const char* what : {"landed", "interval"})
      steady += "," + row("paced",
                          R"("size":"32 KB","way":"TMA","every":")" + std::to_string(every) +
                              R"(","what":")" + what + '"',
                          std::string(what) == "landed" ? 1400 : every + 20);
  const auto read = [&](const std::string& rows) {
    std::ofstream(paces_path) << R"({"max_clock_mhz":2000,"runs":[)" << rows << "]}";
    return ladder::model::read_parts("--results", {recorded, paces_path, path});
  };
  CHECK_THROWS_WITH(read(async),
                    ContainsSubstring("--results '" + paces_path + "': has no row 'paced, through"));
  const std::string good = async + "," + paced("through registers", "landed", 1400) + "," +
                           paced("through registers", "interval", 900) + steady;
  CHECK_THROWS_WITH(read(good), ContainsSubstring("--results '" + path + "': cannot be read"));
  const auto met = [](const char* what, const char* beside, double clocks) {
    return row("path",
               std::string(R"("way":"through registers","what":")") + what + R"(","beside":")" + beside + '"',
               clocks, std::string(beside) == "alone" ? 2000 : 1600);
  };
  const std::string products = met("a product", "alone", 750) + "," + met("a product", "beside copies", 800) +
                               "," + met("a copy", "beside products", 1600);
  std::ofstream(path) << R"({"runs":[)" << products << "]}";
  CHECK_THROWS_WITH(read(good), ContainsSubstring("--results '" + path + "': has no row 'path, through"));
  std::ofstream(path) << R"({"runs":[)" << products + "," + met("a copy", "alone", 1200) << "]}";
  const Parts parts = read(good);
  // 1000 ns instead of 600: 640 clocks for two products, of 800 clocks each, in the copy's 1600.
  CHECK(parts.copy_meets == Approx(320));
  CHECK(parts.product_meets == Approx(50));
  REQUIRE(parts.async.size() == 3);
  CHECK(parts.async[1].interval_ns == Approx(500));
  CHECK(parts.async[1].landed_ns == Approx(750));
  REQUIRE(parts.load_steady.size() == 9);
  CHECK(parts.load_steady.front().interval_ns == Approx(310));
  CHECK(parts.load_steady.front().landed_ns == Approx(700));
  for (const Paces* paces :
       {&parts.load_128, &parts.load_256, &parts.load_steady, &parts.async, &parts.registers})
    for (size_t i = 1; i < paces->size(); ++i) {
      CHECK((*paces)[i - 1].interval_ns < (*paces)[i].interval_ns);
      CHECK((*paces)[i - 1].landed_ns >= (*paces)[i].landed_ns);
    }
}

}  // namespace parts_test
