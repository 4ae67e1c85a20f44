# Libraries, programs and tests for either device, each from one list of sources (.cpp or .cu).
#
# On the GPU there is one flavour of everything. On the CPU device a library can be built in three:
#   plain         `name`
#   instrumented  `name_instrumented`: every memory access is reported to the race checker and the counters
#   asan          `name_asan`: with AddressSanitizer
# A program or a test has one flavour and links that flavour of each library, or the plain one where a library
# does not have it.

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
  add_library(ladder_asan INTERFACE)
  target_compile_options(ladder_asan INTERFACE -fsanitize=address -fno-omit-frame-pointer)
  target_link_options(ladder_asan INTERFACE -fsanitize=address)
endif()

# ladder_add_library(<name> SOURCES <file>... [FLAVOURS <flavour>...] [LINK <library>...])
# The default is the plain flavour alone. Names in LINK are those of the plain flavours.
function(ladder_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;FLAVOURS;LINK")
  if(NOT arg_FLAVOURS OR NOT LADDER_CPU_DEVICE)
    set(arg_FLAVOURS plain)
  endif()
  if(NOT LADDER_HAS_ASAN)
    list(REMOVE_ITEM arg_FLAVOURS asan)
  endif()
  foreach(flavour IN LISTS arg_FLAVOURS)
    ladder_name_of_flavour(target ${name} ${flavour})
    add_library(${target} STATIC ${arg_SOURCES})
    ladder_build_as(${target} ${flavour} LINK ${arg_LINK})
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

# ladder_add_test(<name> LABEL <label> SOURCES <file>... [FLAVOUR <flavour>] [LINK <library>...] [TIMEOUT <seconds>])
# A Catch2 program, each of whose test cases ctest runs by itself. Its label is the given one, followed by the
# flavour if that is not plain: `ctest -L 02` matches 02, 02-races and 02-asan, and `ctest -L races` the races of
# all. A test that cannot run here (no GPU) says so with Catch2's SKIP.
function(ladder_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;FLAVOUR;TIMEOUT" "SOURCES;LINK")
  if(arg_FLAVOUR STREQUAL "asan" AND NOT LADDER_HAS_ASAN)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_FLAVOUR)
    set(arg_FLAVOUR plain)
  endif()
  if(arg_FLAVOUR STREQUAL "instrumented")
    string(APPEND arg_LABEL -races)
  elseif(arg_FLAVOUR STREQUAL "asan")
    string(APPEND arg_LABEL -asan)
  endif()
  ladder_add_program(${name} SOURCES ${arg_SOURCES} FLAVOUR "${arg_FLAVOUR}" LINK ${arg_LINK} Catch2::Catch2WithMain)
  # The list of test cases is read when ctest starts: no program runs while building.
  catch_discover_tests(
    ${name}
    TEST_PREFIX "${name}: "
    DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 4)
endfunction()

# Sets <result> to the name of a library's flavour.
function(ladder_name_of_flavour result library flavour)
  if(flavour STREQUAL "plain")
    set(${result} ${library} PARENT_SCOPE)
  else()
    set(${result} ${library}_${flavour} PARENT_SCOPE)
  endif()
endfunction()

# ladder_build_as(<target> <flavour> [LINK <library>...])
# Gives a target the common settings and those of its flavour.
function(ladder_build_as target flavour)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "LINK")
  target_link_libraries(${target} PUBLIC ladder_build_settings)
  if(flavour STREQUAL "instrumented")
    ladder_instrument(${target})
  elseif(flavour STREQUAL "asan")
    target_link_libraries(${target} PUBLIC ladder_asan)
  elseif(NOT flavour STREQUAL "plain")
    message(FATAL_ERROR "${target}: the flavours are plain, instrumented and asan, not '${flavour}'")
  endif()
  foreach(library IN LISTS arg_LINK)
    if(library MATCHES ":") # Imported (Boost::context) or an expression: not ours, so without flavours.
      target_link_libraries(${target} PUBLIC ${library})
    else()
      ladder_name_of_flavour(flavoured ${library} ${flavour})
      target_link_libraries(${target} PUBLIC $<IF:$<TARGET_EXISTS:${flavoured}>,${flavoured},${library}>)
    endif()
  endforeach()
  if(LADDER_CPU_DEVICE)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "[.]cu$")
    set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX)
  endif()
endfunction()
