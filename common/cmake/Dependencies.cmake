# Libraries that are not ours: what the machine has, else a pinned download.
include(FetchContent)

find_package(Threads REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(Catch2 3.3 CONFIG REQUIRED)
include(Catch)
if(LADDER_CPU_DEVICE)
  find_package(Boost CONFIG REQUIRED COMPONENTS context)
endif()
