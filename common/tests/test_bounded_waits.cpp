/// @file
/// What is said of waits that gave up. That they give up is tested on a GPU, in test_bounded_waits.cu.
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "common/cuda/bounded_waits.hpp"

using ladder::describe_stuck_waits;
using ladder::waits::Report;

namespace {

constexpr unsigned kLine = __LINE__ + 1;
// smem.pipe_lc.init(1, kWarpgroups);

/// As a kernel does it when it initialises the full end of a pipeline in that line.
void note(Report& report, uint32_t address, int slot) {
  static uint32_t next = 0;
  ladder::BarrierNote& place = report.notes[next++ % Report::kNotes];
  place = {.launch = 1, .address = address, .line = kLine, .slot = slot, .end = "full", .file = {}};
  std::strncpy(place.file, __FILE__, sizeof place.file - 1);
}

}  // namespace

TEST_CASE("Where no wait gave up there is nothing to say") { CHECK(describe_stuck_waits({}).empty()); }

TEST_CASE(
    "Neighbouring warps that waited for the same share a line, and a barrier without a name has an address") {
  Report report{};
  report.block = 17;
  report.limit_ms = 2000;
  note(report, 0x1400, 1);
  for (uint32_t warp = 0; warp < 4; ++warp) report.warps[warp] = {1, 0x1400, 0};
  for (uint32_t warp = 4; warp < 8; ++warp) report.warps[warp] = {1, 0x1400, 1};
  report.warps[31] = {1, 0x1408, 0};
  CHECK(describe_stuck_waits(report) ==
        "block 17, warps 0-3 waited 2 s for pipe_lc.full[1], phase of parity 0: still pending\n"
        "block 17, warps 4-7 waited 2 s for pipe_lc.full[1], phase of parity 1: still pending\n"
        "block 17, warp 31 waited 2 s for the mbarrier at 0x1408 of shared memory, phase of parity 0: still "
        "pending");
}

TEST_CASE("A barrier has its name in every block of a cluster, whose ranks stand in the addresses") {
  Report report{};
  report.block = 11;
  report.limit_ms = 2000;
  note(report, 0x34408, 0);
  report.warps[0] = {1, 0x1034408, 0};
  CHECK(describe_stuck_waits(report) ==
        "block 11, warp 0 waited 2 s for pipe_lc.full[0], phase of parity 0: still pending");
}
