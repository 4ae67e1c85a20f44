/// @file
/// The check of exercise 07.8: batches that fail in several ways, by every schedule; operations in flight
/// when run() exits; and devices that fail or hang at the end.
#include "07_streams/exercise/host_waits.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#ifdef LADDER_CPU_DEVICE
#include "common/cpu_device/cpu_device.hpp"
#endif

namespace {

/// The results of the exercise's queries of streams and events.
enum class Answers { truly, busy_once, always_busy, busy_one_after_another, an_error_first };
Answers answers = Answers::truly;
using Clock = std::chrono::steady_clock;
Clock::time_point first_asked;
constexpr std::chrono::seconds kTooLong{2};

std::chrono::milliseconds patience;
std::map<const void*, Clock::time_point> done_at;  // for the streams and events that were queried
Clock::time_point last_done;
bool has_said_too_long = false;

/// Whether the handle is busy, if each is busy for two fifths of patience, one after the other: only their
/// sum is too long. A handle that ends too late stays busy until run() has seen that after its deadline,
/// however slowly the computer runs.
bool is_still_busy(const void* handle) {
  const auto now = Clock::now(), too_late = first_asked + patience;
  if (!done_at.count(handle)) done_at[handle] = last_done = std::max(now, last_done) + patience * 2 / 5;
  const auto done = done_at[handle];
  const bool is_busy = now < done || (done > too_late && !has_said_too_long);
  has_said_too_long = has_said_too_long || (is_busy && now > too_late);
  return is_busy;
}

template <class Query>
cudaError_t ask(const void* handle, const Query& query) {
  if (answers == Answers::truly) return query();
  if (first_asked == Clock::time_point()) first_asked = Clock::now();
  if (answers == Answers::busy_once)
    return done_at.emplace(handle, first_asked).second ? cudaErrorNotReady : query();
  if (answers == Answers::busy_one_after_another && !is_still_busy(handle)) return query();
  if (answers == Answers::an_error_first) {
    answers = Answers::truly;
    return cudaErrorIllegalAddress;
  }
  if (Clock::now() - first_asked > kTooLong)
    throw ladder::exercise::NotYet(
        "a device that hangs also hangs the program: run() still queries its streams after 2 s, but patience "
        "is 20 ms");
  return cudaErrorNotReady;
}

}  // namespace

// A query is no wait. A name in parentheses does not expand the macro.
#undef cudaStreamQuery
#undef cudaEventQuery
#define cudaStreamQuery(stream) ask(stream, [&] { return (cudaStreamQuery)(stream); })
#define cudaEventQuery(event) ask(event, [&] { return (cudaEventQuery)(event); })
#include EXERCISE
#undef cudaStreamQuery
#undef cudaEventQuery

