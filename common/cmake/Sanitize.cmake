# Tests under NVIDIA's compute-sanitizer, in the GPU build: `ctest --preset sanitize`. What each tool can judge here
# and what it cannot is in docs/sanitizers.md.

set(LADDER_SANITIZERS memcheck racecheck synccheck initcheck)

# Where a tool reports errors of kernels that are right: <test>:<tool>:<the place that it names, a regular expression>.
# Such a run must go on reporting just these, as many as the newest record in docs/results/tests counted: the day it
# comes out clean, it fails, and its line can be taken out. synccheck also stops such a kernel, so that its test cases
# fail. initcheck takes what TMA stored for never written when the host copies it; a kernel's read would count.
set(LADDER_FALSE_ALARMS
    # cuda::pipeline for a whole block.
    "03_double_buffer_test:synccheck:Missing wait.*mbarrier_arrive[.]h" # --copy block
    "04_portable_test:synccheck:Missing wait.*mbarrier_arrive[.]h"
    "07_streams_test:initcheck:on access by cudaMemcpy source"
    "07_experiments_test:initcheck:on access by cudaMemcpy source"
    # With two GPUs; with one, its test cases that copy between them are skipped, and so is this.
    "07_peers_test:initcheck:on access by cudaMemcpy source"
    # NCCL asks for kernels that it does not have, and reads its own buffers before it has written all of them.
    "07_allreduce_test:memcheck:libnccl"
    "07_allreduce_test:initcheck:nccl")
# What else these tools say is no false alarm.
set(LADDER_TRUE_ALARM_synccheck "Divergent thread" "Missing init" "Barrier overflow" "Invalid arguments")
set(LADDER_TRUE_ALARM_initcheck "Uninitialized __global__ memory read")

# Where a tool takes too long for all that a test tries: racecheck needs 20 s for a dual GEMM of any size, on an H200.
set(LADDER_SANITIZED_NARROWLY 05_dual_gemm_test:racecheck)

if(NOT LADDER_CPU_DEVICE)
  find_program(
    LADDER_COMPUTE_SANITIZER compute-sanitizer
    HINTS "${CUDAToolkit_BIN_DIR}" "${CUDAToolkit_BIN_DIR}/../compute-sanitizer")
  mark_as_advanced(LADDER_COMPUTE_SANITIZER)
  if(LADDER_COMPUTE_SANITIZER)
    message(STATUS "Sanitizers: ${LADDER_COMPUTE_SANITIZER}")
  else()
    message(STATUS "Sanitizers: none, because there is no compute-sanitizer")
  endif()
endif()

# Sets <result> to the number of errors that the newest record counted of a false alarm; to any number from 1 on where
# there is no record of it.
file(GLOB LADDER_SANITIZER_RECORDS CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/results/tests/*.json")
function(ladder_recorded_errors result test tool)
  set(${result} "[1-9][0-9]*" PARENT_SCOPE)
  set(records ${LADDER_SANITIZER_RECORDS})
  if(NOT records)
    return()
  endif()
  list(SORT records)
  list(GET records -1 newest)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${newest}")
  file(STRINGS "${newest}" row REGEX "\"program\":\"${test}\",\"tool\":\"${tool}\"")
  if(row MATCHES "\"errors\":([1-9][0-9]*)")
    set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  endif()
endfunction()

# ladder_sanitize(<test> LABEL <label>)
# Runs the whole program of a ladder_add_test() once under each tool, with the label <label>-sanitize. It takes
# minutes, so only ctest's configuration Sanitize (`ctest -C Sanitize`) has these tests. Without compute-sanitizer and
# on the CPU device there are none.
#
# What counts is what the run prints, not its exit status: that status cannot tell a tool that checked nothing from
# one that found nothing, nor a false alarm from a wrong result. So Catch2 must have counted test cases that passed and
# none that failed, and the tool must have counted its errors.
function(ladder_sanitize test)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL" "")
  if(NOT LADDER_COMPUTE_SANITIZER)
    return()
  endif()
  foreach(tool IN LISTS LADDER_SANITIZERS)
    set(summary "ERROR SUMMARY: ")
    if(tool STREQUAL "racecheck")
      set(summary "RACECHECK SUMMARY: ")
    endif()
    # The two lines may come in either order.
    set(pass "passed.*${summary}0 ;${summary}0 .*passed")
    set(fail "FAILED:")
    set(alarm "${LADDER_FALSE_ALARMS}")
    list(FILTER alarm INCLUDE REGEX "^${test}:${tool}:")
    if(alarm)
      string(REGEX REPLACE "^[^:]*:[^:]*:" "" place "${alarm}")
      ladder_recorded_errors(count ${test} ${tool})
      set(alarm "${place}.*${summary}${count} ")
      set(pass "${alarm}")
      set(fail ${LADDER_TRUE_ALARM_${tool}})
      if(NOT tool STREQUAL "synccheck")
        set(pass "passed.*${alarm};${alarm}.*passed;${place}.*passed.*${summary}${count} ")
        list(APPEND fail "FAILED:")
      endif()
      if(test STREQUAL "07_allreduce_test")
        set(fail "FAILED:")
      endif()
    endif()
    # What the tests say without a GPU (require_device).
    set(skip "CUDA found none")
    if("${test}:${tool}" STREQUAL "07_peers_test:initcheck")
      list(APPEND skip "needs 2 GPUs")
    endif()
    set(environment)
    if("${test}:${tool}" IN_LIST LADDER_SANITIZED_NARROWLY)
      set(environment LADDER_TEST_BREADTH=narrow)
    endif()
    set(cases)
    if(tool STREQUAL "memcheck") # It counts the errors of CUDA that a test case provokes.
      set(cases "~[provokes_errors]")
    elseif(tool STREQUAL "racecheck") # It does not follow __syncwarp to the arrival of one lane for its warp.
      set(cases "~[one_lane_arrives]")
    endif()
    add_test(
      NAME "${test}: ${tool}"
      COMMAND "${LADDER_COMPUTE_SANITIZER}" --tool ${tool} --print-limit 20 $<TARGET_FILE:${test}> ${cases}
      CONFIGURATIONS Sanitize)
    set_tests_properties(
      "${test}: ${tool}"
      PROPERTIES LABELS ${arg_LABEL}-sanitize
                 TIMEOUT ${LADDER_TEST_TIMEOUT}
                 ENVIRONMENT "${environment}"
                 PASS_REGULAR_EXPRESSION "${pass}"
                 FAIL_REGULAR_EXPRESSION "${fail}"
                 SKIP_REGULAR_EXPRESSION "${skip}"
                 SKIP_RETURN_CODE 4) # Catch2's, when it skipped all
  endforeach()
endfunction()
