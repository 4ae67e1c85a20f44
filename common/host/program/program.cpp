/// @file
/// What all programs do with errors: one line on stderr, and an exit code that says whose fault it was.
#include "common/host/program/program.hpp"

#include <iostream>
#include <new>

#include "common/cuda/device_buffer.hpp"
#include "common/cuda/unwritten_reads.hpp"
#include "common/host/base/arguments.hpp"
#include "common/host/base/text.hpp"

namespace ladder {
namespace {

int report(const std::string& name, const std::string& what, int exit_code) {
  std::cout.flush();
  std::cerr << name << ": error: " << what << std::endl;
  return exit_code;
}

}  // namespace

int run_program(const std::string& name, const std::function<int()>& body) {
  try {
    return body();
  } catch (const BadArguments& error) {
    const std::string what = one_line(error.what());
    const bool has_help = what.find("--help") != std::string::npos;
    return report(name, has_help ? what : what + "; see --help", kExitBadInput);
  } catch (const std::invalid_argument& error) {
    return report(name, one_line(error.what()), kExitBadInput);
  } catch (const BadInput& error) {
    return report(name, one_line(error.what()), kExitBadInput);
  } catch (const OutOfDeviceMemory& error) {
    return report(name, one_line(error.what()), kExitBadInput);
  } catch (const std::bad_alloc&) {
    return report(name, "out of host memory; choose a smaller size", kExitBadInput);
  } catch (const std::exception& error) {
    // The CPU device reports broken rules with several lines, and all are worth reading.
    const std::string cause = take_broken_rule();
    return report(name,
                  cause.empty() ? error.what() + describe_host_side()
                                : cause + "\n  the host had seen: " + error.what(),
                  kExitFailure);
  }
}

}  // namespace ladder
