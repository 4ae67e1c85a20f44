/// @file
/// Fills matrices in device memory, the same on every device for the same seed.
#pragma once
#include <cstddef>

#include "common/host/problem/fill_values.hpp"

namespace ladder {

void fill(__nv_bfloat16* device, size_t count, NormalValues values);
void fill(__nv_bfloat16* device, size_t count, IntegerValues values);

}  // namespace ladder
