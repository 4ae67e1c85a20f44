# The capstone of `ladder learn`: one file of the learner's that grows in stages.
#
# ladder_add_capstone(), called in the directory of lesson 05, whose folder exercise/capstone holds
#   stages.cuh               the reference of all stages, marked (common/exercise/stages.hpp)
#   <I_name>/exercise.json   of each stage, as in AddExercises.cmake, with "contract" and, perhaps, "more_headers", and in "wrong" what of the reference
#                            is replaced by what, and what the check must say then
#   <I_name>/hints.md        a section for each hint
#   judge.cpp, check.cu      what is asked of a stage, and the program that asks
#   yours.cu                 a program that climbs with the learner's kernel, beside lesson 05
# It makes the programs exercise_capstone.I, which check the learner's my_gemm.cuh, capstone, and capstone_stage_5 to _7 for
# `ladder ablate`, all built only when they are asked for. References are tested with the label `exercise`, what is wrong with `exercise-more` where LADDER_TEST_ALL is on.
function(ladder_add_capstone)
  set(folder "${CMAKE_CURRENT_SOURCE_DIR}/exercise/capstone")
  set(written "${CMAKE_CURRENT_BINARY_DIR}/exercise/capstone")
  file(MAKE_DIRECTORY "${written}")
  ladder_add_library(capstone_judge SOURCES "${folder}/judge.cpp" LINK ladder_exercise)

  file(GLOB descriptions CONFIGURE_DEPENDS "${folder}/*/exercise.json")
  list(SORT descriptions COMPARE NATURAL)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${descriptions} "${folder}/stages.cuh")
  set(right)
  set(files)
  foreach(description IN LISTS descriptions)
    cmake_path(GET description PARENT_PATH stage_folder)
    cmake_path(GET stage_folder FILENAME stage_name)
    string(REGEX REPLACE "_.*" "" stage ${stage_name})
    set(program exercise_capstone.${stage})
    ladder_add_check_program(${program} "${folder}/check.cu")
    target_compile_definitions(${program} PRIVATE STAGE=${stage} "EXERCISE=\"${folder}/my_gemm.cuh\"")
    target_link_libraries(${program} PRIVATE capstone_judge ladder_lenient)
    set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL ON)

    list(APPEND right ${stage} stage_${stage})
    list(APPEND files "${written}/stage_${stage}.cuh")
    ladder_add_check_test(capstone.${stage} solution capstone_solved stage_${stage})
    file(READ "${description}" json)
    string(JSON count LENGTH "${json}" wrong)
    math(EXPR last "${count} - 1")
    set(wrong)
    foreach(i RANGE ${last})
      string(JSON name MEMBER "${json}" wrong ${i})
      string(JSON words GET "${json}" wrong ${name} says)
      list(APPEND wrong ${stage} stage_${stage}_${name})
      list(APPEND files "${written}/stage_${stage}_${name}.cuh")
      if(LADDER_CPU_DEVICE AND LADDER_TEST_ALL)
        ladder_add_check_test(capstone.${stage} ${name} capstone_wrong_${stage} stage_${stage}_${name} --wrong "${words}")
      endif()
    endforeach()
    if(LADDER_CPU_DEVICE AND LADDER_TEST_ALL)
      ladder_add_stage_checks(capstone_wrong_${stage} "${folder}" "${written}" ${wrong})
      target_link_libraries(capstone_wrong_${stage} PRIVATE ladder_lenient)
    endif()
  endforeach()
  ladder_add_stage_checks(capstone_solved "${folder}" "${written}" ${right})

  # The climb with the learner's kernel; and with the last reference, to be tested.
  ladder_add_capstone_climb(capstone "${folder}" "${folder}/my_gemm.cuh")
  set_target_properties(capstone PROPERTIES EXCLUDE_FROM_ALL ON)
  target_link_libraries(capstone PRIVATE ladder_lenient)
  foreach(stage 5 6 7) # for `ladder ablate capstone`: the learner's kernel as it was when that stage was done
    ladder_add_capstone_climb(capstone_stage_${stage} "${folder}" "${folder}/my_gemm.stage_${stage}.cuh")
    set_target_properties(capstone_stage_${stage} PROPERTIES EXCLUDE_FROM_ALL ON)
    target_link_libraries(capstone_stage_${stage} PRIVATE ladder_lenient)
  endforeach()
  ladder_add_capstone_climb(capstone_reference "${folder}" "${written}/stage_8.cuh")
  add_dependencies(capstone_reference capstone_stages)
  add_dependencies(exercises capstone_reference)
  set(test "exercise capstone: a kernel of one's own climbs beside lesson 05")
  add_test(NAME "${test}" COMMAND capstone_reference)
  set_tests_properties("${test}" PROPERTIES LABELS exercise TIMEOUT 120 PASS_REGULAR_EXPRESSION "\nyours my_gemm.cuh +[^\n]*yes"
                       SKIP_REGULAR_EXPRESSION "no lesson can run here|this build needs an NVIDIA GPU|yours needs code for sm_90a")

  add_custom_command(
    OUTPUT ${files}
    COMMAND write_stages "${folder}" "${written}"
    DEPENDS write_stages "${folder}/stages.cuh" ${descriptions}
    COMMENT "Writing the stages of the capstone"
    VERBATIM)
  add_custom_target(capstone_stages DEPENDS ${files})
endfunction()

# ladder_add_stage_checks(<program> <folder> <written> [<stage> <file>]...): one program that checks any of the files.
function(ladder_add_stage_checks program folder written)
  file(STRINGS "${folder}/stages.cuh" includes REGEX "^#include")
  list(JOIN includes "\n" text)
  string(APPEND text "\n#include \"05_ws_double_buffer/exercise/capstone/judge.hpp\"\n#include \"common/exercise/check.hpp\"\n")
  set(calls)
  while(ARGN)
    list(POP_FRONT ARGN stage file)
    string(APPEND text "namespace of_${file} {\n#include \"${written}/${file}.cuh\"\n}\n")
    string(APPEND calls "  if (name == \"${file}\") return run(${stage}, of_${file}::mine::launch_gemm);\n")
  endwhile()
  string(APPEND text [[
int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const auto run = [&](int stage, capstone::Launch launch) {
    return ladder::exercise::run_check(argc - 1, argv + 1, [&] { capstone::judge(stage, launch); }, ladder::kHopper);
  };
]] "${calls}  return 1;\n}\n")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/exercise/${program}.cu")
  file(CONFIGURE OUTPUT "${source}" CONTENT "${text}" @ONLY)
  ladder_add_check_program(${program} "${source}")
  target_link_libraries(${program} PRIVATE capstone_judge)
  add_dependencies(${program} capstone_stages)
  add_dependencies(exercises ${program})
endfunction()

# ladder_add_capstone_climb(<program> <folder> <kernel file>)
function(ladder_add_capstone_climb program folder file)
  ladder_add_program(${program} SOURCES "${folder}/yours.cu" FLAVOUR instrumented LINK ladder_climb 05_ws_double_buffer_lesson)
  target_compile_definitions(${program} PRIVATE "EXERCISE=\"${file}\"")
endfunction()
