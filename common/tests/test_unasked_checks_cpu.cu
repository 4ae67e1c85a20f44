/// @file
/// What a lesson's program checks on the CPU device without being asked, with kernels whose result is right.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/cuda/launch.cuh"
#include "common/cuda/residency.hpp"
#include "common/device/shared_storage.cuh"
#include "common/host/base/exit_codes.hpp"
#include "common/host/device/execution.hpp"
#include "common/host/problem/lesson.hpp"
#include "common/host/program/run_lesson.hpp"
#include "common/host/verify/verifier.hpp"
#include "common/ptx/grid_dependency.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/mma_sync.cuh"
#include "common/testing/captured_program.hpp"

using Catch::Matchers::ContainsSubstring;
using ladder::Gemm;
using ladder::Settings;
using Result = ladder::testing::ProgramResult;

namespace {

constexpr int kThreads = 64;  // two warps

struct SharedStorage {
  float last, other[2];
  ptx::Mbarrier full[2], empty[2];
};

/// A thread fills two slots again and again. A warp waits for each, and one lane releases it, which must come
/// after the waits of all.
__device__ void pass_slots(SharedStorage& smem, bool lanes_meet) {
  constexpr int kRounds = 40, kWarp = 32;
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < 2; ++slot) {
      ptx::mbarrier_init(&smem.full[slot], 1);
      ptx::mbarrier_init(&smem.empty[slot], 1);
    }
  }
  __syncthreads();
  for (int round = 0; round < kRounds; ++round) {
    const int slot = round % 2, parity = round / 2 % 2;
    if (threadIdx.x == kWarp) {
      ptx::mbarrier_wait(&smem.empty[slot], parity ^ 1);
      ptx::mbarrier_arrive(&smem.full[slot]);
    }
    if (threadIdx.x >= kWarp) continue;
    ptx::mbarrier_wait(&smem.full[slot], parity);
    if (lanes_meet) __syncwarp();
    if (threadIdx.x == 0) ptx::mbarrier_arrive(&smem.empty[slot]);
  }
}

/// One thread for each element of C.
__global__ void __launch_bounds__(kThreads)
    multiply(const Gemm p, bool waits, bool races, bool forgets_an_odd_row, bool lanes_meet) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  pass_slots(smem, lanes_meet);
  if (waits) ptx::griddepcontrol_wait();
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x), row = i / p.n, column = i % p.n;
  if (row >= p.m || (forgets_an_odd_row && p.m % 2 && row == p.m - 1)) return;
  float sum = 0;
  for (int k = 0; k < p.k; ++k)
    sum += __bfloat162float(p.a[row * p.k + k]) * __bfloat162float(p.b[k * p.n + column]);
  if (races) smem.last = sum;
  p.c[i] = __float2bfloat16(sum);
}

/// The same. Its threads read shared memory that nobody has written, and add what they find if `adds`.
__global__ void __launch_bounds__(kThreads) reads_unwritten(const Gemm p, bool adds, bool of_other) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x), row = i / p.n, column = i % p.n;
  if (row >= p.m) return;
  float sum = 0;
  for (int k = 0; k < p.k; ++k)
    sum += __bfloat162float(p.a[row * p.k + k]) * __bfloat162float(p.b[k * p.n + column]);
  const float unwritten = of_other ? smem.other[i % 2] : smem.last;
  if (unwritten < 0 || adds) sum += unwritten;  // NaN
  p.c[i] = __float2bfloat16(sum);
}

/// A warp multiplies zeros, a K tile after the other; C holds what its registers hold then, or NaN.
__global__ void __launch_bounds__(32) multiplies_zeros(const Gemm p, int k_tiles, bool spoils) {
  float d[4];
  const uint32_t a[4] = {};
  for (int tile = 0; tile < k_tiles; ++tile) {
    if (tile == 0) d[0] = d[1] = d[2] = d[3] = 0;
    ptx::mma_m16n8k16(d, a, 0, 0);
  }
  for (int i = static_cast<int>(threadIdx.x); i < p.m * p.n; i += 32)
    p.c[i] = __float2bfloat16(spoils ? NAN : d[0]);
}

ladder::Multiply multiplying_zeros(int k_tiles, bool spoils = false) {
  return [=](const Gemm& p) {
    ladder::launch(multiplies_zeros, {.name = "zeros", .grid = dim3(1), .block = dim3(32)}, p, k_tiles,
                   spoils);
  };
}

