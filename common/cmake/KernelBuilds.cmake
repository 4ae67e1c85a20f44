# The target `ladder_kernel_builds` brings the header ladder_kernel_builds.hpp: for each lesson a hash of the sources that
# make its kernels and of the flags that they are compiled with, as they were at the last build. `ladder tune` remembers
# plans of these kernels alone. Run with -P it writes that header, only when a hash changed.

if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  # The hashes of all sources in these folders, one behind the other. Tests are none of them.
  function(hashes_of result)
    set(patterns "")
    foreach(folder IN LISTS ARGN)
      list(APPEND patterns "${folder}/*.cuh" "${folder}/*.cu" "${folder}/*.[ch]pp")
    endforeach()
    file(GLOB files ${patterns})
    list(FILTER files EXCLUDE REGEX "/test_[^/]*$")
    set(hashes "")
    foreach(file IN LISTS files)
      file(SHA256 "${file}" hash)
      string(APPEND hashes "${hash}")
    endforeach()
    set(${result} "${hashes}" PARENT_SCOPE)
  endfunction()

  set(common "${SOURCE_DIR}/common")
  hashes_of(common_hashes "${common}/device" "${common}/ptx" "${common}/cuda")
  # The kernels for any shape have a folder in their lesson's: 06_clusters_dsmem/any_shape is 06_any_shape.
  file(GLOB lessons RELATIVE "${SOURCE_DIR}" "${SOURCE_DIR}/[0-9][0-9]_*/lesson.cu"
       "${SOURCE_DIR}/[0-9][0-9]_*/any_shape/lesson.cu")
  set(entries "")
  foreach(lesson IN LISTS lessons)
    cmake_path(GET lesson PARENT_PATH folder)
    string(REGEX REPLACE "^([0-9][0-9]_)[^/]*/" "\\1" name "${folder}")
    hashes_of(hashes "${SOURCE_DIR}/${folder}")
    string(SHA256 hash "${common_hashes}${hashes}${FLAGS}")
    string(SUBSTRING "${hash}" 0 12 hash)
    string(APPEND entries "\n    {\"${name}\", \"${hash}\"},")
  endforeach()
  file(CONFIGURE OUTPUT "${HEADER}" @ONLY CONTENT [[
#pragma once
inline constexpr std::pair<const char*, const char*> kKernelBuilds[] = {@entries@
};
]])
  return()
endif()

string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
add_custom_target(
  write_ladder_kernel_builds
  COMMAND
    "${CMAKE_COMMAND}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DHEADER=${PROJECT_BINARY_DIR}/generated/ladder_kernel_builds.hpp"
    "-DFLAGS=${CMAKE_BUILD_TYPE} ${LADDER_BOUNDED_WAITS} ${CMAKE_CUDA_ARCHITECTURES} ${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_${build_type}}"
    -P "${CMAKE_CURRENT_LIST_FILE}"
  COMMENT "Hashing the sources of kernels"
  BYPRODUCTS "${PROJECT_BINARY_DIR}/generated/ladder_kernel_builds.hpp"
  VERBATIM)
add_library(ladder_kernel_builds INTERFACE)
target_include_directories(ladder_kernel_builds INTERFACE "${PROJECT_BINARY_DIR}/generated")
add_dependencies(ladder_kernel_builds write_ladder_kernel_builds)
