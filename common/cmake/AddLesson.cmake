# What a lesson's directory builds, and the list of all lessons for the programs that run them all.

# add_lesson(<NN_name> [TRACED] [SOURCES file...]), called in the directory of that name, which holds
#   gemm.cuh      the kernel
#   lesson.cu     instantiates it and defines `const ladder::Lesson& lessonNN::lesson()`
#   main.cu       the program
#   test_gemm.cu  its tests
# SOURCES are what lesson.cu needs besides.
# TRACED is for lessons whose copies and products go through the wrappers that record them (03 and later). For the GPU
# it adds <name>_traced, the same program with kernels that write timestamps, which takes over from <name> when that
# is called with --trace. On the CPU device every program records by itself.
# It makes the library <name>_lesson, the program <name>, the test program <name>_test (Flavours.cmake says how often it
# runs), and for each lesson MM that lesson.cu says it builds on (`.builds_on`) the target diff_MM_NN, which prints what
# this gemm.cuh changes in that one. Where there is a folder `broken`, it makes the programs of the lab as well, see
# AddBroken.cmake. The folder `exercise`: see AddExercises.cmake.
function(add_lesson name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TRACED" "" "SOURCES")
  string(SUBSTRING ${name} 0 2 number)
  ladder_add_library(${name}_lesson SOURCES lesson.cu ${arg_SOURCES} FLAVOURS instrumented asan LINK ladder_host)
  ladder_add_program(${name} SOURCES main.cu FLAVOUR instrumented LINK ${name}_lesson)

  if(arg_TRACED AND NOT LADDER_CPU_DEVICE)
    ladder_add_library(${name}_lesson_traced SOURCES lesson.cu ${arg_SOURCES} LINK ladder_host)
    ladder_instrument_kernels(${name}_lesson_traced LADDER_TRACE=1)
    # A timestamp takes a register or two that a kernel may not have.
    set_target_properties(${name}_lesson_traced PROPERTIES LADDER_MAY_SPILL ON)
    ladder_add_program(${name}_traced SOURCES main.cu LINK ${name}_lesson_traced)
    set(trace "${PROJECT_BINARY_DIR}/${name}_trace.json")
    if(NOT LADDER_TRACED)
      set_target_properties(${name}_lesson_traced ${name}_traced PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
    add_test(NAME "${name}: a timeline is recorded" COMMAND ${name} --size 1024 --trace "${trace}")
    set_tests_properties(
      "${name}: a timeline is recorded" PROPERTIES LABELS ${number} TIMEOUT 120 SKIP_REGULAR_EXPRESSION
                                                   "-DLADDER_DEVICE=cpu;needs code for sm_;runs none of its code")
  endif()

  ladder_add_kernel_test(${name}_test SOURCES test_gemm.cu LINK ${name}_lesson ladder_testing LABEL ${number})
  ladder_add_exercises(${name})

  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/broken/lesson.cu")
    ladder_add_broken(${name})
  endif()

  # common/results/lattice.py reads the same line.
  file(READ lesson.cu lesson)
  string(REGEX MATCH "\\.builds_on = {([^}]*)}" builds_on "${lesson}")
  string(REGEX MATCHALL "[0-9][0-9]_[a-z0-9_]+" bases "${CMAKE_MATCH_1}")
  foreach(base IN LISTS bases)
    string(SUBSTRING ${base} 0 2 base_number)
    add_custom_target(
      diff_${base_number}_${number}
      # git exits with 1 where the files differ, which is what they are expected to do.
      COMMAND git --no-pager diff --no-index -w ${base}/gemm.cuh ${name}/gemm.cuh || true
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      COMMENT "What ${name} changes in the kernel of ${base}"
      USES_TERMINAL)
  endforeach()
  set_property(GLOBAL APPEND PROPERTY LADDER_LESSONS ${name})
endfunction()

# ladder_write_registry(), called after the last add_lesson, makes the library `ladder_lessons`: all lessons, and
# ladder::all_lessons() of common/host/problem/lesson_registry.hpp, which lists them in the order of the ladder.
function(ladder_write_registry)
  get_property(lessons GLOBAL PROPERTY LADDER_LESSONS)
  set(declarations "")
  set(entries "")
  set(libraries "")
  foreach(lesson IN LISTS lessons)
    string(SUBSTRING ${lesson} 0 2 number)
    string(APPEND declarations "namespace lesson${number} { const ladder::Lesson& lesson(); }\n")
    list(APPEND entries "&lesson${number}::lesson()")
    list(APPEND libraries ${lesson}_lesson)
  endforeach()
  list(JOIN entries ", " entries)
  set(registry "${PROJECT_BINARY_DIR}/generated/all_lessons.cpp")
  file(CONFIGURE OUTPUT "${registry}" @ONLY CONTENT [[
// Written by ladder_write_registry() in common/cmake/AddLesson.cmake.
#include "common/host/problem/lesson_registry.hpp"

@declarations@
std::vector<const ladder::Lesson*> ladder::all_lessons() { return {@entries@}; }
]])
  ladder_add_library(ladder_lessons SOURCES "${registry}" FLAVOURS instrumented asan LINK ${libraries})
endfunction()
