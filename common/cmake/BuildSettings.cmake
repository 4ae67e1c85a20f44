# The compilers' settings, the same for every target: LADDER_CPU_DEVICE says which device is built for, and the
# target `ladder_build_settings` carries include paths, definitions and warnings.

set(LADDER_DEVICE auto CACHE STRING "Where the lessons run: gpu, cpu, or auto for the GPU where there is one")
set_property(CACHE LADDER_DEVICE PROPERTY STRINGS auto gpu cpu)
ladder_choose_device("${LADDER_DEVICE}" device reason)
if(device STREQUAL "gpu")
  set(LADDER_CPU_DEVICE OFF)
  message(STATUS "Device: the GPU (${reason})")
else()
  set(LADDER_CPU_DEVICE ON)
  message(STATUS "Device: the CPU device (${reason})")
endif()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Optimised, with the line numbers that reports name" FORCE)
endif()
set(bounded OFF)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(bounded ON)
endif()
option(LADDER_BOUNDED_WAITS "On the GPU, waits at an mbarrier give up after 2 s and say who waited for what" ${bounded})
option(LADDER_TEST_ALL "Also build and run what the default tests leave out because it takes long" OFF)
option(LADDER_TRACED "On the GPU, build the programs that record timelines with the others" ON)
option(LADDER_UNITY "Compile several sources of a target at a time: faster from scratch, slower after a change" ON)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

# A learner who goes back to an earlier version compiles nothing twice.
find_program(LADDER_CCACHE ccache DOC "Keeps what was compiled before; empty: does not")
mark_as_advanced(LADDER_CCACHE)
if(LADDER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  message(STATUS "Compiling through ${LADDER_CCACHE}")
  # These headers are precompiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${LADDER_CCACHE}")
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>")
endif()

# Headers that measure, bound and name what kernels do (common/instrumented). LADDER_SHADOWS are the folders that come
# before the repository on the include path of every target.
set(LADDER_INSTRUMENTED "${PROJECT_SOURCE_DIR}/common/instrumented/shadow")
set(LADDER_SHADOWS "")

add_library(ladder_build_settings INTERFACE)
# Of the debug information, reports need only the lines (-g1), and none of them where the target's property
# LADDER_NO_LINES is on. The last -g wins, and it is this one.
set(lines "-g$<IF:$<BOOL:$<TARGET_PROPERTY:LADDER_NO_LINES>>,0,1>")
target_compile_options(ladder_build_settings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Werror;${lines}>")
# clang leaves out what tells addr2line where to look, which then takes four times as long.
target_compile_options(ladder_build_settings INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-gdwarf-aranges>")

if(LADDER_CPU_DEVICE)
  # A shadow header wins over the real one of the same name, because its directory comes first.
  include("${PROJECT_SOURCE_DIR}/common/cpu_device/shadow/aliases.cmake")
  set(LADDER_SHADOWS "${PROJECT_SOURCE_DIR}/common/cpu_device/shadow" "${PROJECT_BINARY_DIR}/generated/shadow"
                     "${LADDER_INSTRUMENTED}")
  include("${CMAKE_CURRENT_LIST_DIR}/SharedMembers.cmake")
  target_include_directories(ladder_build_settings INTERFACE "${PROJECT_BINARY_DIR}/generated")
  target_include_directories(ladder_build_settings INTERFACE ${LADDER_SHADOWS})
  target_compile_definitions(ladder_build_settings INTERFACE LADDER_CPU_DEVICE=1)
  # Kernels load 16 bytes at a time through pointers of other types, which nvcc allows; and g++ does not know
  # `#pragma unroll`.
  target_compile_options(ladder_build_settings INTERFACE -fno-strict-aliasing -Wno-unknown-pragmas)
  # __fmul_rn and the like are plain operators here, and must not be contracted to an FMA, as on a GPU. nvcc does contract a
  # kernel's own expressions; the CPU device rounds each of their operations.
  target_compile_options(ladder_build_settings INTERFACE -ffp-contract=off)
  # g++ 12 notes that it passes tensor maps to kernels otherwise than g++ 4.5 did.
  target_compile_options(ladder_build_settings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-psabi>)
  # The CPU device asks by which calls the lanes of a warp came to an instruction. So frames are linked, and compilers do not
  # make one call of two, at the begin or the end of branches.
  target_compile_options(
    ladder_build_settings INTERFACE -fno-omit-frame-pointer
                                    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-crossjumping>
                                    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-tree-tail-merge>
                                    "$<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:SHELL:-mllvm -hoist-common-insts=false>"
                                    "$<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:SHELL:-mllvm -sink-common-insts=false>"
                                    "$<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:SHELL:-mllvm -enable-tail-merge=false>")
else()
  ladder_find_cuda_compiler(nvcc release)
  ladder_cuda_architectures(architectures)
  set(CMAKE_CUDA_COMPILER "${nvcc}" CACHE FILEPATH "nvcc")
  set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "The GPUs to compile for")
  # Fails where ptxas only remarks that it serialised wgmma or ignored setmaxnreg.
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/common/cmake/strict_nvcc.sh")
  if(LADDER_BOUNDED_WAITS)
    # The bound takes registers and branches that a kernel may not have.
    list(APPEND CMAKE_CUDA_COMPILER_LAUNCHER --allow C7517 --allow C7518)
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc 12 speaks C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  find_package(CUDAToolkit REQUIRED)
  message(STATUS "CUDA architectures: ${CMAKE_CUDA_ARCHITECTURES}")

  target_link_libraries(ladder_build_settings INTERFACE CUDA::cudart_static)
  # Warnings are errors, a register spill among them unless the target's property LADDER_MAY_SPILL is on or waits
  # are bounded.
  set(may_spill "$<OR:$<BOOL:$<TARGET_PROPERTY:LADDER_MAY_SPILL>>,$<BOOL:${LADDER_BOUNDED_WAITS}>>")
  set(cuda_options -lineinfo -Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror
      "$<$<NOT:${may_spill}>:-Xptxas=--warn-on-spills>")
  target_compile_options(ladder_build_settings INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_options}>")
  # {fmt} 9 takes constexpr away from nvcc, but checks formats while compiling, which needs it.
  target_compile_definitions(ladder_build_settings INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>)
  if(LADDER_BOUNDED_WAITS)
    set(LADDER_SHADOWS "${LADDER_INSTRUMENTED}")
    target_include_directories(ladder_build_settings INTERFACE ${LADDER_SHADOWS})
    target_compile_definitions(ladder_build_settings INTERFACE LADDER_BOUNDED_WAITS=1)
  endif()

  # ladder_instrument_kernels(<target> <definition>...): LADDER_TRACE=1 or LADDER_BOUNDED_WAITS=1, for one target.
  function(ladder_instrument_kernels target)
    target_include_directories(${target} BEFORE PRIVATE "${LADDER_INSTRUMENTED}")
    target_compile_definitions(${target} PRIVATE ${ARGN})
  endfunction()
endif()
target_include_directories(ladder_build_settings INTERFACE "${PROJECT_SOURCE_DIR}")
