# A lesson's exercises: what `ladder learn` builds, and tests of the exercises themselves.

add_custom_target(exercises COMMENT "The checks of all exercises")
add_custom_target(exercise_sources COMMENT "The sources of these checks")

# A learner's unused variable is no reason not to check what is there.
add_library(ladder_lenient INTERFACE)
target_compile_options(ladder_lenient INTERFACE -w $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-w>)

# ladder_add_exercises(<NN_name>), called by add_lesson(). Each folder NN_name/exercise/<I_name> holds
#   exercise.md  title, kind, hints; the solution, with marked lines between `// >>> yours` and `// <<<`; the starter,
#                which a learner finds between the marks, and wrong answers, with what the check must say of them
#                (CONTRIBUTING.md)
#   check.cu     a program that includes EXERCISE, the solution with its own or other marked lines, and judges it
#                (common/exercise/check.hpp)
# Short exercises, of five to fifteen lines, have a letter for a number, and come first: a_parity is 04.a. A folder
# becomes the program exercise_NN.I, which checks the learner's mine.cuh and is built only when it is asked for.
# The test of the solution has the label `exercise`, and the target `exercises` builds what it runs. The starter and what
# is wrong are compiled and tested where LADDER_TEST_ALL is on, with the label `exercise-more`. On the GPU only the
# solution is tested: what is wrong may hang there, and what is slow is judged by counters, which only the CPU device has.
function(ladder_add_exercises lesson)
  string(SUBSTRING ${lesson} 0 2 number)
  file(GLOB descriptions CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/exercise/*/exercise.md")
  foreach(description IN LISTS descriptions)
    ladder_name_exercise("${description}" id name)
    cmake_path(GET description PARENT_PATH folder)
    ladder_add_check_program(exercise_${id} "${folder}/check.cu")
    target_compile_definitions(exercise_${id} PRIVATE "EXERCISE=\"${folder}/mine.cuh\"")
    target_link_libraries(exercise_${id} PRIVATE ladder_lenient)
    set_target_properties(exercise_${id} PROPERTIES EXCLUDE_FROM_ALL ON)
    # A program of wrong answers for each three exercises: most of the time goes into headers.
    set(part 1)
    if(id MATCHES "[.]([0-9]+)$") # Short exercises have letters, and compile quickly.
      math(EXPR part "(${CMAKE_MATCH_1} + 2) / 3")
    endif()
    list(APPEND part_${part} "${description}")
  endforeach()
  ladder_add_checks(exercises_${number}_solved solutions ${descriptions})
  foreach(part RANGE 1 9)
    if(part_${part})
      ladder_add_checks(exercises_${number}_wrong_${part} wrong ${part_${part}})
    endif()
  endforeach()
endfunction()

# ladder_name_exercise(<exercise.md> <id> <name>): sets <id> to 04.a or capstone.3, and <name> to a_parity or stage_3.
function(ladder_name_exercise description id name)
  cmake_path(GET description STEM stem)
  cmake_path(GET description PARENT_PATH folder)
  if(stem STREQUAL "exercise")
    cmake_path(GET folder FILENAME folder_name)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE lesson)
    string(SUBSTRING ${lesson} 0 2 number)
    string(REGEX REPLACE "_.*" "" index ${folder_name})
    set(${id} ${number}.${index} PARENT_SCOPE)
    set(${name} ${folder_name} PARENT_SCOPE)
  else()
    string(REGEX REPLACE "_.*" "" stage ${stem})
    set(${id} capstone.${stage} PARENT_SCOPE)
    set(${name} stage_${stage} PARENT_SCOPE)
  endif()
endfunction()

# ladder_add_checks(<program> solutions|wrong <exercise.md>...)
# A program that write_checks writes, with the checks of the solutions, or of the starters and wrong answers; and a test
# of each of them.
function(ladder_add_checks program answers)
  if(answers STREQUAL "wrong" AND NOT (LADDER_CPU_DEVICE AND LADDER_TEST_ALL))
    return()
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/exercise")
  file(MAKE_DIRECTORY "${folder}")
  set(written "${folder}/${program}.cu")
  set(read)
  foreach(description IN LISTS ARGN)
    cmake_path(GET description PARENT_PATH from)
    file(GLOB sources "${from}/stages.cuh" "${from}/check.cu")
    list(APPEND read "${description}" ${sources})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${description}")
    ladder_name_exercise("${description}" id name)
    if(answers STREQUAL "solutions")
      ladder_add_check_test("exercise ${id}: solution" exercise ${program} ${name})
      list(APPEND written "${folder}/${name}.cuh")
      continue()
    endif()
    file(STRINGS "${description}" headings REGEX "^## (Starter|Wrong: [a-z0-9_]+)$")
    foreach(heading IN LISTS headings)
      string(REGEX REPLACE "^## (Wrong: )?" "" answer "${heading}")
      string(TOLOWER ${answer} answer)
      ladder_add_check_test("exercise ${id}: ${answer}" exercise-more ${program} ${name}_${answer})
      list(APPEND written "${folder}/${name}_${answer}.cuh")
    endforeach()
  endforeach()
  add_custom_command(
    OUTPUT ${written}
    COMMAND write_checks "${folder}/${program}.cu" "${folder}" ${answers} ${ARGN}
    DEPENDS write_checks ${read}
    COMMENT "Writing ${program}"
    VERBATIM)
  add_custom_target(${program}_source DEPENDS ${written})
  add_dependencies(exercise_sources ${program}_source)
  ladder_add_check_program(${program} "${folder}/${program}.cu")
  if(answers STREQUAL "wrong")
    target_link_libraries(${program} PRIVATE ladder_lenient)
  endif()
  add_dependencies(exercises ${program})
endfunction()

# ladder_add_check_test(<name> <label> <program> <argument>)
function(ladder_add_check_test name label program argument)
  add_test(NAME "${name}" COMMAND ${program} ${argument})
  set_tests_properties("${name}" PROPERTIES LABELS ${label} TIMEOUT ${LADDER_TEST_TIMEOUT} SKIP_RETURN_CODE 4)
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
