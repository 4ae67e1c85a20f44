/// @file
/// Records schedules, each in a run of its own: recording costs time, so that run is not the measured one.
#include "07_streams/measure/trace_recorder.hpp"

#include <utility>

#include "common/host/base/atomic_file.hpp"
#include "common/host/program/results.hpp"

namespace lesson07 {
namespace {

TraceRecorder* the_recorder = nullptr;

}  // namespace

TraceRecorder::TraceRecorder(std::string path) : path_(std::move(path)) { the_recorder = this; }
TraceRecorder::~TraceRecorder() { the_recorder = nullptr; }
TraceRecorder* TraceRecorder::current() { return the_recorder; }

void TraceRecorder::record(const std::vector<Variant>& variants) {
  for (const Variant& variant : variants) {
    HostTrace trace;
    trace.start();
    variant.run();
    trace.stop();
    timelines_.push_back({experiment_, variant.label, trace.spans()});
  }
}

void TraceRecorder::print(std::ostream& out) const {
  std::vector<ScheduleTimeline> of_experiment;
  for (const ScheduleTimeline& timeline : timelines_)
    if (timeline.experiment == experiment_) of_experiment.push_back(timeline);
  if (!of_experiment.empty()) print_summary(out, of_experiment);
}

void TraceRecorder::write() const {
  const ladder::ResultFile here = ladder::new_result_file();
  const ladder::TimelineFacts facts = {{"lesson", "07_streams"},
                                       {"device", here.gpu},
                                       {"toolkit", here.toolkit},
                                       {"commit", here.commit},
                                       {"date", here.date}};
  ladder::write_file_atomically("--trace", path_,
                                [&](std::ostream& file) { file << to_trace_events(timelines_, facts); });
}

}  // namespace lesson07
