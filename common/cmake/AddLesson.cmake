# What a lesson's directory builds, and the list of all lessons for the programs that run them all.

# add_lesson(<NN_name>), called in the directory of that name, which holds
#   gemm.cuh      the kernel
#   lesson.cu     instantiates it and defines `const ladder::Lesson& lessonNN::lesson()`
#   main.cu       the program
#   test_gemm.cu  its tests
# It makes the library <name>_lesson, the program <name>, the test programs <name>_test and, on the CPU device,
# <name>_test_races and <name>_test_asan, on the GPU the tests under compute-sanitizer, and the target diff_MM_NN, which
# prints what this gemm.cuh changes in that of the lesson before.
function(add_lesson name)
  string(SUBSTRING ${name} 0 2 number)
  ladder_add_library(${name}_lesson SOURCES lesson.cu FLAVOURS plain instrumented asan LINK ladder_host)
  ladder_add_program(${name} SOURCES main.cu FLAVOUR instrumented LINK ${name}_lesson)

  set(test SOURCES test_gemm.cu LINK ${name}_lesson ladder_testing LABEL ${number})
  ladder_add_test(${name}_test ${test})
  ladder_sanitize(${name}_test LABEL ${number})
  if(LADDER_CPU_DEVICE)
    ladder_add_test(${name}_test_races ${test} FLAVOUR instrumented)
    ladder_add_test(${name}_test_asan ${test} FLAVOUR asan)
  endif()

  get_property(lessons GLOBAL PROPERTY LADDER_LESSONS)
  if(lessons)
    list(GET lessons -1 previous)
    string(SUBSTRING ${previous} 0 2 previous_number)
    add_custom_target(
      diff_${previous_number}_${number}
      # git exits with 1 where the files differ, which is what they are expected to do.
      COMMAND git --no-pager diff --no-index ${previous}/gemm.cuh ${name}/gemm.cuh || true
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      COMMENT "What ${name} changes in the kernel of ${previous}"
      USES_TERMINAL)
  endif()
  set_property(GLOBAL APPEND PROPERTY LADDER_LESSONS ${name})
endfunction()

# ladder_write_registry(), called after the last add_lesson, makes the library `ladder_lessons`: all lessons, and
# ladder::all_lessons() of common/host/lesson_registry.hpp, which lists them in the order of the ladder.
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
#include "common/host/lesson_registry.hpp"

@declarations@
std::vector<const ladder::Lesson*> ladder::all_lessons() { return {@entries@}; }
]])
  ladder_add_library(ladder_lessons SOURCES "${registry}" FLAVOURS plain instrumented asan LINK ${libraries})
endfunction()
