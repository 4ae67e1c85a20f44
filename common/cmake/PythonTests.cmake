# Tests that are Python programs. Where there is no Python they are in the list all the same, and say that they were
# skipped.
#
#   ladder_add_python_test(NAME SCRIPT LABEL label [TIMEOUT seconds]
#                          [ARGUMENTS word...] [CONFIGURATIONS name] [PROPERTIES property value...])

# Ends what hangs, also on a machine with ten times as much to do. No test may depend on how fast it runs.
set(LADDER_TEST_TIMEOUT 900)
find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_Interpreter_FOUND)
  message(STATUS "python3 was not found: tests of pages, plans, programs and the lab that need it will be skipped")
endif()

function(ladder_add_python_test name script)
  cmake_parse_arguments(PARSE_ARGV 2 test "" "LABEL;TIMEOUT;CONFIGURATIONS" "ARGUMENTS;PROPERTIES")
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT ${LADDER_TEST_TIMEOUT})
  endif()
  set(configurations "")
  if(test_CONFIGURATIONS)
    set(configurations CONFIGURATIONS ${test_CONFIGURATIONS})
  endif()
  if(Python3_Interpreter_FOUND)
    add_test(NAME "${name}" COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${test_ARGUMENTS}
                                    ${configurations})
    set_tests_properties("${name}" PROPERTIES LABELS "${test_LABEL}" TIMEOUT ${test_TIMEOUT} ${test_PROPERTIES})
  else()
    add_test(NAME "${name}" COMMAND "${CMAKE_COMMAND}" -E echo "skipped: there is no python3" ${configurations})
    set_tests_properties("${name}" PROPERTIES LABELS "${test_LABEL}" SKIP_REGULAR_EXPRESSION "there is no python3")
  endif()
endfunction()
