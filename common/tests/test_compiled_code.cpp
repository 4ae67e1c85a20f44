/// @file
/// What was compiled decides what runs: tried for every build and GPU of interest, without either.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "common/host/base/text.hpp"
#include "common/host/device/compiled_code.hpp"
#include "common/host/device/device.hpp"

namespace {

using ladder::Code;
using ladder::Requirement;
using ladder::Target;

/// One entry of CMAKE_CUDA_ARCHITECTURES.
struct Architecture {
  int number;
  bool specific, real, ptx;
};

Architecture parse(const std::string& entry) {
  size_t digits = 0;
  const int number = std::stoi(entry, &digits);
  const std::string rest = entry.substr(digits);
  const bool specific = !rest.empty() && rest.front() == 'a';
  const std::string kind = rest.substr(specific ? 1 : 0);
  return {number, specific, kind != "-virtual", kind != "-real"};
}

/// What the driver takes: machine code of the same generation, the newest that is not newer than the GPU;
/// else the newest PTX. What has an `a` is for that architecture alone.
Code code_for(const std::string& architectures, int capability) {
  Code machine_code, ptx;
  for (const std::string& entry : ladder::split(architectures, ',')) {
    const Architecture a = parse(entry.substr(entry.find_first_not_of(' ')));
    const bool fits = a.specific ? a.number == capability : a.number <= capability;
    if (!fits) continue;
    const auto take = [&](Code& best) {
      if (a.number > best.architecture || (a.number == best.architecture && a.specific))
        best = {a.number, a.specific};
    };
    if (a.real && a.number / 10 == capability / 10) take(machine_code);
    if (a.ptx) take(ptx);
  }
  return machine_code.architecture ? machine_code : ptx;
}

Target target(const std::string& architectures, int capability) {
  return {"a GPU", capability, architectures, code_for(architectures, capability)};
}

const Requirement kFrom02To03{ladder::kTuring, {"auto", "wgmma", "mma_sync", "fma"}};
const Requirement kTma{ladder::kHopper, {"auto", "wgmma", "mma_sync"}};
const Requirement kClusters{ladder::kHopper, {"auto", "wgmma"}};

bool says(const std::string& text, const std::vector<std::string>& words) {
  return std::all_of(words.begin(), words.end(),
                     [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

}  // namespace

TEST_CASE("compiled code: the best core is the best of what was compiled and the GPU has") {
  struct Row {
    const char* architectures;
    int capability;
    const char* core;  ///< "": nothing runs
    bool tma, clusters;
  };
  const std::vector<Row> rows = {
      // Built for the GPU itself.
      {"75-real", 75, "fma", false, false},
      {"80-real", 80, "mma_sync", false, false},
      {"86-real", 86, "mma_sync", false, false},
      {"89-real", 89, "mma_sync", false, false},
      {"90-real", 90, "mma_sync", true, false},
      {"90a-real", 90, "wgmma", true, true},
      {"100-real", 100, "mma_sync", true, false},
      {"120-real", 120, "mma_sync", true, false},
      // The build is older than the GPU.
      {"75-virtual", 90, "fma", false, false},
      {"80-virtual", 90, "mma_sync", false, false},
      {"80-virtual", 120, "mma_sync", false, false},
      {"90", 90, "mma_sync", true, false},
      {"90-virtual", 90, "mma_sync", true, false},
      {"90", 120, "mma_sync", true, false},
      {"80-real", 86, "mma_sync", false, false},
      // The build is for another GPU.
      {"80-real", 75, "", false, false},
      {"80-real", 90, "", false, false},
      {"90a-real", 80, "", false, false},
      {"90a-real", 100, "", false, false},
      {"90a", 120, "", false, false},
      {"100-real", 120, "", false, false},
      // Several at a time.
      {"80-real, 90a-real, 120-real", 90, "wgmma", true, true},
      {"80-real, 90a-real, 120-real", 89, "mma_sync", false, false},
      {"80-real, 90a-real, 120-real", 120, "mma_sync", true, false},
      {"80-virtual, 90a-real", 100, "mma_sync", false, false},
      {"90, 90a", 90, "wgmma", true, true},
  };
  for (const Row& row : rows) {
    const Target here = target(row.architectures, row.capability);
    INFO(row.architectures << " on sm_" << row.capability);
    const std::string core = row.core;
    CHECK(ladder::why_no_code(here).empty() == !core.empty());
    if (core.empty()) continue;
    CHECK(ladder::best_core(here.code) == core);
    CHECK(ladder::why_not(kFrom02To03, here).empty());
    CHECK(ladder::why_not(kTma, here).empty() == row.tma);
    CHECK(ladder::why_not(kClusters, here).empty() == row.clusters);
    // Each core that is as good or worse is there as well, and none that is better.
    bool has = false;
    for (const char* one : {"wgmma", "mma_sync", "fma"}) {
      has = has || core == one;
      CHECK(ladder::has_core(here.code, one) == has);
      CHECK(ladder::why_not({ladder::kTuring, {one}}, here).empty() == has);
    }
  }
}

TEST_CASE("compiled code: a refusal names the build, the GPU, and the build that would do") {
  CHECK(ladder::why_not(kClusters, target("80-virtual", 90)) ==
        "needs code for sm_90a, which alone has wgmma; this build is for 80-virtual, of which a GPU (sm_90) "
        "runs the "
        "code for sm_80; configure with -DCMAKE_CUDA_ARCHITECTURES=90a-real");
  CHECK(says(ladder::why_not(kTma, target("80-virtual", 120)),
             {"needs code for sm_90 or later", "80-virtual", "sm_120", "=120-real"}));
  CHECK(says(ladder::why_not({ladder::kTuring, {"mma_sync"}}, target("75-virtual", 86)),
             {"needs code for sm_80 or later", "75-virtual", "sm_86", "=86-real"}));
  CHECK(says(ladder::why_no_code(target("90a-real", 80)),
             {"this build is for 90a-real", "a GPU (sm_80) runs none of its code", "=80-real"}));

  // No build would do.
  CHECK(ladder::why_not(kTma, target("80-real", 80)).find("configure") == std::string::npos);
  CHECK(ladder::why_not(kClusters, target("120-real", 120)).find("configure") == std::string::npos);
}

TEST_CASE("compiled code: of a GPU older than sm_75 one sentence says that no lesson runs on it") {
  for (const char* architectures : {"80-real", "70-real"})
    CHECK(says(ladder::why_no_code(target(architectures, 70)),
               {"sm_70", "older than sm_75", "-DLADDER_DEVICE=cpu"}));
}

TEST_CASE("compiled code: GPUs of different kinds do not share a problem") {
  const Target h200{"H200", 90, "90a-real", {90, true}}, h100{"H100", 90, "90a-real", {90, true}};
  CHECK(ladder::why_not_together({}).empty());
  CHECK(ladder::why_not_together({h200, h200}).empty());
  CHECK(says(ladder::why_not_together({h200, h200, h100}), {"H200", "H100", "CUDA_VISIBLE_DEVICES"}));
}

TEST_CASE("compiled code: what the loaded code says of itself is what the build's architectures promise") {
  if (ladder::on_cpu_device()) {
    CHECK(ladder::best_core(ladder::device_info().code) == "wgmma");
    return;
  }
  try {
    ladder::require_device();
  } catch (const std::exception& error) {
    SKIP(error.what());
  }
  const Target here = ladder::this_target();
  INFO(here.architectures << " on " << here.gpu << ", sm_" << here.capability);
  CHECK(here.code.architecture == code_for(here.architectures, here.capability).architecture);
  CHECK(here.code.specific == code_for(here.architectures, here.capability).specific);
}
