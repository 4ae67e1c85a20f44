/// @file
/// The commit that this was built from. A file of its own, so that a new commit recompiles only this.
#include <cstdlib>

#include "common/host/program/results.hpp"
#if __has_include("ladder_commit.hpp")
#include "ladder_commit.hpp"
#endif
#ifndef LADDER_COMMIT
#define LADDER_COMMIT "unknown"
#endif

namespace ladder {

std::string build_commit() {
  const char* chosen = std::getenv("LADDER_COMMIT");
  return chosen && *chosen ? chosen : LADDER_COMMIT;
}

}  // namespace ladder
