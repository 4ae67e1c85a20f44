/// @file
/// The check of exercise 07.1: more and fewer batches than slots, by every schedule; the host only queues;
/// and steps overlap.
#include "07_streams/exercise/host_waits.hpp"

#include EXERCISE

namespace {

using Pinned = lesson07::PinnedBuffer<float>;

/// @throws NotYet unless y is right
void run(int count) {
  const auto values = ladder::exercise::small_integers<float>(size_t(count) * exercise::kElements, 1);
  std::vector<float> expected;
  for (const float value : values) expected.push_back(2 * value + 1);
  Pinned x(values.size());
  std::copy(values.begin(), values.end(), x.data());
  ladder::exercise::Output<float, Pinned> y("y", values.size());
  exercise::run({x.data(), y.data(), count});
  y.expect_equal(expected);
}

/// @throws NotYet if the host waits while it queues
void expect_no_wait_of_the_host() {
  constexpr int kCount = 3 * exercise::kSlots + 1;
  Pinned x(size_t(kCount) * exercise::kElements), y(x.size());
  std::fill_n(x.data(), x.size(), 0.0f);
  exercise::Pipeline pipeline;
  const std::vector<std::string> waits = lesson07::host_waits_of([&] {
    exercise::enqueue({x.data(), y.data(), kCount}, pipeline);
  });
  CUDA_CHECK(cudaDeviceSynchronize());
  if (waits.empty()) return;
  throw ladder::exercise::NotYet(fmt::format(
      "y is right, but the host waits {} times while it queues {} batches, first in {}: which call makes a "
      "stream wait for an event without blocking the host?",
      waits.size(), kCount, waits.front()));
}

void check() {
  constexpr int kSlots = exercise::kSlots;
  for (const int count : {1, kSlots, kSlots + 1, 3 * kSlots + 1})
    ladder::exercise::on_every_schedule([&] { run(count); });

  expect_no_wait_of_the_host();

  constexpr int kBatches = 12;
  const auto one = ladder::exercise::counted_in_streams([] { run(1); });
  const auto all = ladder::exercise::counted_in_streams([] { run(kBatches); });
  if (!all) return;
  const double times = all->us / one->us;
  const std::string right_but =
      fmt::format("y is right, but {} batches take {:.1f} times as long as one: ", kBatches, times);
  ladder::exercise::expect(times < 0.6 * kBatches,
                           right_but + "which steps of different batches can overlap?");
  // The limit lies between the CPU device's times with three batches in flight and with two.
  ladder::exercise::expect(times < 5.6,
                           right_but +
                               "fewer than three of them are in flight at a time. Which batch used the slot "
                               "before, and for whose download does the upload wait?");
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
