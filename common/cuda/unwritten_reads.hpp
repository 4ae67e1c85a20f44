/// @file
/// What kernels have read before it was written. A shadow of this header knows it on the CPU device.
#pragma once
#include <string>

#include "common/cuda/work_of_kernels.hpp"

namespace ladder {

/// A sentence about the first such read since the last call, as far as the device sees them: a GPU sees none.
inline std::string take_unwritten_read() { return ""; }

/// A GPU tells nothing.
inline WorkOfKernels take_work_of_kernels() { return {}; }

/// Sentences, a line each, on what of streams may explain a wrong result; a GPU tells nothing.
inline std::string describe_host_side() { return ""; }

/// Says that an allocation holds a row-major matrix, for reports of accesses outside it; a GPU has none.
template <class T>
void name_matrix(const T* /*first*/, const char* /*name*/, int /*rows*/, int /*columns*/) {}

/// A rule that queued work has broken, found while an exception left the program's code; a GPU tells nothing.
inline std::string take_broken_rule() { return ""; }

}  // namespace ladder
