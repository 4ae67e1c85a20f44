/// @file
/// Experiment `engines`: an upload, a download, a copy to another GPU and kernels, alone and all at once.
///
/// All start on GPU 0, each in a stream of its own, and nothing orders them. Each has as much to do as takes
/// about the same time alone. If they are engines of their own, together they take as long as the longest;
/// what they share is the memory of GPU 0.
#include "07_streams/best_kernel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>

#include "07_streams/batches.hpp"
#include "07_streams/drain.hpp"
#include "07_streams/experiments/devices.hpp"
#include "07_streams/experiments/support.hpp"
#include "07_streams/pinned_ring.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/problem/fill.hpp"
#include "common/host/program/command_line.hpp"
#include "common/host/verify/verifier.hpp"

namespace lesson07 {
namespace {

using ladder::IntegerValues;

constexpr size_t kUpload = 0, kDownload = 1, kPeerCopy = 2, kKernels = 3, kEngines = 4;
const std::array<std::string, kEngines> kNames = {"upload", "download", "peer copy", "kernels"};

/// When an engine's work began and ended, in microseconds since the start of the run.
struct Times {
  double begin_us = 0, end_us = 0;
  double length_us() const { return end_us - begin_us; }
};

/// The work of all four. GPU 0 must be current for as long as it exists.
class FourEngines {
 public:
  /// How often each engine does its step in a run.
  using Repeats = std::array<int, kEngines>;

  explicit FourEngines(const ladder::Shape& shape)
      : rows_(shape.m),
        weights_(shape.k, shape.n),
        uploaded_from_(size_t(shape.m) * shape.k),
        downloaded_to_(uploaded_from_.size()),
        uploaded_to_(uploaded_from_.size()),
        downloaded_from_(uploaded_from_.size()),
        copied_from_(uploaded_from_.size()),
        a_(uploaded_from_.size()),
        c_(size_t(shape.m) * shape.n) {
    for (size_t i = 0; i < elements(); ++i) {
      uploaded_from_.data()[i] = values(kUpload)(i);
      downloaded_to_.data()[i] = bf16{};
    }
    ladder::fill(downloaded_from_.data(), elements(), values(kDownload));
    ladder::fill(copied_from_.data(), elements(), values(kPeerCopy));
    ladder::fill(a_.data(), elements(), values(kKernels));
    CUDA_CHECK(cudaDeviceSynchronize());
    for (size_t engine = 0; engine < kEngines; ++engine) {
      begins_.push_back(ladder::make_event());
      ends_.push_back(ladder::make_event());
      streams_.push_back(make_drained_stream());
    }
    const OnDevice other(1);
    copied_to_ = ladder::DeviceBuffer<bf16>(elements());
  }

  /// Returns when all is done. Engines are given their steps in turns, so that all of them begin at once.
  void run(const Repeats& repeats) {
    const int turns = *std::max_element(repeats.begin(), repeats.end());
    CUDA_CHECK(cudaEventRecord(start_.get(), streams_[0].get()));
    for (int turn = 0; turn < turns; ++turn)
      for (size_t engine = 0; engine < kEngines; ++engine) {
        const cudaStream_t stream = streams_[engine].get();
        if (turn == 0) CUDA_CHECK(cudaEventRecord(begins_[engine].get(), stream));
        const int before = repeats[engine] * turn / turns, after = repeats[engine] * (turn + 1) / turns;
        for (int i = before; i < after; ++i) step(engine, stream);
        if (turn + 1 == turns) CUDA_CHECK(cudaEventRecord(ends_[engine].get(), stream));
      }
    for (const DrainedStream& stream : streams_) CUDA_CHECK(cudaStreamSynchronize(stream.get()));
  }

  /// Of the last run.
  Times times(size_t engine) const {
    return {1000 * ladder::elapsed_ms(start_, begins_[engine]),
            1000 * ladder::elapsed_ms(start_, ends_[engine])};
  }

  /// After a run of all four: everything is where it belongs. @throws WrongResult
  void check() const {
    const auto compare = [&](size_t engine, const bf16* array) {
      for (size_t i = 0; i < elements(); ++i)
        if (const float is = ladder::to_float(array[i]), right = ladder::to_float(values(engine)(i));
            is != right)
          throw WrongResult(
              fmt::format("engines, {}: element {} is {:f}, must be {:f}", kNames[engine], i, is, right));
    };
    compare(kUpload, ladder::download(uploaded_to_.data(), elements()).data());
    compare(kDownload, downloaded_to_.data());
    {
      const OnDevice other(1);
      compare(kPeerCopy, ladder::download(copied_to_.data(), elements()).data());
    }
    const std::vector<bf16> row = ladder::download(c_.data(), static_cast<size_t>(weights_.n));
    for (size_t column = 0; column < row.size(); column += 61) {
      double sum = 0;
      for (uint64_t k = 0; k < uint64_t(weights_.k); ++k)
        sum += double{ladder::to_float(values(kKernels)(k))} *
               double{ladder::to_float(weights_.values(k * weights_.n + column))};
      const float is = ladder::to_float(row[column]);
      const float right = ladder::to_float(ladder::to_bf16(static_cast<float>(sum)));
      if (is != right)
        throw WrongResult(fmt::format("engines, kernels: C[0, {}] is {:f}, must be {:f}", column, is, right));
    }
  }

  double copied_bytes() const { return double(elements()) * sizeof(bf16); }

