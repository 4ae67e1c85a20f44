/// @file
/// `--trace`: one more run of every schedule that an experiment compares, recorded, and one file of all.
#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "07_streams/measure/measure.hpp"
#include "07_streams/timeline/host_trace.hpp"

namespace lesson07 {

/// While it lives, measure_interleaved() hands it the schedules that it has measured. There is one at most.
class TraceRecorder {
 public:
  /// @param path of the file
  explicit TraceRecorder(std::string path);
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  /// nullptr if nothing is to be recorded
  static TraceRecorder* current();

  /// What the file calls the schedules that follow, for example "levels 2048x4096x4096".
  void begin_experiment(const std::string& name) { experiment_ = name; }
  /// Runs each once and records what it does.
  /// @throws ladder::BadInput where this build or this machine cannot record
  void record(const std::vector<Variant>& variants);
  /// Prints the figures of the experiment that was recorded last, if any.
  void print(std::ostream& out) const;
  /// Writes the file whole or not at all.
  /// @throws std::invalid_argument, naming --trace, if it cannot be written
  void write() const;

 private:
  std::string path_, experiment_;
  std::vector<ScheduleTimeline> timelines_;
};

}  // namespace lesson07
