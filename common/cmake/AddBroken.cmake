# The broken copies of a lesson's kernel, for the lab (docs/lab.md). Also a program: with -P it applies one patch.
#
# ladder_add_broken(<NN_name> NAMESPACE <name> | MAIN <file>... [LINK <library>...]), called by add_lesson where the lesson has a folder
# `broken` with
#   lesson.cu        the lesson with a few of its kernels, so that a copy is compiled quickly (not where all mistakes of a
#                    patch are in .cpp files, which are compiled alone)
#   mistakes.patch   a section for each mistake: a line `## name`, lines `Key: value` (see common/lab/mistakes.py), then a
#                    unified diff, whose paths start at the root of the repository. Here each becomes a patch of its own, so
#                    that a change of one compiles that one.
# MAIN is the rest of the program, which is compiled once; of a lesson in a NAMESPACE it is common/host/program/lesson_main.cpp.
# LINK is what else it needs.
# It makes the programs right_NN, from that lesson.cu as it is, and broken_NN_<mistake>, from a copy of the files that
# the patch names, which comes before the repository on the include path. On the CPU device all are instrumented, and where LADDER_TEST_ALL is
# on, mistakes whose kind is `memory` have a second program, broken_NN_<mistake>_asan. Nothing of it is built by default: the target `lab` builds
# all, lab_NN those of one lesson. A mistake whose diff no longer applies fails the build and is named.
#
# LADDER_LAB_PATCHES: take <folder>/<NN_name>/mistakes.patch instead; that is how mutate.py brings its own.

if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  file(REMOVE_RECURSE "${COPY}")
  foreach(file IN LISTS FILES)
    get_filename_component(folder "${file}" DIRECTORY)
    file(COPY "${SOURCE}/${file}" DESTINATION "${COPY}/${folder}")
  endforeach()
  # Inside a repository, git would take paths as relative to its root, and skip what lies elsewhere.
  get_filename_component(above "${COPY}" DIRECTORY)
  set(ENV{GIT_CEILING_DIRECTORIES} "${above}")
  execute_process(
    COMMAND git apply "${PATCH}" WORKING_DIRECTORY "${COPY}" ERROR_VARIABLE message RESULT_VARIABLE failed)
  if(NOT "${failed}" STREQUAL "0")
    file(REMOVE_RECURSE "${COPY}")
    message(FATAL_ERROR "The mistake ${MISTAKE} no longer applies; make it anew for the lesson as it is "
                        "(docs/lab.md#add-a-mistake):\n${message}")
  endif()
  foreach(file IN LISTS FILES)
    file(TOUCH "${COPY}/${file}")
  endforeach()
  return()
endif()

set(LADDER_LAB_PATCHES "" CACHE PATH "A folder with patches that take the place of those of the lessons")
add_custom_target(lab COMMENT "All broken copies of the lessons")

