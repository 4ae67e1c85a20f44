/// @file
/// What can go wrong on the way: the run ends with one clear line, nothing is left in flight or allocated,
/// and the pipeline can be used again.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <deque>

#include "07_streams/tests/test_support.hpp"
#include "common/host/base/interrupt.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/testing/gemm_checks.hpp"
#ifdef LADDER_CPU_DEVICE
#include "common/cpu_device/cpu_device.hpp"
#endif

using namespace lesson07;
using Catch::Matchers::ContainsSubstring;
using ladder::DeviceBuffer;
using ladder::testing::for_each_schedule;
using ladder::testing::for_three_schedules;
using ladder::testing::for_two_schedules;

namespace {

/// Fails the test if anything made during its lifetime is still there at its end. The GPU has
/// compute-sanitizer for this.
class NothingLeaks {
#ifdef LADDER_CPU_DEVICE
 public:
  ~NothingLeaks() {
    const cpu_device::LiveResources now = cpu_device::live_resources();
    CHECK(now.device_bytes == before_.device_bytes);
    CHECK(now.pinned_bytes == before_.pinned_bytes);
    CHECK(now.streams == before_.streams);
    CHECK(now.events == before_.events);
    CHECK(now.pools == before_.pools);
  }

 private:
  cpu_device::LiveResources before_ = cpu_device::live_resources();
#else
 public:
  NothingLeaks() {}
#endif
};

/// The kernel's lesson, but its launch number `nth` (from 1) is refused.
ladder::Lesson refused_at(const Kernel& kernel, int nth) {
  ladder::Lesson lesson = *kernel.lesson;
  lesson.launch = [launch = lesson.launch, nth, count = 0](const ladder::Gemm& gemm,
                                                           const ladder::Settings& settings,
                                                           cudaStream_t stream) mutable {
    if (++count == nth) CUDA_CHECK(cudaErrorLaunchFailure);
    launch(gemm, settings, stream);
  };
  return lesson;
}

/// Ctrl-C while the host fills a batch.
class InterruptedAt : public IntegerData {
 public:
  InterruptedAt(const TestRun& run, int batch)
      : IntegerData(run.batches, run.host_weights.data(), kTestSeed), batch_(batch) {}
  void fill(int batch, bf16* a) const override {
    IntegerData::fill(batch, a);
    if (batch == batch_) std::raise(SIGINT);
  }

 private:
  int batch_;
};

/// A check that runs out of memory.
class ThrowsAt : public IntegerData {
 public:
  ThrowsAt(const TestRun& run, int batch)
      : IntegerData(run.batches, run.host_weights.data(), kTestSeed), batch_(batch) {}
  std::string complaint(int batch, const bf16* c) const override {
    if (batch == batch_) throw std::bad_alloc();
    return IntegerData::complaint(batch, c);
  }

 private:
  int batch_;
};

}  // namespace

TEST_CASE(
    "a launch that is refused mid-run ends the run with CUDA's words, and the pipeline can be used again") {
  skip_without_device();
  const int nth = GENERATE(1, 2, 5, 8);
  for_three_schedules(
      [&] {
        const NothingLeaks check;
        TestRun run(ragged_rows(8), 72, 72, 3, 4);
        const ladder::Lesson lesson = refused_at(run.kernel, nth);
        const Kernel good = run.kernel;
        run.kernel.lesson = &lesson;
        CHECK_THROWS_WITH(run.run(), ContainsSubstring("unspecified launch failure"));
        run.kernel = good;
        CHECK_NOTHROW(run.run());
      },
      1);
}

TEST_CASE("a pool that is too small ends the run with out of memory", "[provokes_errors]") {
  skip_without_device();
  for_each_schedule(
      [&] {
        const NothingLeaks check;
        // A pool's limit is rounded up, to 32 MiB at most; a batch takes 96 MiB.
        constexpr size_t kPoolBytes = 1 << 20;
        const int rows = ladder::on_cpu_device() ? 3000 : 3 << 12;
        TestRun run({rows, rows}, ladder::on_cpu_device() ? 256 : 4096, 8, 2, 2, kPoolBytes);
        CHECK_THROWS_WITH(run.run(), ContainsSubstring("out of memory"));
      },
      1);
}

TEST_CASE("a ring whose slots never come back ends the run, and names the ring") {
  skip_without_device();
  const NothingLeaks check;
  TestRun run(ragged_rows(3), 72, 72, 2, 2);
  run.pipeline.limit = std::chrono::milliseconds(100);
  std::deque<PinnedRing<bf16>::Slot> kept;
  for (int slot = 0; slot < 2; ++slot) kept.push_back(run.pipeline.downloads.acquire(run.pipeline.limit));
  CHECK_THROWS_WITH(run.run(), ContainsSubstring("a free slot of the download ring"));
  kept.clear();
  run.pipeline.limit = std::chrono::seconds(30);  // a sanitizer is slow
  CHECK_NOTHROW(run.run());
}

