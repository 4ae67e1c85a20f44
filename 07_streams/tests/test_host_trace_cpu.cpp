/// @file
/// The timeline of the pipeline on the CPU device: engines that work on different batches at one time, or,
/// where the host waits for every step, never.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>

#include "07_streams/measure/trace_recorder.hpp"
#include "07_streams/tests/test_support.hpp"
#include "07_streams/timeline/host_trace.hpp"
#include "common/host/base/json.hpp"
#include "common/testing/temporary_directory.hpp"

using namespace lesson07;

namespace {

/// Six equal batches. @param waits for every step, as level 0
std::vector<StreamSpan> spans_of_six_batches(bool waits) {
  TestRun run(std::vector<int>(6, 128), 128, 128, 3, 4);
  run.schedule = {waits ? 1 : 3, waits};
  const IntegerData data(run.batches, run.host_weights.data(), kTestSeed);
  const Weights weights(run.host_weights, run.batches.k, run.batches.n);
  HostTrace trace;
  CUDA_CHECK(cudaDeviceSynchronize());  // the weights' upload is no batch
  trace.start();
  run_batches(run.batches, data, weights, run.kernel, run.pipeline, run.schedule);
  trace.stop();
  return trace.spans();
}

std::vector<StreamSpan> of_engine(const std::vector<StreamSpan>& spans, Engine engine) {
  std::vector<StreamSpan> result;
  std::copy_if(spans.begin(), spans.end(), std::back_inserter(result),
               [&](const StreamSpan& span) { return span.engine == engine; });
  return result;
}

bool overlap(const StreamSpan& a, const StreamSpan& b) {
  return a.begin_us < b.end_us && b.begin_us < a.end_us;
}

}  // namespace

TEST_CASE("batch b+1 is uploaded beside the kernel of batch b") {
  const std::vector<StreamSpan> spans = spans_of_six_batches(false);
  const std::vector<StreamSpan> uploads = of_engine(spans, Engine::upload),
                                kernels = of_engine(spans, Engine::compute);
  REQUIRE(uploads.size() == 6);
  REQUIRE(kernels.size() == 6);
  CHECK(of_engine(spans, Engine::download).size() == 6);
  CHECK(of_engine(spans, Engine::host).size() == 6);
  CHECK(overlap(uploads[1], kernels[0]));
  const EngineUse use = summarise(spans).at(0);
  CHECK(use.two_at_once_us > 0);
}

TEST_CASE("where the host waits for every step, no two engines work at one time") {
  const EngineUse use = summarise(spans_of_six_batches(true)).at(0);
  CHECK(use.two_at_once_us == 0);
  CHECK(use.three_at_once_us == 0);
}

TEST_CASE("with --trace, every schedule that is measured is in the file") {
  const ladder::testing::TemporaryDirectory directory;
  const std::string path = directory.file("trace.json");
  TestRun run({64, 64}, 64, 64, 2, 2);
  {
    TraceRecorder recorder(path);
    recorder.begin_experiment("made up");
    measure_interleaved({{"once", {}, [&] { run.run(); }}, {"again", {}, [&] { run.run(); }}}, 1);
    recorder.write();
  }
  CHECK(TraceRecorder::current() == nullptr);
  std::ifstream file(path);
  const auto json = ladder::parse_json(file);
  REQUIRE(json.at("metadata").at("summary").size() == 2);
  CHECK(json.at("metadata").at("summary").at(0).at("schedule") == "once");
  CHECK(json.at("metadata").at("summary").at(1).at("experiment") == "made up");
}