ladder::Multiply reading_unwritten(bool adds, bool of_other = false) {
  return [=](const Gemm& p) {
    ladder::launch(reads_unwritten,
                   {.name = "reads_unwritten",
                    .grid = dim3((p.m * p.n + kThreads - 1) / kThreads),
                    .block = dim3(kThreads),
                    .shared_bytes = sizeof(SharedStorage)},
                   p, adds, of_other);
  };
}

ladder::Lesson lesson() {
  ladder::Lesson l;
  l.name = "99_fake";
  l.idea = "one thread for each element";
  l.knobs = {{"mistake", "which", {"none", "race", "odd", "early", "late"}},
             {"pdl", "whether to begin early", {"off", "on"}}};
  l.check = [](const Gemm& p, const Settings&) {
    if (p.k > 520) throw std::invalid_argument("k is too large");
  };
  l.launch = [](const Gemm& p, const Settings& settings, cudaStream_t stream) {
    const std::string& mistake = settings.at("mistake");
    ladder::launch(multiply,
                   {.name = "multiply",
                    .grid = dim3((p.m * p.n + kThreads - 1) / kThreads),
                    .block = dim3(kThreads),
                    .shared_bytes = sizeof(SharedStorage),
                    .stream = stream,
                    .pdl = settings.at("pdl") == "on"},
                   p, mistake != "early", mistake == "race", mistake == "odd", mistake != "late");
  };
  l.cpu_check = {9, 16, 24};
  l.cpu_check_few = {3, 8, 8};
  return l;
}

Result run(const ladder::Lesson& lesson, std::vector<std::string> arguments) {
  const bool has_shape = std::find(arguments.begin(), arguments.end(), "--shape") != arguments.end();
  arguments.insert(arguments.begin(), "program");
  if (!has_shape) arguments.insert(arguments.end(), {"--size", "8"});
  return ladder::testing::run_captured(
      [&](int argc, char** argv) { return ladder::run_lesson(lesson, argc, argv); }, std::move(arguments));
}

/// The words come before the table, with exit code 1.
void check_noticed(const std::vector<std::string>& arguments, const std::string& words,
                   const std::string& command) {
  const Result result = run(lesson(), arguments);
  INFO("stderr: " << result.err);
  CHECK(result.exit_code == ladder::kExitFailure);
  CHECK_THAT(result.out, !ContainsSubstring("checked:"));
  CHECK_THAT(result.err,
             ContainsSubstring(words) && ContainsSubstring("\nrepeat it with: " + command + "\n"));
}

}  // namespace

TEST_CASE("A line that reads unwritten memory is named where C is NaN, unless a right run has read it, too") {
  const std::string words = "read shared memory before anything was written to it";
  ladder::use_schedule({.check_races = true}, "");  // which notices loads
  ladder::Verifier verifier({8, 8, 8}, 1);
  CHECK_THAT(verifier.check_exact(reading_unwritten(true)).complaint, ContainsSubstring(words));
  CHECK(verifier.check_exact(reading_unwritten(false)).complaint == "");
  const std::string complaint = verifier.check_exact(reading_unwritten(true)).complaint;
  CHECK_THAT(complaint, ContainsSubstring("nan") && !ContainsSubstring(words));
  CHECK_THAT(verifier.check_exact(reading_unwritten(true, true)).complaint,
             ContainsSubstring(words));  // another array
  ladder::use_schedule({}, "");
}

TEST_CASE("Where C is NaN because no product was started, the number of K tiles is asked for") {
  const std::string words =
      "\n  no product was ever started, as the kernel has done for other shapes: is the number of K tiles 0 "
      "for K "
      "= 24? It must be rounded up; ";
  const auto complaint = [](int k, const ladder::Multiply& multiply) {
    return ladder::Verifier({8, 8, k}, 1).check_exact(multiply).complaint;
  };
  // Whether it must have any is not known.
  CHECK_THAT(complaint(24, multiplying_zeros(0)),
             ContainsSubstring("nan") && !ContainsSubstring("no product"));
  CHECK_THAT(complaint(72, multiplying_zeros(1)), !ContainsSubstring("no product"));
  CHECK_THAT(complaint(24, multiplying_zeros(0)), ContainsSubstring(words));
  CHECK_THAT(complaint(24, multiplying_zeros(1, /*spoils=*/true)),
             ContainsSubstring("nan") && !ContainsSubstring("no product"));
}