function(ladder_add_broken name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAMESPACE" "MAIN;LINK")
  if(arg_NAMESPACE)
    set(arg_MAIN "${PROJECT_SOURCE_DIR}/common/host/program/lesson_main.cpp")
  endif()
  string(SUBSTRING ${name} 0 2 number)
  if(name STREQUAL "06_any_shape") # as in common/lab/mistakes.py
    set(number any)
  elseif(name STREQUAL "05_attention")
    set(number attention)
  endif()
  set(folder "${CMAKE_CURRENT_SOURCE_DIR}/broken")
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE below)
  add_custom_target(lab_${number} COMMENT "The broken copies of ${name}")
  add_dependencies(lab lab_${number})
  set_property(GLOBAL APPEND PROPERTY LADDER_LAB_NUMBERS ${number})

  ladder_add_library(${name}_main SOURCES ${arg_MAIN} FLAVOURS plain asan LINK ladder_host)
  foreach(main ${name}_main ${name}_main_asan)
    if(TARGET ${main})
      set_target_properties(${main} PROPERTIES EXCLUDE_FROM_ALL ON)
      target_compile_definitions(${main} PRIVATE LADDER_LESSON=${arg_NAMESPACE})
    endif()
  endforeach()
  ladder_add_program(right_${number} SOURCES "${folder}/lesson.cu" FLAVOUR instrumented LINK ${name}_main ${arg_LINK})
  set_target_properties(right_${number} PROPERTIES EXCLUDE_FROM_ALL ON)
  ladder_compile_for_lab(right_${number})
  add_dependencies(lab_${number} right_${number})

  if(LADDER_LAB_PATCHES)
    set(folder "${LADDER_LAB_PATCHES}/${name}")
    if(NOT EXISTS "${folder}")
      return()
    endif()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/mistakes.patch")
  file(READ "${folder}/mistakes.patch" rest)
  file(STRINGS "${folder}/mistakes.patch" headings REGEX "^## ")
  foreach(heading IN LISTS headings)
    string(FIND "${rest}" "\n${heading}\n" begin)
    math(EXPR begin "${begin} + 1")
    string(SUBSTRING "${rest}" ${begin} -1 rest)
    string(FIND "${rest}" "\n## " length)  # of the last one -1, which is all
    string(SUBSTRING "${rest}" 0 ${length} text)
    string(SUBSTRING "${heading}" 3 -1 mistake)
    set(patch "${CMAKE_CURRENT_BINARY_DIR}/broken/${mistake}.patch")
    file(CONFIGURE OUTPUT "${patch}" CONTENT "${text}" @ONLY)
    file(STRINGS "${patch}" refused REGEX "^Compiles: for the CPU device alone")
    if(refused AND NOT LADDER_CPU_DEVICE)
      continue()
    endif()
    file(STRINGS "${patch}" files REGEX "^[+][+][+] b/")
    list(TRANSFORM files REPLACE "^[+][+][+] b/" "")
    file(STRINGS "${patch}" memory REGEX "^Kind: memory")

    set(program broken_${number}_${mistake})
    set(copy "${CMAKE_CURRENT_BINARY_DIR}/broken/${mistake}")
    set(copied "${files}")
    list(TRANSFORM copied PREPEND "${copy}/")
    set(originals "${files}")
    list(TRANSFORM originals PREPEND "${PROJECT_SOURCE_DIR}/")
    add_custom_command(
      OUTPUT ${copied}
      COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DCOPY=${copy}" "-DPATCH=${patch}" "-DFILES=${files}"
              "-DMISTAKE=${mistake} in ${below}/broken/mistakes.patch"
              -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
      DEPENDS "${patch}" ${originals} "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
      COMMENT "Planting ${number} ${mistake}"
      VERBATIM)
    # lesson.cu may be what is patched. Where the mistakes are in sources of a library that is linked, these take the place
    # of the library's.
    set(lesson "${CMAKE_CURRENT_SOURCE_DIR}/broken/lesson.cu")
    set(no_sources "${files}")
    list(FILTER no_sources EXCLUDE REGEX "[.]cpp$")
    if(NOT no_sources)
      set(lesson "${copy}.cu")
      list(TRANSFORM files REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE includes)
      string(CONCAT includes ${includes})
      file(CONFIGURE OUTPUT "${lesson}" CONTENT "${includes}")
    elseif("${below}/broken/lesson.cu" IN_LIST files)
      set(lesson "${copy}/${below}/broken/lesson.cu")
    endif()

    add_custom_target(patch_${number}_${mistake} DEPENDS ${copied})
    set(flavours instrumented)
    if(memory AND LADDER_ASAN)
      list(APPEND flavours asan)
    endif()
    foreach(flavour IN LISTS flavours)
      set(target ${program})
      if(flavour STREQUAL "asan")
        set(target ${program}_asan)
      endif()
      ladder_add_program(${target} SOURCES "${lesson}" FLAVOUR ${flavour} LINK ${name}_main ${arg_LINK})
      set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
      target_include_directories(${target} BEFORE PRIVATE ${LADDER_SHADOWS} "${copy}")
      ladder_compile_for_lab(${target})
      add_dependencies(${target} patch_${number}_${mistake})
      add_dependencies(lab_${number} ${target})
    endforeach()
  endforeach()
endfunction()

# What a mistake leaves unused is no error. On the GPU, what ptxas says of a lab program is kept beside it: the compiler
# is one of the detectors.
function(ladder_compile_for_lab program)
  set(unused -Wno-unused-variable -Wno-unused-parameter -Wno-unused-but-set-variable -Wno-unused-but-set-parameter)
  if(LADDER_CPU_DEVICE)
    target_compile_options(${program} PRIVATE ${unused})
  else()
    list(JOIN unused , unused)
    # 177 and 550 are nvcc's own words for the same.
    target_compile_options(
      ${program} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${unused};-diag-suppress=177,550>")
    set_target_properties(
      ${program}
      PROPERTIES LADDER_MAY_SPILL ON
                 CUDA_COMPILER_LAUNCHER
                 "${PROJECT_SOURCE_DIR}/common/lab/recording_nvcc.sh;${PROJECT_BINARY_DIR}/bin/${program}.log")
    target_compile_options(${program} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>")
  endif()
endfunction()
