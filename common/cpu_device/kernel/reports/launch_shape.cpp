/// @file
/// Compares a launch with the kernel's source.
#include "common/cpu_device/kernel/reports/launch_shape.hpp"

#include <algorithm>

#include "common/cpu_device/kernel/from_source/kernel_declaration.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {

std::string place_of_launch(const KernelLaunch& kernel) {
  const Unobserved unobserved;
  if (kernel.where.line) return to_string(kernel.where);
  if (!kernel.callers) return "";
  const std::vector<std::string> calls = own_calls(*kernel.callers);
  return calls.empty() ? "" : calls.front();
}

namespace {

std::string launch_with_place(const KernelLaunch& kernel) {
  const std::string place = place_of_launch(kernel);
  return "the launch" + (place.empty() ? "" : " at " + place);
}

/// As the second line of a failure.
std::string with_second_line(const std::string& failure, const std::string& line) {
  if (line.empty()) return failure;
  const size_t end = std::min(failure.find('\n'), failure.size());
  return failure.substr(0, end) + "\n  " + line + failure.substr(end);
}

std::string explain_few_threads(const KernelLaunch& kernel) {
  const Unobserved unobserved;
  const auto threads = static_cast<unsigned>(kernel.block.count());
  const Dim3& block = kernel.block;
  const std::string shape = block.z > 1   ? print(" (%u x %u x %u)", block.x, block.y, block.z)
                            : block.y > 1 ? print(" (%u x %u)", block.x, block.y)
                                          : std::string();
  const unsigned named = threads_in_launch_bounds(kernel.function);
  if (threads >= named) return "";
  return launch_with_place(kernel) + print(" gives a block %u threads", threads) + shape +
         print(", and __launch_bounds__ of the kernel names %u: are %u too few?", named, threads);
}

std::string explain_flat_block(const KernelLaunch& kernel) {
  const Unobserved unobserved;
  const Dim3& block = kernel.block;
  if (block.y > 1 || block.x == 1) return "";
  const std::string reads = line_that_reads(kernel.function, "threadIdx.y");
  return reads.empty() ? ""
                       : "the kernel reads threadIdx.y (" + reads + "), and " + launch_with_place(kernel) +
                             print(" gives a block %u x 1 threads: it is 0 in all of them", block.x);
}

}  // namespace

std::string explain_block(const KernelLaunch& kernel) {
  const std::string few = explain_few_threads(kernel);
  return few.empty() ? explain_flat_block(kernel) : few;
}

std::string with_few_threads(const KernelLaunch& kernel, const std::string& failure) {
  return with_second_line(failure, explain_few_threads(kernel));
}

std::string with_flat_block(const KernelLaunch& kernel, const std::string& failure) {
  return with_second_line(failure, explain_flat_block(kernel));
}

}  // namespace cpu_device