TEST_CASE("Where the reader chooses nothing, a line says what else was checked") {
  const Result result = run(lesson(), {});
  INFO("stderr: " << result.err);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out,
             ContainsSubstring(
                 "\nchecked: races, at 9x16x24 on 2 schedules, 3x8x8 and 48x80x272; more with --schedule all "
                 "--check-races\n"));
}

TEST_CASE("A release before all have waited for the slot is noticed, in a random order of threads") {
  // Where threads run in turn, nobody is late.
  CHECK(run(lesson(), {"--mistake", "late", "--schedule", "all", "--only-asked"}).exit_code == 0);
  check_noticed({"--mistake", "late"}, "before",
                "99_fake --mistake late --shape 9x16x24 --schedule random:1");
}

TEST_CASE("A race that leaves the result right is noticed, with a command that repeats it") {
  const std::string options = "--mistake race --shape 9x16x24 --schedule round-robin/late --check-races";
  check_noticed({"--mistake", "race"}, "race", "99_fake " + options);
  CHECK(run(lesson(), {"--mistake", "race", "--schedule", "round-robin/late", "--check-races"}).exit_code ==
        ladder::kExitFailure);
}

TEST_CASE("A result that is wrong at ragged sizes alone is noticed") {
  check_noticed({"--mistake", "odd"},
                "99_fake: error: wrong result of 99_fake (mistake=odd, round-robin/late)",
                "99_fake --mistake odd --shape 9x16x24 --schedule round-robin/late --check-races");
}

TEST_CASE("A result that is wrong because of the launch before is told from one of a schedule") {
  int launches = 0;
  ladder::Lesson one = lesson();
  const auto launch = one.launch;
  const auto wrong_if = [&](const std::function<bool()>& is_wrong) {
    launches = 0;
    one.launch = [&, is_wrong](const Gemm& p, const Settings& settings, cudaStream_t stream) {
      Gemm changed = p;
      if (is_wrong()) --changed.k;
      launch(changed, settings, stream);
      ++launches;
    };
    return run(one, {}).err;
  };
  CHECK_THAT(
      wrong_if([&] { return launches > 0; }),
      ContainsSubstring("lowest-first/eager): right in the first launch, and wrong since, even on the same "
                        "schedule"));
  CHECK_THAT(wrong_if([&] { return launches == 1; }),
             ContainsSubstring("wrong result of 99_fake") && !ContainsSubstring("right in the first launch"));
}

TEST_CASE(
    "A mistake that shows where one block computes all tiles is noticed, with a command that repeats it") {
  ladder::Lesson one_block = lesson();
  const auto launch = one_block.launch;
  one_block.launch = [launch](const Gemm& p, const Settings& settings, cudaStream_t stream) {
    const bool is_alone = ladder::resident_blocks(multiply, kThreads, 0) == 1;
    Settings chosen = settings;
    if (is_alone) chosen["mistake"] = "race";
    launch(p, chosen, stream);
  };
  const Result result = run(one_block, {});
  CHECK(result.exit_code == ladder::kExitFailure);
  CHECK_THAT(result.err,
             ContainsSubstring("\nrepeat it with: 99_fake --shape 3x8x8 --resident-blocks 1 --schedule "
                               "round-robin/late --check-races\n"));
  CHECK(run(one_block, {"--check-races", "--only-asked"}).exit_code == 0);
  CHECK(run(one_block, {"--check-races", "--only-asked", "--resident-blocks", "1"}).exit_code ==
        ladder::kExitFailure);
}

TEST_CASE("Mistakes that show where K is larger than N, or where rows are whole sectors, are noticed") {
  ladder::Lesson mistaken = lesson();
  mistaken.cpu_check = {9, 32, 24};
  const auto launch = mistaken.launch;
  const auto error_of = [&](const auto& change) {
    mistaken.launch = [=](Gemm p, Settings settings, cudaStream_t stream) {
      change(p, settings);
      launch(p, settings, stream);
    };
    return run(mistaken, {}).err;
  };
  const std::string command = "99_fake --shape 48x80x272 --schedule round-robin/late --check-races\n";
  CHECK_THAT(error_of([](Gemm& p, Settings&) { p.k = std::min(p.k, p.n); }),
             ContainsSubstring("the pitch N = 80") && ContainsSubstring(command));
  CHECK_THAT(error_of([](Gemm& p, Settings& settings) {
               if (p.n % 16 == 0 && p.k % 16 == 0) settings["mistake"] = "race";
             }),
             ContainsSubstring("race") && ContainsSubstring(command));
  CHECK(error_of([](Gemm&, Settings&) {}) == "");
}

