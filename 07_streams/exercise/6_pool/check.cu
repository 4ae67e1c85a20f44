/// @file
/// The check of exercise 07.6: rounds of batches by every schedule; what the pool has reserved while they
/// run, between them, and at the end; and a host that only queues.
#include "07_streams/exercise/host_waits.hpp"
#include "07_streams/exercise/watched_launches.hpp"

#include EXERCISE

#include "common/host/device/device.hpp"

namespace {

using exercise::kElements;
using exercise::kInFlight;
using ladder::exercise::expect;

constexpr int kRounds = 3, kBatches = 5;              // in a round
constexpr uint64_t kPieceOfGpu = uint64_t(64) << 20;  // what a GPU reserves at a time, generously

uint64_t bytes(const exercise::Pipeline& pipeline, cudaMemPoolAttr attribute) {
  uint64_t value = 0;
  CUDA_CHECK(cudaMemPoolGetAttribute(pipeline.pool.get(), attribute, &value));
  return value;
}

std::string workspaces(uint64_t bytes) {
  return fmt::format("{} MiB ({} workspaces)", bytes >> 20, bytes / exercise::kWorkspaceBytes);
}

/// @throws NotYet unless y is right, and the pool has what it must
void run() {
  constexpr size_t kCount = size_t(kRounds) * kBatches * kElements;
  const auto values = ladder::exercise::small_integers<float>(kCount, 1);
  const ladder::DeviceBuffer<float> x(values);
  ladder::exercise::Output<float> y("y", kCount);
  std::vector<float> expected;
  for (const float value : values) expected.push_back(2 * value + 1);

  exercise::Pipeline pipeline;
  exercise::prepare(pipeline);
  std::vector<std::string> waits;
  std::vector<uint64_t> kept;
  bool streams_exchanged = false;
  ladder::after_launch() = [&](const void* kernel, cudaStream_t stream) {
    const bool is_make = kernel == reinterpret_cast<const void*>(exercise::make);
    streams_exchanged |= stream != (is_make ? pipeline.makers : pipeline.users).get();
  };
  for (int round = 0; round < kRounds; ++round) {
    if (round > 0) {
      CUDA_CHECK(cudaDeviceSynchronize());
      kept.push_back(bytes(pipeline, cudaMemPoolAttrReservedMemCurrent));
    }
    for (int batch = round * kBatches; batch < (round + 1) * kBatches; ++batch)
      for (const std::string& wait : lesson07::host_waits_of([&] {
             exercise::enqueue(pipeline, batch, x.data() + size_t(batch) * kElements,
                               y.data() + size_t(batch) * kElements);
           }))
        waits.push_back(wait);
  }
  ladder::after_launch() = nullptr;
  const uint64_t threshold = bytes(pipeline, cudaMemPoolAttrReleaseThreshold);
  const uint64_t most = bytes(pipeline, cudaMemPoolAttrReservedMemHigh);
  exercise::finish(pipeline);
  const uint64_t left = bytes(pipeline, cudaMemPoolAttrReservedMemCurrent);
  const uint64_t in_use = bytes(pipeline, cudaMemPoolAttrUsedMemCurrent);
  CUDA_CHECK(cudaDeviceSynchronize());

  y.expect_equal(expected);
  expect(most > 0, "y is right, but the pool has never had any memory: allocate from pipeline.pool");
  expect(in_use == 0,
         fmt::format("y is right, but at the end {} are still in use: which are freed, and where?",
                     workspaces(in_use)));
  // A GPU may reserve more than it is asked for.
  expect(!ladder::on_cpu_device() || most <= kInFlight * exercise::kWorkspaceBytes,
         fmt::format(
             "y is right, but the pool had reserved {} at one time: by what does an allocation in `makers` "
             "come after a free in `users`, the free included?",
             workspaces(most)));
  expect(waits.empty(),
         fmt::format("y is right, but the host waits {} times while it queues {} batches, first in "
                     "{}: who else can wait until memory has been freed?",
                     waits.size(), kRounds * kBatches, waits.empty() ? "" : waits.front()));
  expect(
      !streams_exchanged,
      "y is right, but `make` must run in `makers` and `use` in `users`: so one batch is made while the one "
      "before is used");
  expect(
      !ladder::on_cpu_device() || most > exercise::kWorkspaceBytes,
      "y is right, but the pool never had a second workspace: batch b + 1 is not made while batch b is used; "
      "what makes `makers` wait?");
  for (const uint64_t after_round : kept)
    expect(after_round >= kInFlight * exercise::kWorkspaceBytes,
           fmt::format("y is right, but after a round the pool has given memory back, has {} left, and asks "
                       "for more again in the next: how much may a pool keep while nobody uses it?",
                       workspaces(after_round)));
  expect(
      threshold >= kPieceOfGpu,
      fmt::format("y is right here, but the pool may keep {}, and a GPU reserves tens of MiB at a time: it "
                  "would give them back after every round",
                  workspaces(threshold)));
  expect(left == 0,
         fmt::format("y is right, but after finish() the pool still has {}: what must have ended before "
                     "memory can go back, and who says that it shall?",
                     workspaces(left)));
}

void check() { ladder::exercise::on_every_schedule(run); }

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
