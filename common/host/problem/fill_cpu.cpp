/// @file
/// Fills matrices of the CPU device: on the host, from where they are copied.
#include "common/host/problem/fill.hpp"

#include <cstdint>
#include <vector>

#include "common/cuda/device_buffer.hpp"
#include "common/host/base/parallel.hpp"

namespace ladder {
namespace {

template <class Values>
void fill_on_host(__nv_bfloat16* device, size_t count, const Values& values) {
  std::vector<__nv_bfloat16> host(count);
  parallel_for(static_cast<int64_t>(count), 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) host[static_cast<size_t>(i)] = values(i);
  });
  copy_to_device(device, host.data(), count * sizeof(__nv_bfloat16));
}

}  // namespace

void fill(__nv_bfloat16* device, size_t count, NormalValues values) { fill_on_host(device, count, values); }
void fill(__nv_bfloat16* device, size_t count, IntegerValues values) { fill_on_host(device, count, values); }

}  // namespace ladder
