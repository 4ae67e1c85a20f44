/// @file
/// In a GPU build for which no CUPTI was found: says so.
#include "07_streams/timeline/host_trace.hpp"
#include "common/host/program/program.hpp"

namespace lesson07 {

void HostTrace::start() {
  throw ladder::BadInput(
      "--trace: this build found no CUPTI, which records streams; it comes with the CUDA toolkit "
      "(extras/CUPTI, or the package cuda-cupti-dev)");
}
void HostTrace::stop() {}

HostFunctionSpan::HostFunctionSpan(const char* name, int device)
    : name_(name), device_(device), begin_ns_(0) {}
HostFunctionSpan::~HostFunctionSpan() {}

}  // namespace lesson07
