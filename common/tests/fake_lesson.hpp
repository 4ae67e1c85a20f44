/// @file
/// A lesson that multiplies on the host, so that tests of the shared module need no kernel; it can be told to
/// make the mistakes that a kernel makes.
#pragma once
#include "common/host/problem/lesson.hpp"

namespace ladder::fake {

enum class Mistake {
  none,
  writes_nothing,       ///< C keeps what was there
  one_wrong_element,    ///< the last one
  shifted_tile,         ///< columns 8 to 15 of the first rows hold their right neighbours
  writes_behind,        ///< one element behind C
  writes_before,        ///< one element before C
  a_in_place_of_b,      ///< an operand is taken from the wrong matrix
  one_nan,              ///< in the middle
  forgets_last_column,  ///< of A: the last products are missing
  rounds_sums_early,    ///< to bf16 after every product
};

/// Multiplies matrices in device memory, with a mistake.
void multiply(const Gemm& gemm, Mistake mistake = Mistake::none);

/// "99_fake", with the knobs slots (1, 2, 3), core (auto, fma) and mistake (no, yes: one wrong element). N
/// and K must be multiples of 2.
const Lesson& lesson();

}  // namespace ladder::fake
