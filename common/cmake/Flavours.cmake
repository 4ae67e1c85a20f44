# Libraries, programs and tests for either device, each from one list of sources (.cpp or .cu).
#
# On the GPU there is one flavour of everything. On the CPU device a library can be built in three:
#   plain         `name`: of host code
#   instrumented  `name_instrumented`: of kernels; every memory access is reported to the race checker and the counters
#   asan          `name_asan`: with AddressSanitizer, where LADDER_TEST_ALL is on
# A program or a test has one flavour and links that flavour of each library, or the plain one where a library
# does not have it. What reports nothing to nobody runs nearly as fast, so there are no kernels in the plain flavour.

include(CheckCXXSourceCompiles)

if(LADDER_CPU_DEVICE)
  include("${PROJECT_SOURCE_DIR}/common/cpu_device/instrumentation/instrumentation.cmake") # ladder_instrument()

  # What an instrumented program's accesses report to, and its absence. Objects, so that no linker leaves them out.
  add_library(access_hooks OBJECT "${PROJECT_SOURCE_DIR}/common/cpu_device/instrumentation/hooks.cpp")
  target_link_libraries(access_hooks PUBLIC ladder_build_settings cpu_device)
  add_library(access_hooks_off OBJECT "${PROJECT_SOURCE_DIR}/common/cpu_device/instrumentation/hooks_off.cpp")
  target_link_libraries(access_hooks_off PUBLIC ladder_build_settings)

  # A compiler without the runtime library of AddressSanitizer (clang's is a package of its own) leaves out asan.
  set(CMAKE_REQUIRED_FLAGS -fsanitize=address)
  check_cxx_source_compiles("int main() {}" LADDER_HAS_ASAN)
  unset(CMAKE_REQUIRED_FLAGS)
  if(LADDER_TEST_ALL AND LADDER_HAS_ASAN)
    set(LADDER_ASAN ON)
  endif()
  option(LADDER_ASAN_EVERYWHERE "Where AddressSanitizer is used, test all lessons with it, not 02, 06 and 07 alone" ON)
  add_library(ladder_asan INTERFACE)
  # Of what it makes of the standard library, g++ 12 thinks that it may be uninitialised.
  target_compile_options(
    ladder_asan INTERFACE -fsanitize=address -fno-omit-frame-pointer
                          $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  target_link_options(ladder_asan INTERFACE -fsanitize=address)
endif()

# ladder_add_library(<name> SOURCES <file>... [FLAVOURS <flavour>...] [LINK <library>...] [HOT])
# The default is the plain flavour alone. Names in LINK are those of the plain flavours. HOT: on the CPU device most of
# the time passes in it.
function(ladder_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "HOT" "" "SOURCES;FLAVOURS;LINK")
  set(hot)
  if(arg_HOT)
    set(hot HOT)
  endif()
  if(NOT arg_FLAVOURS OR NOT LADDER_CPU_DEVICE)
    set(arg_FLAVOURS plain)
  endif()
  if(NOT LADDER_ASAN)
    list(REMOVE_ITEM arg_FLAVOURS asan)
  endif()
  foreach(flavour IN LISTS arg_FLAVOURS)
    ladder_name_of_flavour(target ${name} ${flavour})
    add_library(${target} STATIC ${arg_SOURCES})
    if(flavour STREQUAL "asan") # whatever links it has it built
      set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
    ladder_build_as(${target} ${flavour} ${hot} LINK ${arg_LINK})
  endforeach()
endfunction()

# ladder_add_program(<name> SOURCES <file>... [FLAVOUR <flavour>] [LINK <library>...])
function(ladder_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FLAVOUR" "SOURCES;LINK")
  if(NOT arg_FLAVOUR OR NOT LADDER_CPU_DEVICE)
    set(arg_FLAVOUR plain)
  endif()
  add_executable(${name} ${arg_SOURCES})
  ladder_build_as(${name} ${arg_FLAVOUR} LINK ${arg_LINK})
  if(arg_FLAVOUR STREQUAL "instrumented")
    target_link_libraries(${name} PRIVATE access_hooks)
  elseif(LADDER_CPU_DEVICE)
    target_link_libraries(${name} PRIVATE access_hooks_off)
  endif()
endfunction()

# ladder_add_test(<name> LABEL <label> SOURCES <file>... [FLAVOUR <flavour>] [LINK <library>...] [TIMEOUT <seconds>]
#                 [BREADTH <breadth>])
# A Catch2 program, each of whose test cases ctest runs by itself, with the label <label>. A test that cannot run here
# (no GPU) says so with Catch2's SKIP. On the CPU device it tries as much as <breadth> says (common/testing/breadth.hpp).
function(ladder_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;FLAVOUR;TIMEOUT;BREADTH" "SOURCES;LINK")
  # From CMake 3.31 on it warns of a keyword with an empty value.
  foreach(keyword IN ITEMS FLAVOUR TIMEOUT)
    set(${keyword})
    if(arg_${keyword})
      set(${keyword} ${keyword} ${arg_${keyword}})
    endif()
  endforeach()
  ladder_add_program(${name} SOURCES ${arg_SOURCES} ${FLAVOUR} LINK ${arg_LINK} Catch2::Catch2WithMain)
  set(environment)
  if(arg_BREADTH AND LADDER_CPU_DEVICE)
    set(environment ENVIRONMENT LADDER_TEST_BREADTH=${arg_BREADTH})
  endif()
  ladder_discover_tests(${name} "${name}: " LABELS ${arg_LABEL} ${TIMEOUT} ${environment})
endfunction()

# ladder_add_kernel_test(<name> LABEL <label> SOURCES <file>... [LINK <library>...] [TIMEOUT <seconds>] [BREADTH <breadth>])
# A test of kernels. On the CPU device it is instrumented, and where LADDER_TEST_ALL is on it runs twice more, with the
# label <label>-more: with what the usual breadth leaves out, and with AddressSanitizer (common/testing/breadth.hpp). On the GPU it also
# runs under compute-sanitizer.
function(ladder_add_kernel_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;TIMEOUT;BREADTH" "SOURCES;LINK")
  ladder_add_test(${name} ${ARGN} FLAVOUR instrumented)
  ladder_sanitize(${name} LABEL ${arg_LABEL})
  if(NOT LADDER_CPU_DEVICE OR NOT LADDER_TEST_ALL)
    return()
  endif()
  ladder_discover_tests(${name} "${name}, more: " LABELS ${arg_LABEL}-more ENVIRONMENT LADDER_TEST_BREADTH=more)
  if(LADDER_ASAN AND (LADDER_ASAN_EVERYWHERE OR arg_LABEL MATCHES "^(02|06|07|cpu_device)$"))
    ladder_add_program(${name}_asan SOURCES ${arg_SOURCES} FLAVOUR asan LINK ${arg_LINK} Catch2::Catch2WithMain)
    ladder_discover_tests(${name}_asan "${name}_asan: " LABELS ${arg_LABEL}-more ENVIRONMENT LADDER_TEST_BREADTH=one)
  endif()
endfunction()

# The environment of all tests, which ctest reads before it runs them, and what it keeps out: the plans that whoever runs them has
# tuned (`ladder tune`).
set(environment "${PROJECT_BINARY_DIR}/generated/test_environment.cmake")
file(CONFIGURE OUTPUT "${environment}" CONTENT "set(ENV{LADDER_TUNED} no)\n")
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${environment}")

# ladder_discover_tests(<program> <prefix> [<property> <value>]...)
# The list of test cases is read when ctest starts: no program runs while building.
function(ladder_discover_tests program prefix)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT" "")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${LADDER_TEST_TIMEOUT})
  endif()
  set(again)
  if(prefix MATCHES ", more: $") # Catch2 tells two lists of one program apart by the arguments of its tests.
    set(again EXTRA_ARGS --order decl)
  endif()
  if(NOT LADDER_CPU_DEVICE) # There is one GPU, and some tests time it.
    list(APPEND arg_UNPARSED_ARGUMENTS RUN_SERIAL ON)
  endif()
  catch_discover_tests(
    ${program}
    TEST_PREFIX "${prefix}"
    DISCOVERY_MODE PRE_TEST
    ${again}
    PROPERTIES ${arg_UNPARSED_ARGUMENTS} TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 4)
endfunction()

# The standard library's headers take a third of the time that it takes to compile a source. So those that most sources
# include are compiled once for each flavour, and once more with Catch2's for tests. Sources still include what they
# use: builds by clang do without this.
function(ladder_precompile_headers target flavour libraries optimisation)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  set(headers <algorithm> <cstdint> <functional> <map> <memory> <optional> <set> <sstream> <stdexcept> <string> <vector>)
  set(precompiled ladder_headers_${flavour})
  if(NOT optimisation)
    string(APPEND precompiled _hot)
  elseif(optimisation STREQUAL "-O0")
    string(APPEND precompiled _cold)
  endif()
  set(catch2)
  if("Catch2::Catch2WithMain" IN_LIST libraries OR "Catch2::Catch2" IN_LIST libraries)
    list(APPEND headers <catch2/catch_test_macros.hpp> <catch2/generators/catch_generators.hpp>
         <catch2/matchers/catch_matchers_string.hpp>)
    string(APPEND precompiled _test)
    set(catch2 Catch2::Catch2)
  endif()
  if(NOT TARGET ${precompiled})
    set(nothing "${PROJECT_BINARY_DIR}/generated/nothing.cpp")
    file(CONFIGURE OUTPUT "${nothing}" CONTENT "// A library needs a source.\n")
    add_library(${precompiled} OBJECT "${nothing}")
    ladder_set_flavour(${precompiled} ${flavour} "${optimisation}")
    target_link_libraries(${precompiled} PRIVATE ${catch2})
    target_precompile_headers(${precompiled} PRIVATE ${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
endfunction()

# Sets <result> to the name of a library's flavour.
function(ladder_name_of_flavour result library flavour)
  if(flavour STREQUAL "plain")
    set(${result} ${library} PARENT_SCOPE)
  else()
    set(${result} ${library}_${flavour} PARENT_SCOPE)
  endif()
endfunction()

# Gives a target the common settings and those of its flavour. Where <optimisation> is empty, that of the build type stays.
function(ladder_set_flavour target flavour optimisation)
  target_link_libraries(${target} PUBLIC ladder_build_settings)
  target_compile_options(${target} PRIVATE ${optimisation})
  if(flavour STREQUAL "instrumented")
    ladder_instrument(${target})
  elseif(flavour STREQUAL "asan")
    target_link_libraries(${target} PUBLIC ladder_asan)
  elseif(flavour STREQUAL "plain")
    # Reports name lines of kernels and of tests, of which neither is plain and optimised. To find them, they tell the
    # CPU device's own calls by their lines, and it is HOT: `optimisation` is empty.
    if(LADDER_CPU_DEVICE AND optimisation AND NOT optimisation STREQUAL "-O0")
      set_target_properties(${target} PROPERTIES LADDER_NO_LINES $<NOT:$<CONFIG:Debug>>)
    endif()
  else()
    message(FATAL_ERROR "${target}: the flavours are plain, instrumented and asan, not '${flavour}'")
  endif()
endfunction()

# ladder_build_as(<target> <flavour> [HOT] [LINK <library>...])
# Gives a target its flavour, and links it.
function(ladder_build_as target flavour)
  cmake_parse_arguments(PARSE_ARGV 2 arg "HOT" "" "LINK")
  # On the CPU device, only what is HOT runs long enough to repay the time that more optimisation would cost. Host code
  # of tests repays none, nor does AddressSanitizer's where it has no kernels.
  get_target_property(sources ${target} SOURCES)
  set(optimisation)
  if(LADDER_CPU_DEVICE)
    set(is_asan FALSE)
    if(flavour STREQUAL "asan")
      set(is_asan TRUE)
    endif()
    if((is_asan AND NOT arg_HOT AND NOT sources MATCHES "[.]cu(;|$)")
       OR (flavour STREQUAL "plain" AND arg_LINK MATCHES "Catch2::"))
      set(optimisation -O0)
    elseif(is_asan OR NOT arg_HOT)
      set(optimisation "$<$<NOT:$<CONFIG:Debug>>:-O1>")
    endif()
  endif()
  ladder_set_flavour(${target} ${flavour} "${optimisation}")
  ladder_precompile_headers(${target} ${flavour} "${arg_LINK}" "${optimisation}")
  foreach(library IN LISTS arg_LINK)
    if(library MATCHES ":") # Imported (Boost::context) or an expression: not ours, so without flavours.
      target_link_libraries(${target} PUBLIC ${library})
    else()
      ladder_name_of_flavour(flavoured ${library} ${flavour})
      target_link_libraries(${target} PUBLIC $<IF:$<TARGET_EXISTS:${flavoured}>,${flavoured},${library}>)
    endif()
  endforeach()
  # Most of the time goes into headers, and into the same functions of libraries again and again. A source that cannot
  # share a namespace with its neighbours has the property SKIP_UNITY_BUILD_INCLUSION.
  list(LENGTH sources count)
  if(count GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${LADDER_UNITY})
  endif()
  if(LADDER_CPU_DEVICE)
    list(FILTER sources INCLUDE REGEX "[.]cu$")
    set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX)
  endif()
endfunction()
