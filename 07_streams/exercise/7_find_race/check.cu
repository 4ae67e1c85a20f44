/// @file
/// The check of exercise 07.7: more and fewer batches than slots, by every schedule; the host only queues;
/// batches overlap, and so do halves.
#include "07_streams/exercise/host_waits.hpp"
#include "07_streams/exercise/watched_launches.hpp"

#include EXERCISE

namespace {

using ladder::exercise::expect;
using Pinned = lesson07::PinnedBuffer<float>;

/// @returns the waits of the host while it queued
/// @throws NotYet unless y is right
std::vector<std::string> run(int count) {
  const auto values = ladder::exercise::small_integers<float>(size_t(count) * exercise::kElements, 1);
  std::vector<float> expected;
  for (const float value : values) expected.push_back(2 * value + 1);
  Pinned x(values.size());
  std::copy(values.begin(), values.end(), x.data());
  ladder::exercise::Output<float, Pinned> y("y", values.size());
  exercise::Pipeline pipeline;
  std::vector<std::string> waits = lesson07::host_waits_of([&] {
    exercise::enqueue({x.data(), y.data(), count}, pipeline);
  });
  CUDA_CHECK(cudaDeviceSynchronize());
  y.expect_equal(expected);
  return waits;
}

/// The names of the streams in the device's report.
constexpr const char* kStreams = " (stream 1: uploads, 2: downloads, 3: half 0, 4: half 1)";

/// The report without its explanation: the exercise is to find that.
std::string symptom(const std::string& report) {
  const size_t begin = report.find(": ", report.find("nothing orders")), end = report.find("; schedule ");
  return begin < end && end != std::string::npos ? report.substr(0, begin) + ", " + report.substr(end + 2)
                                                 : report;
}

/// Whether the two halves of a batch can overlap. After each kernel a memset of the same byte is queued: if
/// the device finds no order between the two memsets, there is none between the kernels.
bool halves_overlap() {
  ladder::DeviceBuffer<float> both(1);
  ladder::after_launch() = [&](const void*, cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(both.data(), 0, 1, stream));
  };
  bool overlap = false;
  try {
    run(1);
  } catch (const ladder::exercise::NotYet&) {
    throw;
  } catch (const std::runtime_error&) {
    overlap = true;
  }
  ladder::after_launch() = nullptr;
  return overlap;
}

void check() {
  constexpr int kSlots = exercise::kSlots, kBatches = 12;
  std::vector<std::string> waits;
  for (const int count : {1, kSlots, kSlots + 1, 3 * kSlots + 1}) {
    try {
      ladder::exercise::on_every_schedule([&] { waits = run(count); });
    } catch (const ladder::exercise::NotYet&) {
      throw;
    } catch (const std::runtime_error& report) {
      throw ladder::exercise::NotYet(symptom(report.what()) + kStreams);
    }
  }
  expect(waits.empty(),
         fmt::format(
             "y is right, but the host waits while it queues, first in {}: which call makes a stream wait "
             "instead?",
             waits.empty() ? "" : waits.front()));

  const auto one = ladder::exercise::counted_in_streams([] { run(1); });
  const auto all = ladder::exercise::counted_in_streams([] { run(kBatches); });
  if (!all) return;
  expect(all->us < 0.7 * kBatches * one->us,
         fmt::format(
             "y is right, but {} batches take {:.1f} times as long as one: which steps of different batches "
             "can overlap?",
             kBatches, all->us / one->us));
  expect(halves_overlap(),
         "y is right, but one half of a batch waits for the other: which data do they share?");
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
