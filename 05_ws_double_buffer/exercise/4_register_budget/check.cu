/// @file
/// The check of exercise 05.4: the product is right, no warpgroup waits forever for registers, and every role
/// has as many as it needs.
#include EXERCISE

#include <fmt/core.h>

#include "common/exercise/check.hpp"
#include "common/host/device/device.hpp"

namespace {

using exercise::kColumns, exercise::kDepth, exercise::kRows;
using ladder::exercise::expect, ladder::exercise::NotYet;
using Matrix = std::vector<__nv_bfloat16>;

constexpr int rounded_up(int registers) { return (registers + 7) / 8 * 8; }
constexpr int kAtLaunch = 65536 / exercise::kThreads / 8 * 8;  ///< registers of each thread
constexpr int kLoader = rounded_up(exercise::kLoaderNeeds), kCompute = rounded_up(exercise::kComputeNeeds);

/// Lowers every role to the registers that it needs, which is an error if it has fewer.
__global__ void __launch_bounds__(exercise::kThreads, 1) ask_who_has_what() {
  exercise::share_registers();
  if (threadIdx.x < exercise::kComputeThreads)
    ptx::setmaxnreg_dec<kCompute>();
  else
    ptx::setmaxnreg_dec<kLoader>();
}

std::string describe(const char* role, int has, int needs) {
  if (has == kAtLaunch)
    return fmt::format("setmaxnreg has not changed the registers of a {} thread yet: it has {}, but needs {}",
                       role, has, needs);
  return fmt::format("a {} thread has {} registers, but needs {}", role, has, needs);
}

/// @throws NotYet if a role has fewer registers than it needs
void expect_enough() {
  try {
    ladder::launch(ask_who_has_what, {.name = "roles", .grid = dim3(1), .block = dim3(exercise::kThreads)});
  } catch (const std::exception& report) {
    const std::string what = report.what();
    const auto names = [&](const char* role, int needs, int asked) {
      const std::string has = fmt::format("setmaxnreg.dec {}: the thread has ", asked);
      if (const size_t at = what.find(has); at != what.npos)
        throw NotYet(describe(role, std::stoi(what.substr(at + has.size())), needs));
    };
    names("compute", exercise::kComputeNeeds, kCompute);
    names("loader", exercise::kLoaderNeeds, kLoader);
    throw;
  }
}

/// @throws NotYet unless c is right
void multiply(int k_steps) {
  const int k = k_steps * kDepth;
  const Matrix a = ladder::exercise::small_integers<__nv_bfloat16>(kRows * k, 1);
  const Matrix b = ladder::exercise::small_integers<__nv_bfloat16>(k * kColumns, 2);
  Matrix expected;
  for (int row = 0; row < kRows; ++row) {
    float sums[kColumns] = {};
    for (int i = 0; i < k; ++i) {
      const float a_value = ladder::to_float(a[row * k + i]);
      for (int column = 0; column < kColumns; ++column)
        sums[column] += a_value * ladder::to_float(b[i * kColumns + column]);
    }
    for (const float sum : sums) expected.push_back(ladder::to_bf16(sum));
  }
  const ladder::DeviceBuffer<__nv_bfloat16> a_device(a), b_device(b);
  ladder::exercise::Output<__nv_bfloat16> c("c", expected.size(), kColumns);
  exercise::launch_multiply(a_device.data(), b_device.data(), c.data(), k_steps);
  c.expect_equal(expected);
}

void check() {
  const int asked = exercise::kComputeWarpgroups * exercise::kComputeRegisters + exercise::kLoaderRegisters;
  const int given = exercise::kWarpgroups * kAtLaunch;
  expect(asked <= given,
         fmt::format(
             "a warpgroup would wait forever for registers: {} threads, one of each warpgroup, request {} "
             "in total, but the launch allocated {} to each thread, {} in total",
             exercise::kWarpgroups, asked, kAtLaunch, given));
  if (ladder::on_cpu_device()) expect_enough();  // a GPU does not report it
  multiply(1);
  ladder::exercise::on_every_schedule([] { multiply(3); });
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