TEST_CASE("what a check throws in a host function ends the run on the host, and the slots come back") {
  skip_without_device();
  for_each_schedule([&] {
    const NothingLeaks check;
    TestRun run(ragged_rows(9), 72, 72, 3, 4);
    CHECK_THROWS_AS(run.run(ThrowsAt(run, 2)), std::bad_alloc);
    CHECK_NOTHROW(run.run());
  });
}

TEST_CASE("Ctrl-C stops the run after the batches that are in flight") {
  skip_without_device();
  for_each_schedule([&] {
    const NothingLeaks check;
    TestRun run(ragged_rows(9), 72, 72, 3, 4);
    ladder::catch_interrupts();
    CHECK_THROWS_WITH(run.run(InterruptedAt(run, 5)), ContainsSubstring("interrupted after 6 of 9 batches"));
    ladder::catch_interrupts();
    CHECK_NOTHROW(run.run());
    std::signal(SIGINT, SIG_DFL);
  });
}

#ifdef LADDER_CPU_DEVICE
TEST_CASE("any call that fails ends the run with its error, and nothing leaks") {
  const std::string function =
      GENERATE("cudaMallocFromPoolAsync", "cudaMemcpyAsync", "cudaFreeAsync", "cudaLaunchHostFunc",
               "cudaStreamWaitEvent", "cudaStreamSynchronize", "cudaEventRecord", "cudaMalloc",
               "cudaMallocHost", "cudaStreamCreateWithFlags", "cudaMemPoolCreate", "cudaMemPoolSetAttribute");
  const int nth = GENERATE(1, 2, 5);
  CAPTURE(function, nth);
  for_two_schedules([&] {
    const NothingLeaks check;
    bool failed = false;
    cpu_device::fail_call(function, nth, cudaErrorNotSupported);
    // A run makes some of these calls only once.
    for (int attempt = 0; attempt < nth && !failed; ++attempt) {
      try {
        TestRun(ragged_rows(6), 72, 72, 2, 3).run();
      } catch (const std::runtime_error& error) {
        CHECK_THAT(error.what(), ContainsSubstring("operation not supported"));
        failed = true;
      }
    }
    CHECK(failed);
    CHECK_NOTHROW(TestRun(ragged_rows(2), 72, 72, 2, 3).run());
  });
}

#ifndef __SANITIZE_ADDRESS__  // which leaves nobody to see what the kernel loads
TEST_CASE("a kernel that does not wait for the weights is reported by every schedule") {
  for_each_schedule([&] {
    TestRun run({64}, 72, 72, 1, 1);
    const DeviceBuffer<bf16> a(std::vector<bf16>(64 * 72, ladder::to_bf16(1)));
    DeviceBuffer<bf16> c(64 * 72);
    CHECK_THROWS_WITH(
        [&] {
          const Weights weights(run.host_weights, 72, 72);
          run.kernel.launch({a.data(), weights.data(), c.data(), 64, 72, 72}, run.pipeline.streams[0].get());
          CUDA_CHECK(cudaStreamSynchronize(run.pipeline.streams[0].get()));
          CUDA_CHECK(cudaDeviceSynchronize());
        }(),
        ContainsSubstring("a cudaStreamWaitEvent is missing"));
  });
}
#endif

TEST_CASE("a slot that is recycled before its download is reported by every schedule") {
  for_each_schedule([&] {
    TestRun run({64, 64, 64}, 8, 8, 2, 1);
    PinnedRing<bf16>& ring = run.pipeline.downloads;
    DeviceBuffer<bf16> c(64 * 8);
    std::deque<PinnedRing<bf16>::Slot> taken;
    CHECK_THROWS_WITH(
        [&] {
          for (int b = 0; b < 3; ++b) {
            cudaStream_t stream = run.pipeline.streams[b % 2].get();
            PinnedRing<bf16>::Slot& slot = taken.emplace_back(ring.acquire(run.pipeline.limit));
            const auto recycle = [](void* slot) { static_cast<PinnedRing<bf16>::Slot*>(slot)->release(); };
            CUDA_CHECK(cudaLaunchHostFunc(stream, recycle, &slot));
            CUDA_CHECK(cudaMemcpyAsync(slot.data(), c.data(), 64 * 8 * sizeof(bf16), cudaMemcpyDeviceToHost,
                                       stream));
          }
          CUDA_CHECK(cudaDeviceSynchronize());
        }(),
        ContainsSubstring("nothing orders them"));
  });
}
#endif
