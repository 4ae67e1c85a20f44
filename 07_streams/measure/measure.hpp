/// @file
/// Times whole schedules against each other: many operations in several streams, from the first call to the
/// end of the last operation.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/host/problem/lesson.hpp"
#include "common/host/program/results.hpp"

namespace lesson07 {

/// One of the schedules that are compared.
struct Variant {
  std::string label;
  ladder::Settings settings;  ///< for its result row
  std::function<void()> run;  ///< returns when all its work is done
};

/// Microseconds of one run.
struct Measured {
  double median_us = 0, q1_us = 0, q3_us = 0;
};

/// Runs each once untimed, then `rounds` rounds in random order (seeded). On the CPU device: virtual time of
/// one run.
/// @throws ladder::Interrupted, between two runs, after Ctrl-C
std::vector<Measured> measure_interleaved(const std::vector<Variant>& variants, int rounds);

/// A result row of this lesson with settings.experiment, the variant's settings and its times. The rest is
/// the caller's. `shape`: m is the rows of a batch on average.
ladder::Run result_row(const std::string& experiment, const Variant& variant, const ladder::Shape& shape,
                       const Measured& measured);

}  // namespace lesson07
