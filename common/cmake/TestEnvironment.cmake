# The environment of all tests, and what it keeps out: the plans that whoever runs them has tuned (`ladder tune`).
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/test_environment.cmake" @ONLY CONTENT [[
# Written by common/cmake/TestEnvironment.cmake; ctest reads it before it runs tests.
set(ENV{LADDER_TUNED} no)
]])
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${PROJECT_BINARY_DIR}/generated/test_environment.cmake")
