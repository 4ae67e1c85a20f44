/// @file
/// Tests of the libraries that lessons are compared with, and of timing them. They need a GPU.
#include <catch2/catch_test_macros.hpp>

#include "common/host/device/device.hpp"
#include "common/host/measure/contender.hpp"
#include "common/host/measure/timing.hpp"
#include "common/host/verify/verifier.hpp"
#include "common/testing/gemm_checks.hpp"
#include "common/tests/fake_lesson.hpp"

namespace {

void skip_without_gpu() {
  if (ladder::on_cpu_device()) SKIP("the CPU device has no libraries and no timing");
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
}

}  // namespace

TEST_CASE("cuBLAS multiplies right with either layout of B, also where rows are not aligned") {
  skip_without_gpu();
  for (const ladder::Shape& shape : {ladder::Shape{512, 384, 256}, ladder::Shape{100, 72, 40}}) {
    const std::vector<ladder::Contender> libraries = ladder::baselines(shape);
    CHECK(libraries.size() == 4);
    for (const ladder::Contender& library : libraries) {
      INFO(library.label << ", " << shape.name());
      ladder::Verifier verifier(shape, 1);
      CHECK(verifier.check([&](const ladder::Gemm& gemm) { ladder::multiply_and_wait(library, gemm); })
                .complaint == "");
      // Any of them may be the one that is chosen.
      for (const auto& candidate : library.candidates) {
        ladder::Contender one = library;
        one.launch = candidate;
        CHECK(verifier.check([&](const ladder::Gemm& gemm) { ladder::multiply_and_wait(one, gemm); })
                  .complaint == "");
      }
      CHECK(library.candidates.empty() == (library.lesson != "cublaslt"));
    }
  }
}

TEST_CASE("Short launches, through graphs, and long ones are timed plausibly") {
  skip_without_gpu();
  ladder::TimingOptions options;
  options.rounds = 3;
  for (const ladder::Shape& shape : {ladder::Shape{256, 256, 256}, ladder::Shape{4096, 4096, 4096}}) {
    const std::vector<ladder::Contender> libraries = ladder::baselines(shape);
    for (const ladder::Timing& timing : ladder::time_interleaved(libraries, shape, options)) {
      INFO(shape.name() << ": " << timing.time_us.median << " us");
      CHECK(timing.time_us.q1 <= timing.time_us.median);
      CHECK(timing.time_us.median <= timing.time_us.q3);
      CHECK(timing.time_us.median > 0.5);
      const bool through_graph = timing.time_us.median < options.graph_below_us;
      CHECK(timing.eager_us.has_value() == through_graph);
      if (through_graph) CHECK(*timing.eager_us > 0.5);
      // No GPU reaches 10 PFLOP/s in bf16.
      CHECK(shape.flops() / timing.time_us.median * 1e-6 < 10'000);
    }
  }
}
