# Libraries that are not ours: what the machine has, else a pinned download.
include(FetchContent)

find_package(Threads REQUIRED)

FetchContent_Declare(
  CLI11
  GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git
  GIT_TAG 6c7b07a878ad834957b98d0f9ce1dbe0cb204fc9 # v2.4.2
  SYSTEM FIND_PACKAGE_ARGS CONFIG)
FetchContent_Declare(
  nlohmann_json
  GIT_REPOSITORY https://github.com/nlohmann/json.git
  GIT_TAG 9cca280a4d0ccf0c08f47a99aa71d1b0e52f8d03 # v3.11.3
  SYSTEM FIND_PACKAGE_ARGS CONFIG)
FetchContent_Declare(
  fmt
  GIT_REPOSITORY https://github.com/fmtlib/fmt.git
  GIT_TAG a33701196adfad74917046096bf5a2aa0ab0bb50 # 9.1.0
  SYSTEM FIND_PACKAGE_ARGS 9.1 CONFIG)
FetchContent_MakeAvailable(CLI11 nlohmann_json fmt)

if(LADDER_CPU_DEVICE)
  set(BOOST_ENABLE_CMAKE ON)
  set(BOOST_INCLUDE_LIBRARIES context)
  FetchContent_Declare(
    Boost
    URL https://github.com/boostorg/boost/releases/download/boost-1.84.0/boost-1.84.0.tar.xz
    URL_HASH SHA256=2e64e5d79a738d0fa6fb546c6e5c2bd28f88d268a2a080546f74e5ff98f29d0e
    SYSTEM FIND_PACKAGE_ARGS CONFIG COMPONENTS context)
  FetchContent_MakeAvailable(Boost)
endif()

FetchContent_Declare(
  Catch2
  GIT_REPOSITORY https://github.com/catchorg/Catch2.git
  GIT_TAG fa43b77429ba76c462b1898d6cd2f2d7a9416b14 # v3.7.1
  SYSTEM FIND_PACKAGE_ARGS 3.3 CONFIG)
FetchContent_MakeAvailable(Catch2)
if(catch2_SOURCE_DIR)
  list(APPEND CMAKE_MODULE_PATH "${catch2_SOURCE_DIR}/extras")
endif()
include(Catch) # catch_discover_tests()
