# Puts the kernel's headers into the program, as NVRTC needs them at run time: so a program compiles the kernels that it was
# built with, wherever it runs. Writes kernel_source.cpp, which lists them, and sets what on_demand_gpu.cpp asks for.
set(found "06_clusters_dsmem/any_shape/gemm.cuh")
set(entries "")
while(found)
  list(POP_FRONT found header)
  list(APPEND headers "${header}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${header}")
  file(READ "${PROJECT_SOURCE_DIR}/${header}" text)
  string(APPEND entries "    {\"${header}\", R\"LADDER(${text})LADDER\"},\n")
  string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
  list(TRANSFORM includes REPLACE "#include \"([^\"]+)\"" "\\1")
  list(APPEND found ${includes})
  list(REMOVE_ITEM found ${headers})
  list(REMOVE_DUPLICATES found)
endwhile()
list(LENGTH headers count)
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/kernel_source.cpp" @ONLY CONTENT [[
// Written by embed_kernel.cmake.
#include "06_clusters_dsmem/any_shape/kernel_source.hpp"

namespace lesson06::any_shape {
const std::vector<std::pair<const char*, const char*>> kKernelHeaders = {
@entries@};
}  // namespace lesson06::any_shape
]])
list(GET CUDAToolkit_INCLUDE_DIRS 0 cuda_include) # the one with cuda_bf16.h; others are below it
set_source_files_properties(
  on_demand_gpu.cpp
  PROPERTIES COMPILE_DEFINITIONS
             "LADDER_CUDA_INCLUDE=\"${cuda_include}\";LADDER_CUDA_LIBRARIES=\"${CUDAToolkit_LIBRARY_DIR}\"")
