/// @file
/// The kernels of attention as a shared library with plain functions, for beside_torch.py.
#include <memory>
#include <string>

#include "05_ws_double_buffer/attention/kernels.hpp"
#include "common/host/measure/sm_clock.hpp"

namespace {

std::unique_ptr<ladder::ClockStamps> clock_stamps;

}  // namespace

/// Launches step `step`, 1 to 5. @returns null, or what is wrong, until the next call
extern "C" const char* attention_launch(int step, const void* q, const void* k, const void* v, void* o,
                                        int batch, int heads, int kv_heads, int length, int causal,
                                        void* stream) {
  using namespace lesson05::attention;
  static std::string complaint;
  try {
    const auto array = [](const void* pointer) { return static_cast<const __nv_bfloat16*>(pointer); };
    const Attention p{{batch, heads, kv_heads, length, causal != 0},
                      array(q),
                      array(k),
                      array(v),
                      static_cast<__nv_bfloat16*>(o)};
    steps().at(step - 1).launch(p, static_cast<cudaStream_t>(stream));
    return nullptr;
  } catch (const std::exception& error) {
    complaint = error.what();
    return complaint.c_str();
  }
}

/// Stamps before and after some work of a stream say at which clock it ran.
extern "C" void attention_clock_before(int multiprocessors, void* stream) {
  if (!clock_stamps) clock_stamps = std::make_unique<ladder::ClockStamps>(multiprocessors);
  clock_stamps->before(static_cast<cudaStream_t>(stream));
}

/// @returns MHz, once the work has ended
extern "C" double attention_clock_after(void* stream) {
  clock_stamps->after(static_cast<cudaStream_t>(stream));
  return clock_stamps->read().mhz;
}