namespace {

using exercise::kBatches;
using exercise::kElements;
using ladder::exercise::expect;
using ladder::exercise::NotYet;

/// No std::exception: C++ may throw anything.
struct FillFailed {
  int batch;
  std::string what() const { return fmt::format("the fill of batch {} failed", batch); }
};

/// An error that the check causes.
struct Fault {
  std::string name;
  int fill_fails = -1;  ///< the batch whose fill throws
  std::chrono::milliseconds fill_takes{0};
  std::vector<int> bad = {};  ///< batches with a bad element
  int copy_fails = -1;        ///< the batch whose second copy CUDA refuses; on the CPU device
  Answers answers = Answers::truly;
  std::string thrown = {};  ///< part of the message that run() must throw; empty: it must not throw
};

struct Outcome {
  std::string thrown;
  size_t busy_streams = 0;
  std::vector<int> filled;
};

Outcome outcome_of(exercise::Pipeline& pipeline, const Fault& fault, const std::vector<float>& values) {
  Outcome outcome;
  const auto fill = [&](int batch, float* x) {
    outcome.filled.push_back(batch);
    std::this_thread::sleep_for(fault.fill_takes);
    if (batch == fault.fill_fails) throw FillFailed{batch};
    std::copy_n(&values[size_t(batch) * kElements], kElements, x);
    if (std::count(fault.bad.begin(), fault.bad.end(), batch)) x[kElements / 2] = exercise::kBad;
  };
#ifdef LADDER_CPU_DEVICE
  if (fault.copy_fails >= 0)
    cpu_device::fail_call("cudaMemcpyAsync", 3 * fault.copy_fails + 2, cudaErrorNotSupported);
#endif
  answers = fault.answers;
  patience = pipeline.patience;
  done_at.clear();
  first_asked = last_done = {};
  has_said_too_long = false;
  try {
    exercise::run(pipeline, fill);
  } catch (const NotYet&) {
    throw;
#ifdef LADDER_CPU_DEVICE
  } catch (const cpu_device::Failure&) {
    throw;
#endif
  } catch (const FillFailed& failed) {
    outcome.thrown = failed.what();
  } catch (const std::exception& error) {
    outcome.thrown = error.what();
  }
  answers = Answers::truly;
  for (const ladder::Stream& stream : pipeline.streams)
    outcome.busy_streams += cudaStreamQuery(stream.get()) == cudaErrorNotReady;
  CUDA_CHECK((cudaDeviceSynchronize)());  // not one of the exercise's waits
  return outcome;
}

/// @throws NotYet unless run() handles the error correctly
void run(const Fault& fault) {
  const auto values = ladder::exercise::small_integers<float>(size_t(kBatches) * kElements, 1);
  exercise::Pipeline pipeline;
  if (fault.answers == Answers::always_busy) pipeline.patience = std::chrono::milliseconds(20);
  if (fault.fill_takes.count() > 0) pipeline.patience = fault.fill_takes * kBatches / 2;
  // Long, so that a busy computer does not look like a slow stream.
  if (fault.answers == Answers::busy_one_after_another) pipeline.patience = std::chrono::milliseconds(500);
  for (exercise::Slot& slot : pipeline.slots) {
    std::fill_n(slot.y.get(), kElements, -1e9f);
    *slot.is_bad = 1;  // the value of an earlier run
  }
  const Outcome outcome = outcome_of(pipeline, fault, values);

  expect(!outcome.filled.empty(), "no batch was begun: fill in the marked lines");
  const auto said = [&] { return outcome.thrown.empty() ? "nothing" : "'" + outcome.thrown + "'"; };
  if (fault.answers == Answers::always_busy) {
    expect(outcome.thrown == exercise::StillBusy().what(),
           fmt::format("the device hangs, and run() throws {} instead of StillBusy", said()));
    return;
  }
  if (fault.answers == Answers::busy_one_after_another) {
    expect(outcome.thrown == exercise::StillBusy().what(),
           fmt::format("{}: run() throws {} instead of StillBusy: how long may all streams take in total?",
                       fault.name, said()));
    return;
  }
  const int failed = std::max(fault.fill_fails, fault.copy_fails);
  expect(failed < 0 || outcome.filled.back() <= failed,
         fmt::format("batch {} was begun although batch {} had failed", outcome.filled.back(), failed));
  const bool truly = fault.answers == Answers::truly;
  expect(!truly || outcome.busy_streams == 0,
         fmt::format(
             "{}: run() exits while {} of its streams still have work, which uses memory that the caller "
             "then frees",
             fault.name, outcome.busy_streams));
  for (int batch = 0; batch < kBatches; ++batch)
    expect(outcome.thrown != exercise::BadBatch(batch).what() ||
               std::count(fault.bad.begin(), fault.bad.end(), batch),
           fmt::format(
               "{}: run() throws '{}', but the batch is not bad: is_bad holds the value of an earlier run "
               "until the batch has been downloaded",
               fault.name, outcome.thrown));
  expect(
      fault.thrown.empty() ? outcome.thrown.empty() : outcome.thrown.find(fault.thrown) != std::string::npos,
      fmt::format("{}: run() throws {}, must throw {}", fault.name, said(),
                  fault.thrown.empty() ? "nothing" : "'" + fault.thrown + "', which came first"));
  if (!truly) return;
  // All operations queued before the failure have completed.
  for (int batch = 0; batch < (failed < 0 ? kBatches : failed); ++batch)
    for (int i = 0; i < kElements; ++i) {
      if (std::count(fault.bad.begin(), fault.bad.end(), batch)) break;
      const float got = pipeline.slots[batch].y.get()[i],
                  right = 2 * values[size_t(batch) * kElements + i] + 1;
      expect(got == right,
             fmt::format("{}: element {} of batch {} is {}, must be {}", fault.name, i, batch, got, right));
    }
}

void check() {
  std::vector<Fault> faults = {
      {.name = "nothing fails"},
      {.name = "the fill of batch 4 fails", .fill_fails = 4, .thrown = FillFailed{4}.what()},
      {.name = "the fill of batch 0 fails", .fill_fails = 0, .thrown = FillFailed{0}.what()},
      {.name = "batches 6 and 3 are bad", .bad = {6, 3}, .thrown = exercise::BadBatch(3).what()},
      {.name = "batch 2 is bad and the fill of batch 5 fails",
       .fill_fails = 5,
       .bad = {2},
       .thrown = exercise::BadBatch(2).what()},
      {.name = "the fill of batch 4 fails, then the device",
       .fill_fails = 4,
       .answers = Answers::an_error_first,
       .thrown = FillFailed{4}.what()},
      {.name = "the device fails at the end",
       .answers = Answers::an_error_first,
       .thrown = cudaGetErrorString(cudaErrorIllegalAddress)},
      {.name = "the device hangs", .answers = Answers::always_busy},
      {.name = "the fill of batch 4 fails, and the device hangs",
       .fill_fails = 4,
       .answers = Answers::always_busy},
  };
  if (ladder::exercise::counted_in_streams([] {}))
    faults.push_back({.name = "a copy of batch 3 is refused",
                      .copy_fails = 3,
                      .thrown = cudaGetErrorString(cudaErrorNotSupported)});

  const std::vector<std::string> waits = lesson07::host_waits_of([&] {
    for (const Fault& fault : faults)
      if (fault.answers == Answers::truly) ladder::exercise::on_every_schedule([&] { run(fault); });
  });
  expect(
      waits.empty(),
      fmt::format(
          "{} has no time limit: a kernel that hangs would hang the program; query until a deadline instead",
          waits.empty() ? "" : waits.front()));
  for (const Fault& fault : faults)
    if (fault.answers != Answers::truly) ladder::exercise::on_every_schedule([&] { run(fault); });
  run({.name = "filling all batches takes twice as long as patience",
       .fill_takes = std::chrono::milliseconds(100),
       .answers = Answers::busy_once});
  run({.name = "the streams finish after 200, 400 and 600 ms, and patience is 500 ms",
       .answers = Answers::busy_one_after_another});
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
