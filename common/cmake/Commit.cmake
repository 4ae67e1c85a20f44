# The target `ladder_commit` brings the header ladder_commit.hpp, which defines LADDER_COMMIT: what `git describe`
# said at the last build, for result files. Run with -P it writes that header, only when the commit changed, so
# that a new commit recompiles nothing but what includes it.

if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  set(commit "${LADDER_COMMIT}")
  if(NOT commit)
    # A copy of the tree that lies in another repository has none of its commits.
    execute_process(
      COMMAND git rev-parse --show-prefix
      WORKING_DIRECTORY "${SOURCE_DIR}"
      OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT "${failed}${prefix}" STREQUAL "0")
      set(commit unknown)
    endif()
  endif()
  if(NOT commit)
    execute_process(
      COMMAND git describe --always --dirty --abbrev=12
      WORKING_DIRECTORY "${SOURCE_DIR}"
      OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT "${failed}" STREQUAL "0")
      set(commit unknown)
    endif()
  endif()
  file(CONFIGURE OUTPUT "${HEADER}" CONTENT "#pragma once\n#define LADDER_COMMIT \"@commit@\"\n" @ONLY)
  return()
endif()

set(LADDER_COMMIT "" CACHE STRING "The commit that result files name; empty: ask git at every build")
add_custom_target(
  write_ladder_commit
  COMMAND "${CMAKE_COMMAND}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DLADDER_COMMIT=${LADDER_COMMIT}"
          "-DHEADER=${PROJECT_BINARY_DIR}/generated/ladder_commit.hpp" -P "${CMAKE_CURRENT_LIST_FILE}"
  COMMENT "Asking git for the commit"
  BYPRODUCTS "${PROJECT_BINARY_DIR}/generated/ladder_commit.hpp"
  VERBATIM)
add_library(ladder_commit INTERFACE)
target_include_directories(ladder_commit INTERFACE "${PROJECT_BINARY_DIR}/generated")
add_dependencies(ladder_commit write_ladder_commit)