TEST_CASE("A lesson that needs more K steps is checked with as few as it accepts") {
  ladder::Lesson splits = lesson();
  splits.check = [](const Gemm& p, const Settings&) {
    if (p.k < 24 || p.k % 8) throw std::invalid_argument("k is too small");
  };
  CHECK_THAT(run(splits, {"--shape", "8x8x24"}).out, ContainsSubstring(", 3x8x72 and 48x80x272; more"));
}

TEST_CASE("A launch that does not wait for the one before is noticed") {
  check_noticed({"--pdl", "on", "--mistake", "early"}, "griddepcontrol_wait must come first",
                "99_fake --mistake early --pdl on");
  const Result waits = run(lesson(), {"--pdl", "on"});
  INFO("stderr: " << waits.err);
  CHECK(waits.exit_code == 0);
  CHECK_THAT(
      waits.out,
      ContainsSubstring("9x16x24 on 2 schedules, 3x8x8 and 48x80x272, and dependent launches; more with"));
  CHECK(run(lesson(), {"--mistake", "early"}).exit_code == 0);  // it never begins early
}

TEST_CASE(
    "With --only-asked, what the reader chooses is all that is run, and race checks are named where they "
    "were not") {
  const std::string words = "not checked: races; --check-races does\n";
  for (const std::vector<std::string>& chosen : {std::vector<std::string>{"--schedule", "all"},
                                                 {"--seed", "17"},
                                                 {"--schedule", "highest-first/late"}}) {
    std::vector<std::string> arguments = chosen;
    arguments.insert(arguments.end(), {"--mistake", "race"});
    CHECK(run(lesson(), arguments).exit_code == ladder::kExitFailure);
    arguments.emplace_back("--only-asked");
    const Result result = run(lesson(), arguments);
    INFO("stderr: " << result.err);
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.out, ContainsSubstring(words));
  }
  CHECK_THAT(run(lesson(), {"--check-races"}).out, ContainsSubstring("checked: races, at 9x16x24"));
  CHECK_THAT(run(lesson(), {"--check-races", "--only-asked"}).out, !ContainsSubstring("checked"));
}

TEST_CASE("What a lesson refuses is not checked, which the line says") {
  ladder::Lesson narrow = lesson();
  narrow.cpu_check.k = 521;
  const Result result = run(narrow, {});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("not checked: races, at 9x16x521: k is too large\n"));
}

TEST_CASE("Remarks of a lesson follow its table, by the row that they are of") {
  ladder::Lesson remarks = lesson();
  remarks.remark = [](const ladder::Shape& shape, const Settings& settings) {
    return settings.at("pdl") == "on" ? shape.name() + " begins early" : "";
  };
  CHECK_THAT(run(remarks, {"--pdl", "off,on"}).out,
             ContainsSubstring("\npdl=on: 8x8x8 begins early\n") && !ContainsSubstring("pdl=off:"));
}

TEST_CASE("A kernel that only the asked shape takes is checked, too, with a command that repeats it") {
  ladder::Lesson chooses = lesson();
  // Of 8 rows takes what the settings say, elsewhere what is right.
  const auto setting_of = [](int rows, Settings settings) {
    if (rows != 8) settings["mistake"] = "none";
    return settings;
  };
  const auto launch = chooses.launch;
  chooses.launch = [launch, setting_of](const Gemm& p, const Settings& settings, cudaStream_t stream) {
    launch(p, setting_of(p.m, settings), stream);
  };
  chooses.taken = [launch, setting_of](const ladder::Shape& shape, const Settings& settings) {
    const Settings forced = setting_of(shape.m, settings);
    const std::string& mistake = forced.at("mistake");
    return ladder::TakenKernel{"99." + mistake, "99_fake --force " + mistake, launch.launcher_of(forced)};
  };
  CHECK_THAT(
      run(chooses, {}).out,
      ContainsSubstring("9x16x24 on 2 schedules, 3x8x8 and 48x80x272, in the kernel of 99.none; more"));
  CHECK_THAT(run(chooses, {"--mistake", "early"}).out,
             ContainsSubstring(", 3x8x8 and 48x80x272, in the kernels of 99.early and 99.none; more"));
  const Result result = run(chooses, {"--mistake", "race"});
  CHECK(result.exit_code == ladder::kExitFailure);
  CHECK_THAT(result.err, ContainsSubstring("race") &&
                             ContainsSubstring("\nrepeat it with: 99_fake --force race --shape 9x16x24 "
                                               "--schedule round-robin/late --check-races\n"));
}
