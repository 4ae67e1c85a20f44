# What a lesson's directory builds, and the list of all lessons for the programs that run them all.

# add_lesson(<NN_name> [TRACED] [NAMESPACE name] [SOURCES file...]), called in the directory of that name, which holds
#   gemm.cuh      the kernel
#   lesson.cu     instantiates it and defines `const ladder::Lesson& lessonNN::lesson()`, or in the NAMESPACE given
#   test_gemm.cu  its tests
# SOURCES are what lesson.cu needs besides.
# TRACED is for lessons whose copies and products go through the wrappers that record them (03 and later). For the GPU
# it adds <name>_traced, the same program with kernels that write timestamps, which takes over from <name> when that
# is called with --trace. On the CPU device every program records by itself.
# It makes the library <name>_lesson, the program <name> (common/host/program/lesson_main.cpp), the test program <name>_test (Flavours.cmake says how often it
# runs), and the targets that print what each step changes, see ladder_add_step_diffs(). Where there is a folder `broken`, it makes the programs of the lab as well, see
# AddBroken.cmake. The folder `exercise`: see AddExercises.cmake.
function(add_lesson name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TRACED" "NAMESPACE" "SOURCES")
  string(SUBSTRING ${name} 0 2 number)
  if(NOT arg_NAMESPACE)
    set(arg_NAMESPACE lesson${number})
  endif()
  ladder_add_library(${name}_lesson SOURCES lesson.cu ${arg_SOURCES} FLAVOURS instrumented asan LINK ladder_host)
  ladder_add_lesson_program(${name} ${arg_NAMESPACE} FLAVOUR instrumented LINK ${name}_lesson)

  if(arg_TRACED AND NOT LADDER_CPU_DEVICE)
    ladder_add_library(${name}_lesson_traced SOURCES lesson.cu ${arg_SOURCES} LINK ladder_host)
    ladder_instrument_kernels(${name}_lesson_traced LADDER_TRACE=1)
    # A timestamp takes a register or two that a kernel may not have.
    set_target_properties(${name}_lesson_traced PROPERTIES LADDER_MAY_SPILL ON)
    ladder_add_lesson_program(${name}_traced ${arg_NAMESPACE} LINK ${name}_lesson_traced)
    set(trace "${PROJECT_BINARY_DIR}/${name}_trace.json")
    if(NOT LADDER_TRACED)
      set_target_properties(${name}_lesson_traced ${name}_traced PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
    add_test(NAME "${name}: a timeline is recorded" COMMAND ${name} --size 1024 --trace "${trace}")
    set_tests_properties(
      "${name}: a timeline is recorded" PROPERTIES LABELS ${number} TIMEOUT ${LADDER_TEST_TIMEOUT} SKIP_REGULAR_EXPRESSION
                                                   "-DLADDER_DEVICE=cpu;needs code for sm_;runs none of its code")
  endif()

  ladder_add_kernel_test(${name}_test SOURCES test_gemm.cu LINK ${name}_lesson ladder_testing LABEL ${number})
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/exercise")
    ladder_add_exercises(${name})
  endif()

  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/broken/lesson.cu")
    ladder_add_broken(${name} NAMESPACE ${arg_NAMESPACE})
  endif()

  ladder_add_step_diffs(lesson.cu)
  set_property(GLOBAL APPEND PROPERTY LADDER_LESSONS ${name})
  set_property(GLOBAL PROPERTY LADDER_NAMESPACE_${name} ${arg_NAMESPACE})
endfunction()

# ladder_add_lesson_program(<name> <namespace> [FLAVOUR <flavour>] [LINK <library>...]): the program of the lesson in this namespace.
function(ladder_add_lesson_program name namespace)
  ladder_add_program(${name} SOURCES "${PROJECT_SOURCE_DIR}/common/host/program/lesson_main.cpp" ${ARGN})
  target_compile_definitions(${name} PRIVATE LADDER_LESSON=${namespace})
endfunction()

# ladder_add_step_diffs(<file>...): for each step of the folder's lesson the target diff_<base>_<step>, which prints what the step's kernel changes in the kernel that it
# builds on: diff_02_04_1, and within a lesson diff_04_1_2 (from 04.1 to 04.2) or diff_04_2_04 (from there to 04).
# common/results/lattice.py says which there are, and reads the files.
function(ladder_add_step_diffs)
  if(NOT Python3_Interpreter_FOUND)
    return()
  endif()
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/common/results/lattice.py" "${CMAKE_CURRENT_SOURCE_DIR}"
    OUTPUT_VARIABLE steps OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" steps "${steps}")
  foreach(step IN LISTS steps)
    separate_arguments(step)
    list(GET step 0 target)
    list(GET step 1 old)
    list(GET step 2 new)
    add_custom_target(
      ${target}
      # git exits with 1 where the files differ, which is what they are expected to do.
      COMMAND git --no-pager diff --no-index -w ${old} ${new} || true
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      COMMENT "What ${new} changes in ${old}"
      USES_TERMINAL)
  endforeach()
endfunction()

# ladder_write_registry(), called after the last add_lesson, makes the library `ladder_lessons`: all lessons, and
# ladder::all_lessons() of common/host/problem/lesson_registry.hpp, which lists them in the order of the ladder.
function(ladder_write_registry)
  get_property(lessons GLOBAL PROPERTY LADDER_LESSONS)
  set(declarations "")
  set(entries "")
  set(libraries "")
  foreach(lesson IN LISTS lessons)
    get_property(namespace GLOBAL PROPERTY LADDER_NAMESPACE_${lesson})
    string(APPEND declarations "namespace ${namespace} { const ladder::Lesson& lesson(); }\n")
    list(APPEND entries "&${namespace}::lesson()")
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
