/// @file
/// The check of exercise 07.3: runs the schedules on the clock of the CPU device's streams, with copies of
/// the exercise's durations, in units of a kernel. A GPU has no such clock: there it computes the times.
#include EXERCISE

#include <algorithm>
#include <map>

#include "07_streams/pinned_ring.hpp"
#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/launch.cuh"
#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using exercise::kBatches;
using exercise::kDownload;
using exercise::kKernel;
using exercise::kUpload;
using ladder::exercise::expect_predicted;

constexpr int kElements = 4096, kThreads = 64, kMaxSlots = 5;
constexpr double kTolerance = 0.005;  // a part of the time, because a launch also takes some

__global__ void __launch_bounds__(kThreads) scale_and_add(float* data) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  data[i] = 2 * data[i] + 1;
}

enum class Step { upload, kernel, download };
struct Queued {
  Step step;
  int batch;
};

struct Schedule {
  int slots;
  bool one_stream = false, one_copy_engine = false, uploads_ahead = false;
};

/// The steps in the order in which the host queues them.
std::vector<Queued> steps_of(const Schedule& schedule) {
  std::vector<Queued> steps;
  if (schedule.uploads_ahead) steps.push_back({Step::upload, 0});
  for (int batch = 0; batch < kBatches; ++batch) {
    const int upload = batch + schedule.uploads_ahead;
    if (upload < kBatches) steps.push_back({Step::upload, upload});
    steps.push_back({Step::kernel, batch});
    steps.push_back({Step::download, batch});
  }
  return steps;
}

/// The stream of a step, and so its engine: steps of one stream run one after the other.
int stream_of(const Schedule& schedule, Step step) {
  if (schedule.one_stream) return 0;
  if (schedule.one_copy_engine) return step == Step::kernel ? 1 : 0;
  return static_cast<int>(step);
}

/// The step that must have ended before, with its batch; a batch below 0 means none.
Queued before(const Schedule& schedule, const Queued& queued) {
  if (queued.step == Step::upload) return {Step::download, queued.batch - schedule.slots};
  return {queued.step == Step::kernel ? Step::upload : Step::kernel, queued.batch};
}

/// The bytes of the copies, so that they have the exercise's durations.
struct Sizes {
  size_t upload, download;
};

/// Runs a schedule on the device.
void play(const Schedule& schedule, const Sizes& sizes) {
  const size_t most = std::max({sizes.upload, sizes.download, kElements * sizeof(float)});
  lesson07::PinnedBuffer<char> x(most), y(most);
  std::vector<ladder::DeviceBuffer<float>> slots;
  for (int slot = 0; slot < schedule.slots; ++slot) slots.emplace_back(most / sizeof(float) + 1);
  const ladder::Stream streams[] = {ladder::make_stream(), ladder::make_stream(), ladder::make_stream()};
  std::map<std::pair<Step, int>, ladder::Event> ended;
  for (const Queued& queued : steps_of(schedule)) {
    const cudaStream_t stream = streams[stream_of(schedule, queued.step)].get();
    const Queued first = before(schedule, queued);
    if (first.batch >= 0)
      CUDA_CHECK(cudaStreamWaitEvent(stream, ended.at({first.step, first.batch}).get(), 0));
    float* const data = slots[queued.batch % schedule.slots].data();
    if (queued.step == Step::upload)
      CUDA_CHECK(cudaMemcpyAsync(data, x.data(), sizes.upload, cudaMemcpyHostToDevice, stream));
    else if (queued.step == Step::download)
      CUDA_CHECK(cudaMemcpyAsync(y.data(), data, sizes.download, cudaMemcpyDeviceToHost, stream));
    else
      ladder::launch(scale_and_add,
                     {.name = "scale_and_add",
                      .grid = dim3(kElements / kThreads),
                      .block = dim3(kThreads),
                      .stream = stream},
                     data);
    const auto [event, _] = ended.emplace(std::pair(queued.step, queued.batch), ladder::make_order_event());
    CUDA_CHECK(cudaEventRecord(event->second.get(), stream));
  }
  CUDA_CHECK(cudaDeviceSynchronize());
}

/// The same by arithmetic.
double computed(const Schedule& schedule) {
  const double takes[] = {kUpload, kKernel, kDownload};
  double free[3] = {}, last = 0;
  std::map<std::pair<Step, int>, double> ended;
  for (const Queued& queued : steps_of(schedule)) {
    double& engine = free[stream_of(schedule, queued.step)];
    const Queued first = before(schedule, queued);
    const double ready = first.batch < 0 ? 0 : ended.at({first.step, first.batch});
    engine = std::max(engine, ready) + takes[static_cast<int>(queued.step)];
    ended[{queued.step, queued.batch}] = engine;
    last = std::max(last, engine);
  }
  return last;
}

double virtual_us(const std::function<void()>& body) {
  return ladder::exercise::counted_in_streams(body)->us;
}

