/// @file
/// What the source says of a kernel that its type does not: parameters that are __grid_constant__, and
/// __launch_bounds__. Private to the engine.
#pragma once
#include <string>
#include <vector>

#include "common/cpu_device/kernel/engine.hpp"

namespace cpu_device {

struct KernelDeclaration {
  std::string name;
  bool is_known = false;  ///< false without debug information, addr2line or the source
  std::string place;      ///< "05_ws_double_buffer/gemm.cuh:143"
  std::string file;
  unsigned first_line = 0, last_line = 0;  ///< from __global__ to the end of the parameters
  std::vector<std::string> parameters;     ///< "const __grid_constant__ TensorMaps maps"
};

/// Asked once for each kernel; null is a kernel that is not known. Thread-safe.
const KernelDeclaration& declaration_of(const void* function);
/// The name of a parameter: the last word of its text.
std::string name_of_parameter(const std::string& text);
/// How many blocks of `threads` threads __launch_bounds__ asks for on one SM; 1 where it names no number.
unsigned blocks_in_launch_bounds(const void* function, unsigned threads);
/// The __cluster_dims__ of a kernel in `cluster`. @returns whether it has any
bool find_cluster_dims(const void* function, Dim3& cluster);
/// True of a kernel that is not known.
bool has_launch_bounds(const void* function);

/// The threads of a block that __launch_bounds__ names; 0 where it names none, or instances of a template
/// differ.
unsigned threads_in_launch_bounds(const void* function);
/// "gemm.cuh:34": the first line of the kernel's own body that reads this, "threadIdx.y" for example; or
/// nothing.
std::string line_that_reads(const void* function, const std::string& built_in);

/// For tests: what is declared around line `line` of a source.
KernelDeclaration read_declaration(const std::string& source, unsigned line);

}  // namespace cpu_device
