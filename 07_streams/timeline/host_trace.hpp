/// @file
/// The timeline of streams: what each had the GPU do and when, and for how long its engines worked at once.
#pragma once
#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "common/host/timeline/timeline.hpp"
#include "common/host/timeline/trace_events.hpp"

namespace lesson07 {

/// What carries out an operation of a stream.
enum class Engine {
  upload,      ///< copy engine, host to device
  compute,     ///< the SMs: kernels, and the memsets and copies within one GPU that run as such
  download,    ///< copy engine, device to host
  peer_copy,   ///< copy engine, device to device
  all_reduce,  ///< the SMs that NCCL's kernels take
  host         ///< a thread of the CUDA runtime: host functions. The last: none of the GPU's
};
constexpr std::array<const char*, 6> kEngineNames = {"upload",    "compute",    "download",
                                                     "peer copy", "all-reduce", "host function"};

/// One operation.
struct StreamSpan {
  int device = 0;
  std::string stream;  ///< "stream 2"
  Engine engine = Engine::compute;
  std::string name;  ///< "lesson06::gemm", "upload 33.6 MB"
  double begin_us = 0, end_us = 0;
};

/// How busy the engines of one device were. Times in microseconds.
struct EngineUse {
  int device = 0;
  double length_us = 0;                               ///< from the first operation to the end of the last
  std::array<double, kEngineNames.size()> busy_us{};  ///< by Engine; two operations at once count once
  double two_at_once_us = 0, three_at_once_us = 0;    ///< at least, of all but host
};

/// One for each device that did something, in their order.
std::vector<EngineUse> summarise(const std::vector<StreamSpan>& spans);

/// What streams did in one run of a schedule. Times begin at 0, so that schedules can be compared.
struct ScheduleTimeline {
  std::string experiment, schedule;
  std::vector<StreamSpan> spans;
};

/// A row for each schedule and device: how much of the time each engine of the GPU was busy, and at least two
/// or three of them at once.
void print_summary(std::ostream& out, const std::vector<ScheduleTimeline>& timelines);

/// A process for each schedule and device; in it a lane for each engine, then one for each stream. What
/// overlaps in a lane goes to a second one of the same name.
std::vector<ladder::TraceLane> lanes_of_streams(const std::vector<ScheduleTimeline>& timelines);

/// The file for Perfetto: the lanes, with `facts` and the figures of the summary as metadata.
std::string to_trace_events(const std::vector<ScheduleTimeline>& timelines,
                            const ladder::TimelineFacts& facts);

/// Records what all streams of all devices do. One at a time; on the GPU by CUPTI's activity records.
class HostTrace {
 public:
  HostTrace() = default;
  ~HostTrace();
  HostTrace(const HostTrace&) = delete;
  HostTrace& operator=(const HostTrace&) = delete;

  /// Records what is enqueued from now on. What was enqueued before should have ended.
  /// @throws ladder::BadInput where this build or this machine cannot record
  void start();
  /// Ends the recording. The caller has waited for what is to be in it.
  /// @throws ladder::BadInput if there was no room for all
  void stop();

  /// Of the recording that was stopped, in the order of their beginnings; the first begins at 0.
  const std::vector<StreamSpan>& spans() const { return spans_; }

 private:
  bool running_ = false;
  std::vector<StreamSpan> spans_;
};

/// In a host function of a stream (cudaLaunchHostFunc): the time of its life, for the trace that is running.
/// CUPTI has no record of host functions, the CPU device has its own.
class HostFunctionSpan {
 public:
  explicit HostFunctionSpan(const char* name, int device = 0);
  ~HostFunctionSpan();
  HostFunctionSpan(const HostFunctionSpan&) = delete;
  HostFunctionSpan& operator=(const HostFunctionSpan&) = delete;

 private:
  [[maybe_unused]] const char* name_;
  [[maybe_unused]] int device_;
  [[maybe_unused]] uint64_t begin_ns_;
};

}  // namespace lesson07
