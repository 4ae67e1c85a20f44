/// @file
/// Experiment `wake_up`: how soon the host goes on when the GPU is done, and what waiting costs a processor.
///
/// A kernel of one thread computes, and says at its end in pinned memory that it is done. A host that spins
/// on this flag learns it first; every other way to wait is compared with that. Who spins is quick and keeps
/// a processor busy. Who sleeps must be woken up by the operating system.
#include <ctime>

#include <atomic>
#include <chrono>
#include <cuda/atomic>
#include <stdexcept>
#include <thread>

#include "07_streams/experiments/support.hpp"
#include "07_streams/pinned_ring.hpp"
#include "common/cuda/guarded.hpp"
#include "common/cuda/launch.cuh"
#include "common/host/base/statistics.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"

namespace lesson07 {
namespace {

constexpr std::chrono::seconds kLimit{10};

/// A chain of products, each of which waits for the one before, and then the flag.
/// @param flag in pinned memory
__global__ void compute_and_tell(unsigned* flag, unsigned number, unsigned* end, int steps) {
  unsigned x = number;
  for (int i = 0; i < steps; ++i) x = x * 1664525u + 1013904223u;
  *end = x;
  cuda::atomic_ref<unsigned, cuda::thread_scope_system>(*flag).store(number, cuda::memory_order_release);
}

/// Microseconds that this thread has kept a processor busy so far.
double processor_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

/// @throws std::runtime_error after kLimit
template <class IsDone, class Between>
void spin_until(const IsDone& is_done, const Between& between) {
  const auto begin = std::chrono::steady_clock::now();
  while (!is_done()) {
    if (std::chrono::steady_clock::now() - begin > kLimit)
      throw std::runtime_error("wake_up: the GPU was not done after 10 s");
    between();
  }
}

class WakeUp {
 public:
  WakeUp() : flag_(1), end_(1) { *flag_.data() = 0; }

  void launch(int steps) {
    ladder::launch(compute_and_tell,
                   {.name = "compute_and_tell", .grid = 1, .block = 1, .stream = stream_.get()}, flag_.data(),
                   ++number_, end_.data(), steps);
  }

  void spin_on_flag() {
    spin_until(
        [&] {
          // The CPU device runs kernels in calls of the host.
          if (ladder::on_cpu_device()) is_idle();
          return std::atomic_ref(*flag_.data()) == number_;
        },
        [] {});
  }
  void query() {
    spin_until([&] { return is_idle(); }, [] {});
  }
  void query_and_yield() {
    spin_until([&] { return is_idle(); }, [] { std::this_thread::yield(); });
  }
  void synchronize() { CUDA_CHECK(cudaStreamSynchronize(stream_.get())); }
  void synchronize_spinning() { synchronize_with(cudaDeviceScheduleSpin); }
  void synchronize_yielding() { synchronize_with(cudaDeviceScheduleYield); }
  void synchronize_blocking() { synchronize_with(cudaDeviceScheduleBlockingSync); }
  void wait_for_event() { wait_for_event(event_); }
  void wait_for_blocking_event() { wait_for_event(blocking_); }
  void spin_for_host_function() {
    called_ = false;
    CUDA_CHECK(cudaLaunchHostFunc(
        stream_.get(), [](void* called) { *static_cast<std::atomic<bool>*>(called) = true; }, &called_));
    spin_until([&] { return called_.load(); }, [] {});
  }
  void sleep_for_host_function() {
    CUDA_CHECK(cudaLaunchHostFunc(
        stream_.get(),
        [](void* told) {
          static_cast<ladder::Guarded<bool>*>(told)->update([](bool& is_told) { is_told = true; });
        },
        &told_));
    told_.wait([](bool is_told) { return is_told; }, [](bool& is_told) { is_told = false; }, kLimit);
  }

  /// @throws std::runtime_error unless the kernel was done when the host went on
  void check(const std::string& how) const {
    if (*flag_.data() != number_)
      throw std::runtime_error("wake_up, " + how + ": the host went on too early");
  }

