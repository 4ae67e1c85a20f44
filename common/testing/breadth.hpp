/// @file
/// How much a test tries, from little to much. The default is what must be fast; the environment variable
/// LADDER_TEST_BREADTH says otherwise.
#pragma once
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace ladder::testing {

enum class Breadth {
  one,  ///< one schedule, for AddressSanitizer, which sees the same accesses on each, and for clang's build
  narrow,  ///< two schedules; on the GPU few problems where compute-sanitizer is slow
  usual,   ///< every fixed schedule, races checked on two of them, and one random schedule; where a test has
           ///< many problems, the two and of the others another for each problem
  more  ///< what `usual` leaves out: the fixed schedules on which it checks for no races and as many random
        ///< ones as a test asks for, races checked on each
};

/// @throws std::invalid_argument for a word that is no breadth
inline Breadth breadth() {
  const char* text = std::getenv("LADDER_TEST_BREADTH");
  const std::string word = text ? text : "usual";
  if (word == "one") return Breadth::one;
  if (word == "narrow") return Breadth::narrow;
  if (word == "usual") return Breadth::usual;
  if (word == "more") return Breadth::more;
  throw std::invalid_argument("LADDER_TEST_BREADTH=" + word + ": must be one, narrow, usual or more");
}

}  // namespace ladder::testing
