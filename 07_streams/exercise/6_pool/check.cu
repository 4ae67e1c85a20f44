/// @file
/// The check of exercise 07.6: rounds of batches by every schedule; the memory that the pool has reserved
/// while they run, between them, and at the end; and the host only queues.
#include "07_streams/exercise/host_waits.hpp"
#include "07_streams/exercise/watched_launches.hpp"

#include EXERCISE

#include "common/host/device/device.hpp"

namespace {

using exercise::kElements;
using exercise::kInFlight;
using ladder::exercise::expect;

constexpr int kRounds = 3, kBatches = 5;              // batches in a round
constexpr uint64_t kPieceOfGpu = uint64_t(64) << 20;  // at least as much as a GPU reserves at a time

uint64_t bytes(const exercise::Pipeline& pipeline, cudaMemPoolAttr attribute) {
  uint64_t value = 0;
  CUDA_CHECK(cudaMemPoolGetAttribute(pipeline.pool.get(), attribute, &value));
  return value;
}

std::string workspaces(uint64_t bytes) {
  return fmt::format("{} MiB ({} workspaces)", bytes >> 20, bytes / exercise::kWorkspaceBytes);
}

/// @throws NotYet unless y and the pool's memory are right
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
         fmt::format("y is right, but at the end {} are still in use: where are workspaces freed?",
                     workspaces(in_use)));
  // A GPU may reserve more than an allocation requests.
  expect(
      !ladder::on_cpu_device() || most <= kInFlight * exercise::kWorkspaceBytes,
      fmt::format("y is right, but the pool had reserved {} at one time: which event orders an allocation in "
                  "`makers` after a free in `users`?",
                  workspaces(most)));
  expect(waits.empty(),
         fmt::format("y is right, but the host waits {} times while it queues {} batches, first in "
                     "{}: which stream can wait until memory has been freed?",
                     waits.size(), kRounds * kBatches, waits.empty() ? "" : waits.front()));
  expect(
      !streams_exchanged,
      "y is right, but `make` must run in `makers` and `use` in `users`, so that one batch is made while the "
      "previous one is used");
  expect(
      !ladder::on_cpu_device() || most > exercise::kWorkspaceBytes,
      "y is right, but the pool never had a second workspace: batch b + 1 is not made while batch b is used; "
      "what makes `makers` wait?");
  for (const uint64_t after_round : kept)
    expect(
        after_round >= kInFlight * exercise::kWorkspaceBytes,
        fmt::format("y is right, but after a round the pool has released memory, has {} left, and reserves "
                    "more in the next round: which attribute sets how much unused memory a pool keeps?",
                    workspaces(after_round)));
  expect(
      threshold >= kPieceOfGpu,
      fmt::format("y is right here, but the pool keeps at most {}, and a GPU reserves tens of MiB at a time: "
                  "it would release them after every round",
                  workspaces(threshold)));
  expect(left == 0,
         fmt::format("y is right, but after finish() the pool still has {}: which operations must have ended "
                     "before memory can be released, and which call releases it?",
                     workspaces(left)));
}

void check() { ladder::exercise::on_every_schedule(run); }

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
