# A lesson's exercises: what `ladder learn` builds, and tests of the exercises themselves.
include("${CMAKE_CURRENT_LIST_DIR}/ExerciseMarks.cmake")

add_custom_target(exercises COMMENT "The checks of all exercises")

# A learner's unused variable is no reason not to check what is there.
add_library(ladder_lenient INTERFACE)
target_compile_options(ladder_lenient INTERFACE -w $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-w>)

# ladder_add_exercises(<NN_name>), called by add_lesson(). Each folder NN_name/exercise/<I_name> holds
#   solution.cuh   with marked lines (ExerciseMarks.cmake)
#   starter.inc    what a learner finds in their place
#   wrong/*.inc    what else they may look like and must not
#   check.cu       a program that includes EXERCISE, one of these files, and judges it (common/exercise/check.hpp)
#   exercise.json  "title"; "kind": write, find or predict; "trains", which completes "You can now ..."; "page" and
#                  "header", the two files to read; "starter" and "wrong", what the check must say of those files
#   hints.md       a section for each hint
# Short exercises, of five to fifteen lines, have a letter for a number, and come first: a_parity is 04.a. A folder
# becomes the program exercise_NN.I, which checks the learner's mine.cuh and is built only when it is asked for.
# The test of the solution has the label `exercise`, and the target `exercises` builds what it runs. The starter and what
# is wrong are compiled and tested where LADDER_TEST_ALL is on, with the label `exercise-more`. On the GPU only the
# solution is tested: what is wrong may hang there, and what is slow is judged by counters, which only the CPU device has.
function(ladder_add_exercises lesson)
  string(SUBSTRING ${lesson} 0 2 number)
  file(GLOB descriptions CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/exercise/*/exercise.json")
  foreach(description IN LISTS descriptions)
    cmake_path(GET description PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder_name)
    string(REGEX REPLACE "_.*" "" index ${folder_name})
    set(id ${number}.${index})
    ladder_add_check(exercise_${id} "${folder}" "${folder}/mine.cuh")
    set_target_properties(exercise_${id} PROPERTIES EXCLUDE_FROM_ALL ON)
    list(APPEND solutions ${folder_name} "${folder}/check.cu" "${folder}/solution.cuh")
    ladder_add_check_test(${id} solution exercises_${number}_solved ${folder_name})

    if(LADDER_CPU_DEVICE AND LADDER_TEST_ALL)
      # A program for each three exercises: most of the time goes into headers.
      set(part 1)
      if(index MATCHES "^[0-9]+$") # Short exercises have letters, and compile quickly.
        math(EXPR part "(${index} + 2) / 3")
      endif()
      ladder_add_wrong_solutions(${id} "${folder}" exercises_${number}_wrong_${part} wrong_${part})
    endif()
  endforeach()
  foreach(part RANGE 1 9)
    if(wrong_${part})
      set(source "${CMAKE_CURRENT_BINARY_DIR}/exercise/wrong_${part}.cu")
      ladder_write_checks("${source}" ${wrong_${part}})
      ladder_add_check_program(exercises_${number}_wrong_${part} "${source}")
      target_link_libraries(exercises_${number}_wrong_${part} PRIVATE ladder_lenient)
      add_dependencies(exercises exercises_${number}_wrong_${part})
    endif()
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/exercise/solved.cu")
  ladder_write_checks("${source}" ${solutions})
  ladder_add_check_program(exercises_${number}_solved "${source}")
  add_dependencies(exercises exercises_${number}_solved)
endfunction()

# ladder_add_wrong_solutions(<id> <folder> <program> <list>)
# Tests of the starter and of all that is wrong, and their checks in the list of the program, for ladder_write_checks().
function(ladder_add_wrong_solutions id folder program list)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/exercise.json" "${folder}/solution.cuh")
  cmake_path(GET folder FILENAME folder_name)
  file(READ "${folder}/exercise.json" json)
  string(JSON words GET "${json}" starter)
  string(JSON kind ERROR_VARIABLE no_kind GET "${json}" kind)
  set(how --starter)
  if(kind STREQUAL "find") # a whole kernel with a mistake: a report of the device says so, not a sentence
    set(how --wrong)
  endif()
  set(checks ${${list}})
  set(hashes)
  ladder_split_at_marks("${folder}/solution.cuh" before after)
  file(GLOB wrong_files CONFIGURE_DEPENDS "${folder}/wrong/*.inc")
  list(LENGTH wrong_files count)
  if(count LESS 3)
    message(FATAL_ERROR "${folder}: an exercise needs three wrong solutions at least")
  endif()
  foreach(lines_file IN ITEMS "${folder}/starter.inc" ${wrong_files})
    cmake_path(GET lines_file STEM name)
    if(name STREQUAL "starter")
      set(option ${how})
    else()
      set(option --wrong)
      string(JSON words GET "${json}" wrong ${name})
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${lines_file}")
    file(READ "${lines_file}" lines)
    string(MD5 hash "${lines}")
    if(hash IN_LIST hashes) # `#pragma once` may take two files with one text for the same file
      message(FATAL_ERROR "${lines_file}: is the same as the starter or another wrong solution")
    endif()
    list(APPEND hashes ${hash})
    set(whole_file "${CMAKE_CURRENT_BINARY_DIR}/exercise/${folder_name}/${name}.cuh")
    file(CONFIGURE OUTPUT "${whole_file}" CONTENT "${before}${lines}${after}" @ONLY)
    list(APPEND checks ${folder_name}_${name} "${folder}/check.cu" "${whole_file}")
    ladder_add_check_test(${id} ${name} ${program} ${folder_name}_${name} ${option} "${words}")
  endforeach()
  set(${list} "${checks}" PARENT_SCOPE)
endfunction()

# ladder_write_checks(<source> [<name> <check.cu> <EXERCISE>]...)
# Writes a program that runs the check of the given name. One program for many compiles in a quarter of the time that one
# for each takes. Each comes into a namespace of its own; what it includes comes before that.
function(ladder_write_checks source)
  set(includes "#include <cstdlib>\n#include <string>\n")
  set(checks)
  set(calls)
  while(ARGN)
    list(POP_FRONT ARGN name check file)
    set(namespace "of_${name}")
    foreach(included IN ITEMS "${file}" "${check}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${included}")
      file(STRINGS "${included}" lines REGEX "^#(include [<\"]|if|else|endif)")
      list(JOIN lines "\n" lines)
      string(APPEND includes "${lines}\n")
    endforeach()
    string(APPEND checks "\nnamespace ${namespace} {\n#define EXERCISE \"${file}\"\n#include \"${check}\"\n#undef EXERCISE\n}\n")
    string(APPEND calls "  if (name == \"${name}\") return ${namespace}::main(argc - 1, argv + 1);\n")
  endwhile()
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT
       "${includes}${checks}\nint main(int argc, char** argv) {\n  const std::string name = argc > 1 ? argv[1] : \"\";\n${calls}  return EXIT_FAILURE;\n}\n")
endfunction()

# ladder_add_check_test(<id> <variant> <program> [<argument>...])
function(ladder_add_check_test id variant program)
  set(name "exercise ${id}: ${variant}")
  add_test(NAME "${name}" COMMAND ${program} ${ARGN})
  set_tests_properties("${name}" PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 4)
  set(label exercise)
  if(NOT variant STREQUAL "solution")
    set(label exercise-more)
  endif()
  set_property(TEST "${name}" PROPERTY LABELS ${label})
endfunction()

# ladder_add_check(<target> <folder> <file>): the exercise's check, for one file.
function(ladder_add_check target folder file)
  ladder_add_check_program(${target} "${folder}/check.cu")
  target_compile_definitions(${target} PRIVATE "EXERCISE=\"${file}\"")
  target_link_libraries(${target} PRIVATE ladder_lenient)
endfunction()

# ladder_add_check_program(<target> <source>)
function(ladder_add_check_program target source)
  ladder_add_program(${target} SOURCES "${source}" FLAVOUR instrumented LINK ladder_exercise)
  if(NOT LADDER_CPU_DEVICE)
    # A learner's kernel may wait for what never comes: it gives up instead of hanging.
    ladder_instrument_kernels(${target} LADDER_BOUNDED_WAITS=1)
    set_target_properties(${target} PROPERTIES LADDER_MAY_SPILL ON)
  endif()
endfunction()