 private:
  size_t elements() const { return uploaded_from_.size(); }
  IntegerValues values(size_t engine) const { return {21 + engine, ladder::integer_magnitude(weights_.k)}; }

  void step(size_t engine, cudaStream_t stream) {
    const size_t bytes = elements() * sizeof(bf16);
    if (engine == kUpload)
      CUDA_CHECK(
          cudaMemcpyAsync(uploaded_to_.data(), uploaded_from_.data(), bytes, cudaMemcpyHostToDevice, stream));
    if (engine == kDownload)
      CUDA_CHECK(cudaMemcpyAsync(downloaded_to_.data(), downloaded_from_.data(), bytes,
                                 cudaMemcpyDeviceToHost, stream));
    if (engine == kPeerCopy)
      CUDA_CHECK(cudaMemcpyPeerAsync(copied_to_.data(), 1, copied_from_.data(), 0, bytes, stream));
    if (engine == kKernels) multiply(weights_, a_.data(), c_.data(), rows_, stream);
  }

  int rows_;
  RandomWeights weights_;
  PinnedBuffer<bf16> uploaded_from_, downloaded_to_;
  ladder::DeviceBuffer<bf16> uploaded_to_, downloaded_from_, copied_from_, copied_to_, a_, c_;
  ladder::Event start_ = ladder::make_event();
  std::vector<ladder::Event> begins_, ends_;
  std::vector<DrainedStream> streams_;
};

std::string ms(double us) { return ladder::fixed(us / 1e3, 2); }

void run_engines(const Context& context) {
  if (!has_devices(context, "engines", 2)) return;
  check_kernel(context.shape);
  const bool direct = enable_peer_access(0, 1);
  FourEngines engines(context.shape);

  // As many steps of each as take the time of so many uploads.
  const int uploads = std::min(context.batches, 40);
  FourEngines::Repeats repeats{};
  double upload_us = 0;
  for (size_t engine = 0; engine < kEngines; ++engine) {
    FourEngines::Repeats few{};
    few[engine] = 4;
    engines.run(few);  // warms up
    engines.run(few);
    const double step_us = engines.times(engine).length_us() / few[engine];
    if (engine == kUpload) upload_us = step_us;
    repeats[engine] = std::max(1, static_cast<int>(std::lround(uploads * upload_us / step_us)));
  }

  std::vector<FourEngines::Repeats> works(kEngines);
  for (size_t engine = 0; engine < kEngines; ++engine) works[engine][engine] = repeats[engine];
  works.push_back({repeats[kUpload], repeats[kDownload], 0, 0});
  works.push_back(repeats);
  std::vector<std::string> names(kNames.begin(), kNames.end());
  names.insert(names.end(), {"upload, download", "all four"});
  std::vector<Variant> variants;
  for (size_t i = 0; i < works.size(); ++i)
    variants.push_back({names[i],
                        {{"work", names[i]}, {"peer_access", direct ? "direct" : "through host memory"}},
                        [&, i] { engines.run(works[i]); }});
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);
  engines.run(repeats);
  engines.check();
  std::array<Times, kEngines> together;
  for (size_t engine = 0; engine < kEngines; ++engine) together[engine] = engines.times(engine);

  context.out << "each copy moves " << ladder::fixed(engines.copied_bytes() / 1e6, 1) << " MB; peer copies "
              << (direct ? "are direct" : "go through host memory") << "\n";
  ladder::Table table(context.out, {{"at once", 17, false},
                                    {"steps", 18, false},
                                    {"ms", 7},
                                    {"predicted ms", 12},
                                    {"GB/s", 6},
                                    {"ms beside the others", 20}});
  table.header();
  for (size_t i = 0; i < variants.size(); ++i) {
    double longest_us = 0;  // of what is at work, alone
    for (size_t engine = 0; engine < kEngines; ++engine)
      if (works[i][engine]) longest_us = std::max(longest_us, measured[engine].median_us);
    const bool alone = i < kEngines;
    ladder::Settings& settings = variants[i].settings;
    settings["steps"] = fmt::format("{}, {}, {}, {}", works[i][0], works[i][1], works[i][2], works[i][3]);
    settings["predicted_ms"] = alone ? "-" : ms(longest_us);
    settings["gb_per_s"] =
        i < kKernels ? ladder::fixed(engines.copied_bytes() * works[i][i] / measured[i].median_us / 1e3, 1)
                     : "-";
    settings["ms_beside_the_others"] = alone ? ms(together[i].length_us()) : "-";
    table.row({names[i], settings["steps"], ms(measured[i].median_us), settings["predicted_ms"],
               settings["gb_per_s"], settings["ms_beside_the_others"]});
  }
  double last_begin = 0, first_end = 1e300, end = 0;
  for (const Times& times : together) {
    last_begin = std::max(last_begin, times.begin_us);
    first_end = std::min(first_end, times.end_us);
    end = std::max(end, times.end_us);
  }
  const std::string at_once = percent_text(std::max(0.0, first_end - last_begin), end);
  variants.back().settings["all_four_at_work"] = at_once;
  context.out << "all four are at work for " << at_once << " of the last row's time\n";
  for (size_t i = 0; i < variants.size(); ++i)
    add_result(context, "engines", variants[i], context.shape, measured[i], {}, /*verified=*/true);
}

}  // namespace

const Experiment& engines_experiment() {
  static const Experiment experiment = {
      "engines", "Do an upload, a download, a copy to another GPU and kernels run at once?", run_engines};
  return experiment;
}

}  // namespace lesson07
