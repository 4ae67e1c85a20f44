/// @file
/// What `--trace` does on either device.
#include "common/host/program/trace_contender.hpp"

#include <iostream>

#include "common/host/base/atomic_file.hpp"
#include "common/host/base/exit_codes.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/program/results.hpp"
#include "common/host/timeline/recording.hpp"
#include "common/host/verify/verifier.hpp"

namespace ladder {
namespace {

TimelineFacts facts_about(const Contender& contender, const Shape& shape) {
  const ResultFile here = new_result_file();
  return {{"lesson", contender.lesson}, {"settings", describe(contender.settings)},
          {"shape", shape.name()},      {"device", here.gpu},
          {"toolkit", here.toolkit},    {"commit", here.commit},
          {"date", here.date}};
}

/// The kernel that records is slower; how much, the reader must know.
void print_slowdown(const Recording& recording, const TraceRequest& request) {
  if (!recording.launch_us) return;
  std::cout << "One launch: " << fixed(*recording.launch_us, 1) << " us while it records";
  if (request.untraced_us)
    std::cout << ", " << fixed(*request.untraced_us, 1)
              << " us otherwise: " << fixed((*recording.launch_us / *request.untraced_us - 1) * 100, 1)
              << " % slower";
  std::cout << "\n";
}

}  // namespace

int trace_contender(const Contender& contender, const Shape& shape, const ComparisonOptions& options,
                    const TraceRequest& request, char** argv) {
  use_schedule(options.execution, options.execution.schedules.front());
  if (!can_record()) hand_over_to_traced(contender, shape, argv);

  if (options.verify) {
    Verifier verifier(shape, options.data_seed);
    const Verdict verdict =
        verifier.check([&](const Gemm& gemm) { multiply_and_wait(contender, gemm); }, contender.epilogue);
    if (!verdict.passed()) {
      std::cerr << contender.lesson << ": error: wrong result: " << verdict.complaint << std::endl;
      return kExitFailure;
    }
  }
  TraceInputs inputs(shape);
  Recording recording = record(contender, inputs.gemm());
  Timeline& timeline = recording.timeline;
  if (request.blocks) keep_blocks(timeline, *request.blocks);
  TimelineFacts facts = facts_about(contender, shape);
  if (recording.launch_us) facts.push_back({"launch_us", fixed(*recording.launch_us, 3)});
  if (request.untraced_us) facts.push_back({"untraced_launch_us", fixed(*request.untraced_us, 3)});
  if (recording.clock_mhz) facts.push_back({"clock_mhz", fixed(*recording.clock_mhz, 1)});
  write_file_atomically("--trace", request.path,
                        [&](std::ostream& file) { file << to_trace_events(timeline, facts); });

  std::cout << wrapped(contender.lesson + ", " + shape.name() + ", " + describe(contender.settings),
                       kTerminalColumns, "\n")
            << "\n";
  print_summary(std::cout, timeline);
  print_slowdown(recording, request);
  if (timeline.lost > 0)
    std::cout << "There was no room for " << timeline.lost << " spans: blocks are cut off after the first.\n";
  std::cout << "Timeline in " << request.path << ": open it with https://ui.perfetto.dev or chrome://tracing"
            << std::endl;
  return kExitOk;
}

}  // namespace ladder