/// Measures a schedule in the exercise's units.
class Clock {
 public:
  Clock() {
    if (!ladder::exercise::counted_in_streams([] {})) return;
    ladder::DeviceBuffer<float> data(kElements);
    ladder::fill_on_device(data.data(), 0, kElements * sizeof(float));
    const ladder::Stream stream = ladder::make_stream();
    const double kernel = virtual_us([&] {
      ladder::launch(scale_and_add,
                     {.name = "scale_and_add",
                      .grid = dim3(kElements / kThreads),
                      .block = dim3(kThreads),
                      .stream = stream.get()},
                     data.data());
      CUDA_CHECK(cudaDeviceSynchronize());
    });
    unit_us_ = kernel / kKernel;
    constexpr size_t kProbe = kElements * sizeof(float);
    lesson07::PinnedBuffer<char> host(kProbe);
    const auto copy_us = [&](cudaMemcpyKind kind, void* to, const void* from) {
      return virtual_us([&] {
        CUDA_CHECK(cudaMemcpyAsync(to, from, kProbe, kind, stream.get()));
        CUDA_CHECK(cudaDeviceSynchronize());
      });
    };
    const double up = copy_us(cudaMemcpyHostToDevice, data.data(), host.data());
    const double down = copy_us(cudaMemcpyDeviceToHost, host.data(), data.data());
    sizes_ = {size_t(kUpload * unit_us_ / up * kProbe), size_t(kDownload * unit_us_ / down * kProbe)};
  }

  double units(const Schedule& schedule) const {
    if (!unit_us_) return computed(schedule);
    return virtual_us([&] { play(schedule, sizes_); }) / unit_us_;
  }

 private:
  double unit_us_ = 0;  // 0 on the GPU
  Sizes sizes_ = {};
};

void check() {
  constexpr double kCopies = kBatches * (kUpload + kDownload), kBound = kBatches * kKernel;
  const Clock clock;
  const double enough = clock.units({.slots = kMaxSlots});

  const double in_turn = clock.units({.slots = kMaxSlots, .one_stream = true});
  expect_predicted("kOneStream", exercise::kOneStream, in_turn,
                   {{kBound, "in one stream nothing overlaps: you counted the kernels, not the copies"},
                    {enough, "in one stream nothing overlaps: every step waits for the one before"},
                    {"add up the three steps of all batches"}},
                   kTolerance);

  expect_predicted(
      "kTwoCopyEngines", exercise::kTwoCopyEngines, enough,
      {{kBound,
        "you counted the busiest engine; it idles while the first batch is uploaded and the last one "
        "downloaded"},
       {kBound + kUpload, "you forgot the last download, during which no kernel runs"},
       {kBound + kDownload, "you forgot the first upload, during which no kernel can run"},
       {in_turn, "with three streams the engines process different batches at the same time"},
       {"which engine is the busiest, and when is it idle?"}},
      kTolerance);

  int slots = 1;
  while (clock.units({.slots = slots}) > enough + 0.2) ++slots;
  const double one_slot_fewer = clock.units({.slots = slots - 1});
  expect_predicted(
      "kSlots", exercise::kSlots, slots,
      {{slots - 1,
        "with that many slots an upload waits for a download; a batch uses its slot from the start of its "
        "upload to the end of its download, including the kernel"},
       {"divide the time for which a batch uses its slot by the time from one kernel to the next"}});

  expect_predicted(
      "kOneSlotFewer", exercise::kOneSlotFewer, one_slot_fewer,
      {{enough, "with one slot fewer the upload waits for a download, and the next kernel for that upload"},
       {in_turn, "two batches are still in flight at the same time"},
       {"draw the first four batches: when is the slot of each upload free?"}},
      kTolerance);

  expect_predicted("kOneCopyEngine", exercise::kOneCopyEngine,
                   clock.units({.slots = kMaxSlots, .one_copy_engine = true}),
                   {{kCopies,
                     "you counted the copies, as if the engine were never idle; which copy can it run while "
                     "kernel 0 runs, "
                     "if download 0 is queued before upload 1?"},
                    {enough, "that is the time with an engine for each direction"},
                    {"which copy is next in the copy engine's stream while kernel 0 runs?"}},
                   kTolerance);

  expect_predicted(
      "kUploadsAhead", exercise::kUploadsAhead,
      clock.units({.slots = kMaxSlots, .one_copy_engine = true, .uploads_ahead = true}),
      {{kCopies,
        "you counted the copies, but the engine idles twice: before the first download, and before the "
        "last one"},
       {in_turn, "now an upload is queued before the download that waits for a kernel"},
       {enough, "the copies share one engine, which now is the busiest"},
       {"which engine is the busiest now, and when is it idle?"}},
      kTolerance);
}

}  // namespace

int main(int argc, char** argv) {
  return ladder::exercise::run_check(argc, argv, [] { ladder::exercise::all_predicted(check); });
}
