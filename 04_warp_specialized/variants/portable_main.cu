/// @file
/// The program 04_portable: runs and times portable.cuh, checks sampled rows of C, and prints a row for each
/// size and number of slots. `04_portable --help` lists its options.
#include <cuda_runtime.h>
#include <fmt/core.h>
#include <algorithm>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "04_warp_specialized/variants/portable.cuh"
#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/error.hpp"
#include "common/host/base/arguments.hpp"
#include "common/host/base/exit_codes.hpp"
#include "common/host/base/statistics.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/shape.hpp"
#include "common/host/program/program.hpp"
#include "common/host/program/results.hpp"

namespace lesson04::portable {
namespace {

constexpr int kMaxSlots = 4;

void launch(int slots, const Sgemm& p, cudaStream_t stream) {
  if (slots == 1) launch_gemm<1>(p, stream);
  if (slots == 2) launch_gemm<2>(p, stream);
  if (slots == 3) launch_gemm<3>(p, stream);
  if (slots == 4) launch_gemm<4>(p, stream);
}

/// -4 to 4, by a rule that repeats neither from row to row nor from tile to tile. Any order of summation
/// gives the same.
std::vector<float> small_integers(size_t count, size_t factor) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * factor % 1009 % 9) - 4;
  return values;
}

/// A problem in device memory.
class Problem {
 public:
  explicit Problem(const ladder::Shape& shape)
      : shape_(shape),
        a_(small_integers(size_t(shape.m) * shape.k, 7)),
        b_(small_integers(size_t(shape.k) * shape.n, 11)),
        device_a_(a_),
        device_b_(b_),
        device_c_(size_t(shape.m) * shape.n) {}

  void multiply(int slots) {
    launch(slots, {device_a_.data(), device_b_.data(), device_c_.data(), shape_.m, shape_.n, shape_.k},
           stream_.get());
  }

  /// Multiplies, and compares the first row, the last, and some between, bit for bit. @throws
  /// std::runtime_error
  void check(int slots) {
    constexpr int kRows = 5;
    const auto n = static_cast<size_t>(shape_.n), k = static_cast<size_t>(shape_.k);
    device_c_.upload(std::vector<float>(device_c_.size(), std::numeric_limits<float>::quiet_NaN()));
    multiply(slots);
    CUDA_CHECK(cudaStreamSynchronize(stream_.get()));
    const std::vector<float> c = ladder::download(device_c_.data(), device_c_.size());
    for (int sample = 0; sample < kRows; ++sample) {
      const auto row = static_cast<size_t>(int64_t{shape_.m - 1} * sample / (kRows - 1));
      std::vector<double> expected(n);
      for (size_t l = 0; l < k; ++l)
        for (size_t j = 0; j < n; ++j) expected[j] += double{a_[row * k + l]} * double{b_[l * n + j]};
      for (size_t j = 0; j < n; ++j)
        if (!(double{c[row * n + j]} == expected[j]))
          throw std::runtime_error(fmt::format("{}, {} slots: C[{}, {}] is {:f}, not {:f}", shape_.name(),
                                               slots, row, j, c[row * n + j], expected[j]));
    }
  }

  /// Microseconds of a launch, in so many samples of some 50 ms; the first, which warms up, is not among
  /// them.
  std::vector<double> times_us(int slots, int samples) {
    constexpr double kSampleUs = 50'000;
    const int launches = std::clamp(static_cast<int>(kSampleUs / us_of(slots, 1)), 1, 1000);
    std::vector<double> times;
    for (int i = 0; i <= samples; ++i) times.push_back(us_of(slots, launches));
    times.erase(times.begin());
    return times;
  }

 private:
  double us_of(int slots, int launches) {
    CUDA_CHECK(cudaEventRecord(begin_.get(), stream_.get()));
    for (int i = 0; i < launches; ++i) multiply(slots);
    CUDA_CHECK(cudaEventRecord(end_.get(), stream_.get()));
    return 1000 * ladder::elapsed_ms(begin_, end_) / launches;
  }

  ladder::Shape shape_;
  std::vector<float> a_, b_;
  ladder::DeviceBuffer<float> device_a_, device_b_, device_c_;
  ladder::Stream stream_ = ladder::make_stream();
  ladder::Event begin_ = ladder::make_event(), end_ = ladder::make_event();
};

/// One row. The CPU device executes semantics, not speed.
ladder::Run run_of(Problem& problem, const ladder::Shape& shape, int slots, int samples) {
  ladder::Run run;
  run.lesson = "04_warp_specialized";
  run.core = "fma";
  run.shape = shape;
  run.settings = {{"experiment", "portable"}, {"slots", std::to_string(slots)}};
  problem.check(slots);
  run.verified = true;
  if (ladder::on_cpu_device()) return run;
  const ladder::Quartiles time = ladder::quartiles(problem.times_us(slots, samples));
  run.time_us_median = time.median;
  run.time_us_q1 = time.q1;
  run.time_us_q3 = time.q3;
  run.tflops = shape.flops() / time.median / 1e6;
  return run;
}

int run_with(int argc, char** argv) {
  ladder::Arguments arguments("Roles and a ring with cuda::pipeline alone, in fp32, for any GPU",
                              "04_portable");
  const std::string default_size = ladder::on_cpu_device() ? "100" : "4096";
  std::string sizes = default_size, slots = "1,2,3,4", rounds = "5", json;
  arguments.add_option(
      "--size", sizes, "N",
      "Multiply N x N matrices; a list gives several problems (default " + default_size + ")");
  arguments.add_option("--slots", slots, "S",
                       "Tiles of A and B that shared memory holds: 1 to 4, or a list (default 1,2,3,4)");
  arguments.add_option("--rounds", rounds, "R", "Samples of each measurement (default 5)");
  arguments.add_option("--json", json, "PATH", "Write the results to this file");
  if (!arguments.parse(argc, argv)) return ladder::kExitOk;
  const int samples = static_cast<int>(ladder::parse_number("--rounds", rounds, 1, 10'000));
  std::vector<int> depths;
  for (const std::string& depth : ladder::split(slots, ','))
    depths.push_back(static_cast<int>(ladder::parse_number("--slots", depth, 1, kMaxSlots)));

  const std::vector<ladder::Shape> shapes = ladder::parse_sizes("--size", sizes);
  ladder::require_device();
  ladder::ResultFile results = ladder::new_result_file();
  std::cout << results.gpu << ", " << results.toolkit << "\n";
  ladder::Table table(
      std::cout, {{"shape", 14, false}, {"slots", 5}, {"us", 9}, {"TFLOP/s", 7}, {"verified", 8, false}});
  table.header();
  for (const ladder::Shape& shape : shapes) {
    Problem problem(shape);
    for (const int depth : depths) {
      const ladder::Run& run = results.runs.emplace_back(run_of(problem, shape, depth, samples));
      table.row({shape.name(), std::to_string(depth),
                 run.tflops ? ladder::fixed(*run.time_us_median, 0) : "-",
                 run.tflops ? ladder::fixed(*run.tflops, 2) : "-", "yes"});
    }
  }
  if (!json.empty()) ladder::write_results("--json", json, results);
  return ladder::kExitOk;
}

}  // namespace
}  // namespace lesson04::portable

int main(int argc, char** argv) {
  return ladder::run_program("04_portable", [&] { return lesson04::portable::run_with(argc, argv); });
}
