/// @file
/// The check of exercise 07.2: rounds with different data, by every schedule; one graph for all rounds; and
/// batches that overlap in it.
#include EXERCISE

#include <fmt/core.h>

#include "07_streams/pinned_ring.hpp"
#include "common/exercise/check.hpp"

namespace {

using ladder::exercise::expect;

constexpr size_t kCount = size_t(exercise::kBatches) * exercise::kElements;
constexpr int kRounds = 4;

/// Whether the streams have finished all their operations.
bool is_done(const exercise::Round& round) {
  for (const ladder::Stream& stream : round.streams)
    if (cudaStreamQuery(stream.get()) != cudaSuccess) return false;
  return true;
}

/// Runs rounds. @throws NotYet unless y is right after each
void run(int rounds) {
  using Pinned = lesson07::PinnedBuffer<float>;
  Pinned x(kCount);
  ladder::exercise::Output<float, Pinned> y("y", kCount);
  std::vector<float> values;
  int prepared = 0, collected = 0;
  exercise::Round round{x.data(), y.data()};
  const auto prepare = [&] {
    values = ladder::exercise::small_integers<float>(kCount, ++prepared);
    std::copy(values.begin(), values.end(), x.data());
  };
  const auto collect = [&] {
    ++collected;
    expect(
        collected == prepared,
        fmt::format(
            "round {} was collected, but {} prepared: prepare must write the data of every round before it",
            collected, prepared));
    expect(is_done(round),
           "y is read while the round is still in flight: what must the host wait for before it collects?");
    for (float& value : values) value = 2 * value + 1;
    y.expect_equal(values);
  };
  exercise::run(round, rounds, prepare, collect);
  expect(prepared > 0, "no round was prepared: fill in the marked lines");
  expect(prepared == rounds && collected == rounds,
         fmt::format("of {} rounds {} were prepared and {} collected", rounds, prepared, collected));
}

/// Runs one batch alone.
void run_one_batch() {
  lesson07::PinnedBuffer<float> x(kCount), y(kCount);
  std::fill_n(x.data(), kCount, 0.0f);
  exercise::Round round{x.data(), y.data()};
  exercise::enqueue_batch(round, 0, 0);
  CUDA_CHECK(cudaDeviceSynchronize());
}

void check() {
  for (const int rounds : {1, kRounds}) ladder::exercise::on_every_schedule([&] { run(rounds); });

  const auto counters = ladder::exercise::counted_in_streams([] { run(kRounds); });
  if (!counters) return;
  expect(counters->graph_launches > 0,
         "y is right, but no graph was launched: capture a round, and launch the graph");
  expect(counters->graph_launches == kRounds,
         fmt::format("y is right, but {} rounds took {} launches: one graph can contain a whole round",
                     kRounds, counters->graph_launches));
  expect(counters->graph_instantiations == 1,
         fmt::format("y is right, but {} graphs were instantiated for {} rounds, which costs the host more "
                     "than the calls that a graph saves",
                     counters->graph_instantiations, kRounds));
  const auto one = ladder::exercise::counted_in_streams(run_one_batch);
  std::ostringstream sentence;
  sentence << "y is right, but a round takes " << counters->us / kRounds / one->us
           << " times as long as one of its " << exercise::kBatches << " batches: which of them can overlap?";
  expect(counters->us < 0.7 * kRounds * exercise::kBatches * one->us, sentence.str());
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