 private:
  static ladder::Event make_event_with(unsigned flags) {
    cudaEvent_t event = nullptr;
    CUDA_CHECK(cudaEventCreateWithFlags(&event, flags));
    return ladder::Event(event);
  }
  bool is_idle() {
    const cudaError_t state = cudaStreamQuery(stream_.get());
    if (state != cudaErrorNotReady) CUDA_CHECK(state);
    return state == cudaSuccess;
  }
  void wait_for_event(const ladder::Event& event) {
    CUDA_CHECK(cudaEventRecord(event.get(), stream_.get()));
    CUDA_CHECK(cudaEventSynchronize(event.get()));
  }
  /// The flags hold for all waits of the device, until they are set again.
  void synchronize_with(unsigned schedule) {
    unsigned before = 0;
    CUDA_CHECK(cudaGetDeviceFlags(&before));
    constexpr unsigned kSchedules =
        cudaDeviceScheduleSpin | cudaDeviceScheduleYield | cudaDeviceScheduleBlockingSync;
    CUDA_CHECK(cudaSetDeviceFlags((before & ~kSchedules) | schedule));
    const cudaError_t state = cudaStreamSynchronize(stream_.get());
    CUDA_CHECK(cudaSetDeviceFlags(before));
    CUDA_CHECK(state);
  }

  PinnedBuffer<unsigned> flag_;
  ladder::DeviceBuffer<unsigned> end_;
  ladder::Stream stream_ = ladder::make_stream();
  ladder::Event event_ = ladder::make_order_event(),
                blocking_ = make_event_with(cudaEventDisableTiming | cudaEventBlockingSync);
  std::atomic<bool> called_{false};
  ladder::Guarded<bool> told_{"a host function behind the kernel"};
  unsigned number_ = 0;
};

struct Way {
  const char* name;
  void (WakeUp::*wait)();
};

constexpr Way kWays[] = {{"a flag that the kernel writes", &WakeUp::spin_on_flag},
                         {"cudaStreamQuery in a loop", &WakeUp::query},
                         {"cudaStreamQuery and yield in a loop", &WakeUp::query_and_yield},
                         {"cudaStreamSynchronize", &WakeUp::synchronize},
                         {"cudaStreamSynchronize, ScheduleSpin", &WakeUp::synchronize_spinning},
                         {"cudaStreamSynchronize, ScheduleYield", &WakeUp::synchronize_yielding},
                         {"cudaStreamSynchronize, BlockingSync", &WakeUp::synchronize_blocking},
                         {"cudaEventSynchronize", &WakeUp::wait_for_event},
                         {"cudaEventSynchronize, BlockingSync", &WakeUp::wait_for_blocking_event},
                         {"host function, the host spins", &WakeUp::spin_for_host_function},
                         {"host function, the host sleeps", &WakeUp::sleep_for_host_function}};

void run_wake_up(const Context& context) {
  const bool cpu = ladder::on_cpu_device();
  constexpr int kRunsOfARound = 10;
  WakeUp wake_up;
  std::vector<Variant> variants;
  std::vector<std::vector<double>> processor(2 * std::size(kWays));
  for (const int steps : cpu ? std::vector{1, 20} : std::vector{10'000, 1'000'000})
    for (const Way& way : kWays)
      variants.push_back({way.name,
                          {{"wait", way.name}, {"steps", std::to_string(steps)}},
                          [&, steps, wait = way.wait, name = way.name, i = variants.size()] {
                            wake_up.launch(steps);
                            const double begin = processor_us();
                            (wake_up.*wait)();
                            processor[i].push_back(processor_us() - begin);
                            wake_up.check(name);
                          }});
  const std::vector<Measured> measured = measure_interleaved(variants, kRunsOfARound * context.rounds);

  ladder::Table table(
      context.out,
      {{"steps", 8}, {"the host waits by", 36, false}, {"us", 8}, {"later by", 8}, {"busy us", 8}});
  table.header();
  for (size_t i = 0; i < variants.size(); ++i) {
    const double later = measured[i].median_us - measured[i / std::size(kWays) * std::size(kWays)].median_us;
    ladder::Settings& settings = variants[i].settings;
    settings["us"] = us_text(measured[i].median_us);
    settings["later_us"] = cpu ? "-" : ladder::fixed(later, 1);
    settings["busy_us"] = host_time_text(ladder::quartiles(processor[i]).median);
    table.row(
        {settings.at("steps"), variants[i].label, settings["us"], settings["later_us"], settings["busy_us"]});
    add_result(context, "wake_up", variants[i], {}, measured[i], {}, /*verified=*/true);
  }
  context.out << "us: from the launch until the host goes on. later by: than by the flag.\n"
                 "busy: how long the waiting thread kept a processor.\n";
}

}  // namespace

const Experiment& wake_up_experiment() {
  static const Experiment experiment = {
      "wake_up", "How soon does the host go on when the GPU is done, and what does waiting cost it?",
      run_wake_up};
  return experiment;
}

}  // namespace lesson07
