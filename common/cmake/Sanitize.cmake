# Tests under NVIDIA's compute-sanitizer, in the GPU build: `ctest --preset sanitize`. What each tool can judge here
# and what it cannot is in docs/sanitizers.md.

set(LADDER_SANITIZERS memcheck racecheck synccheck initcheck)

# Where a tool reports errors of kernels that are right. Such a run must go on reporting them: the day it comes out
# clean, it fails, and its line can be taken out. synccheck also stops such a kernel, so that its test cases fail.
# initcheck takes what TMA stored for never written when the host copies it; a kernel's read would count.
set(LADDER_FALSE_ALARMS
    # cuda::pipeline for a whole block: over 1,900 errors with CUDA 13.0.
    03_double_buffer_test:synccheck # --copy block
    04_portable_test:synccheck
    07_streams_test:initcheck
    07_experiments_test:initcheck
    07_peers_test:initcheck # with two GPUs; with one, its test cases that copy between them are skipped, and so is this
    # NCCL asks for kernels that it does not have, and reads its own buffers before it has written all of them.
    07_allreduce_test:memcheck
    07_allreduce_test:initcheck)

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
    if("${test}:${tool}" IN_LIST LADDER_FALSE_ALARMS)
      set(pass "${summary}[1-9]")
      set(fail "")
      if(NOT tool STREQUAL "synccheck")
        set(pass "passed.*${summary}[1-9];${summary}[1-9].*passed")
        set(fail "FAILED:")
      endif()
      if(tool STREQUAL "initcheck" AND NOT test STREQUAL "07_allreduce_test")
        list(APPEND fail "Uninitialized __global__ memory read")
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
                 TIMEOUT 300
                 ENVIRONMENT "${environment}"
                 PASS_REGULAR_EXPRESSION "${pass}"
                 FAIL_REGULAR_EXPRESSION "${fail}"
                 SKIP_REGULAR_EXPRESSION "${skip}"
                 SKIP_RETURN_CODE 4) # Catch2's, when it skipped all
  endforeach()
endfunction()
