/// @file
/// The check of exercise 07.4: more and fewer batches than slots, by every schedule; results are taken in
/// order; a slot is free only when its result has been taken; the host waits only for slots; and batches
/// overlap.
#include "07_streams/exercise/host_waits.hpp"
#include "07_streams/exercise/watched_guarded.hpp"

#define Guarded WatchedGuarded
#include EXERCISE
#undef Guarded

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

namespace {

using exercise::kElements;
using exercise::kSlots;
using ladder::exercise::expect;

/// Runs `count` batches. @throws NotYet unless all results are right, and were taken in order
/// @param newest_first the device finishes a batch before the previous one, which CUDA allows
void run(int count, bool newest_first = false) {
  const auto values = ladder::exercise::small_integers<float>(size_t(count) * kElements, 1);
  std::vector<int> filled, taken;
  std::vector<std::string> complaints;
  exercise::Ring ring;
  const auto fill = [&](int batch, float* x) {
    filled.push_back(batch);
    if (newest_first && batch % kSlots == kSlots - 1)  // the two before have been queued
      CUDA_CHECK(cudaStreamSynchronize(ring.slots[(batch - 1) % kSlots].stream.get()));
    std::copy_n(&values.at(size_t(batch) * kElements), kElements, x);
  };
  const auto take = [&](int batch, const float* y) {  // in a host function: it must not throw
    taken.push_back(batch);
    if (!ring.busy.last()[batch % kSlots])
      complaints.push_back(
          fmt::format("slot {} is free while take() still reads its y: a faster device would overwrite it",
                      batch % kSlots));
    for (int i = 0; i < kElements; ++i) {
      const float right = 2 * values[size_t(batch) * kElements + i] + 1;
      if (y[i] == right) continue;
      complaints.push_back(
          fmt::format("element {} of batch {} is {}, must be {}, when it is taken: which operation may have "
                      "overwritten x or y, or has not written y yet?",
                      i, batch, y[i], right));
      return;
    }
  };
  exercise::run(ring, count, fill, take);
  const size_t at_return = taken.size();
  CUDA_CHECK(cudaDeviceSynchronize());

  expect(!filled.empty(), "no batch was filled: fill in the marked lines");
  expect(!taken.empty(),
         "no result was taken: which CUDA call runs a host function when a download has ended?");
  const bool repeats = std::set<int>(taken.begin(), taken.end()).size() < taken.size();
  expect(!repeats,
         "the result of one batch is taken twice: what does the Job contain when the host function runs?");
  for (size_t i = 0; i < taken.size(); ++i)
    expect(taken[i] == static_cast<int>(i),
           fmt::format(
               "the result of batch {} is taken before the result of batch {}: which stream runs all host "
               "functions in order?",
               taken[i], i));
  expect(at_return == size_t(count) && filled.size() == size_t(count),
         fmt::format("run() returned after {} of {} results had been taken", at_return, count));
  expect(complaints.empty(), complaints.empty() ? "" : complaints.front());
}

void check() {
  for (const int count : {1, kSlots, kSlots + 1, 3 * kSlots + 1})
    for (const bool newest_first : {false, true})
      ladder::exercise::on_every_schedule([&] { run(count, newest_first); });

  constexpr int kBatches = 12;
  const size_t waits_of_one = lesson07::host_waits_of([] { run(1); }).size();
  const std::vector<std::string> waits = lesson07::host_waits_of([] { run(kBatches); });
  expect(
      waits.size() <= waits_of_one,
      fmt::format("the results are right, but the host waits for the device {} times with {} batches, and {} "
                  "times with one, first in {}: in the loop it must wait only for a free slot",
                  waits.size(), kBatches, waits_of_one, waits.empty() ? "" : waits.front()));

  const auto one = ladder::exercise::counted_in_streams([] { run(1); });
  const auto all = ladder::exercise::counted_in_streams([] { run(kBatches); });
  if (!all) return;
  expect(all->us < 0.6 * kBatches * one->us,
         fmt::format(
             "the results are right, but {} batches take {:.1f} times as long as one: how many slots are "
             "busy at the same time?",
             kBatches, all->us / one->us));
}

constexpr const char* kJobIsGone =
    "a pointer refers to freed memory: did a host function get a pointer to a Job that no longer exists, and "
    "how long must a Job exist?";
const char* words_of_test = nullptr;  // words that the message must contain if the answer is a wrong one

/// The program cannot continue: prints this instead of the device's report.
void on_crash(int) {
  std::printf("%s%s\n", words_of_test ? "" : "not yet: ", kJobIsGone);
  std::fflush(stdout);
  std::_Exit(words_of_test && std::strstr(kJobIsGone, words_of_test) ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) words_of_test = argv[2];
  std::signal(SIGSEGV, on_crash);
  return ladder::exercise::run_check(argc, argv, check);
}
