# The capstone of `ladder learn`: one file of the learner's that grows in stages.
#
# ladder_add_capstone(), called in the directory of lesson 05, whose folder exercise/capstone holds
#   stages.cuh           the reference of all stages, marked (common/exercise/exercise_file.hpp)
#   <I_name>.md          of each stage, as in AddExercises.cmake, with a contract; wrong answers are changes of its reference
#   judge.cpp, check.cu  what is asked of a stage, and the program that asks
#   yours.cu             a program that climbs with the learner's kernel, beside lesson 05
# It makes the programs exercise_capstone.I, which check the learner's my_gemm.cuh, capstone, and capstone_stage_5 to _7 for
# `ladder ablate`, all built only when they are asked for. References are tested with the label `exercise`, what is wrong with `exercise-more` where LADDER_TEST_ALL is on.
function(ladder_add_capstone)
  set(folder "${CMAKE_CURRENT_SOURCE_DIR}/exercise/capstone")
  ladder_add_library(capstone_judge SOURCES "${folder}/judge.cpp" LINK ladder_exercise)

  file(GLOB descriptions CONFIGURE_DEPENDS "${folder}/*_*.md")
  list(SORT descriptions COMPARE NATURAL)
  set(programs capstone_solved)
  foreach(description IN LISTS descriptions)
    ladder_name_exercise("${description}" id name)
    string(REPLACE "stage_" "" stage ${name})
    ladder_add_check_program(exercise_${id} "${folder}/check.cu")
    target_compile_definitions(exercise_${id} PRIVATE STAGE=${stage} "EXERCISE=\"${folder}/my_gemm.cuh\"")
    target_link_libraries(exercise_${id} PRIVATE capstone_judge ladder_lenient)
    set_target_properties(exercise_${id} PROPERTIES EXCLUDE_FROM_ALL ON)
    ladder_add_checks(capstone_wrong_${stage} wrong "${description}")
    list(APPEND programs capstone_wrong_${stage})
  endforeach()
  ladder_add_checks(capstone_solved solutions ${descriptions})
  foreach(program IN LISTS programs)
    if(TARGET ${program})
      target_link_libraries(${program} PRIVATE capstone_judge)
    endif()
  endforeach()

  # The climb with the learner's kernel; and with the last reference, to be tested.
  ladder_add_capstone_climb(capstone "${folder}" "${folder}/my_gemm.cuh")
  set_target_properties(capstone PROPERTIES EXCLUDE_FROM_ALL ON)
  target_link_libraries(capstone PRIVATE ladder_lenient)
  foreach(stage 5 6 7) # for `ladder ablate capstone`: the learner's kernel as it was when that stage was done
    ladder_add_capstone_climb(capstone_stage_${stage} "${folder}" "${folder}/my_gemm.stage_${stage}.cuh")
    set_target_properties(capstone_stage_${stage} PROPERTIES EXCLUDE_FROM_ALL ON)
    target_link_libraries(capstone_stage_${stage} PRIVATE ladder_lenient)
  endforeach()
  set(last "${CMAKE_CURRENT_BINARY_DIR}/exercise/stage_8.cuh")
  ladder_add_capstone_climb(capstone_reference "${folder}" "${last}")
  add_custom_target(capstone_last_stage DEPENDS "${last}")
  add_dependencies(capstone_reference capstone_last_stage)
  add_dependencies(exercises capstone_reference)
  set(test "exercise capstone: a kernel of one's own climbs beside lesson 05")
  add_test(NAME "${test}" COMMAND capstone_reference)
  set_tests_properties("${test}" PROPERTIES LABELS exercise TIMEOUT ${LADDER_TEST_TIMEOUT} PASS_REGULAR_EXPRESSION "\nyours my_gemm.cuh +[^\n]*yes"
                       SKIP_REGULAR_EXPRESSION "no lesson can run here|this build needs an NVIDIA GPU|yours needs code for sm_90a")
endfunction()

# ladder_add_capstone_climb(<program> <folder> <kernel file>)
function(ladder_add_capstone_climb program folder file)
  ladder_add_program(${program} SOURCES "${folder}/yours.cu" FLAVOUR instrumented LINK ladder_climb 05_ws_double_buffer_lesson)
  target_compile_definitions(${program} PRIVATE "EXERCISE=\"${file}\"")
endfunction()
