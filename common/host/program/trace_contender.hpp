/// @file
/// `--trace`: verifies a contender, records one launch and writes its timeline.
#pragma once
#include <optional>
#include <string>

#include "common/host/measure/comparison.hpp"
#include "common/host/measure/contender.hpp"

namespace ladder {

/// What the command line says about it.
struct TraceRequest {
  std::string path;                   ///< empty: no trace
  std::optional<size_t> blocks;       ///< how many are kept; nothing: all that are recorded
  std::optional<double> untraced_us;  ///< what the plain program measured
};

/// Verifies the contender, records a launch, writes the file and prints a table.
/// @param argv of the program, for the one that it may hand over to
/// @returns kExitOk, or kExitFailure after a line on stderr if the result was wrong
int trace_contender(const Contender& contender, const Shape& shape, const ComparisonOptions& options,
                    const TraceRequest& request, char** argv);

}  // namespace ladder
