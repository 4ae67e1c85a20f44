/// @file
/// Tests of the number formats of files and devices.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>

#include "common/host/problem/bf16.hpp"
#include "common/host/problem/half.hpp"

TEST_CASE("bf16 rounds to nearest, ties to even") {
  const auto bits = [](float value) { return ladder::bf16_bits(ladder::to_bf16(value)); };
  CHECK(bits(1) == 0x3f80);
  CHECK(bits(1 + 0x1p-8f) == 0x3f80);             // half-way: to the even one below
  CHECK(bits(1 + 0x1p-8f + 0x1p-20f) == 0x3f81);  // just above half-way
  CHECK(bits(1 + 3 * 0x1p-8f) == 0x3f82);         // half-way: to the even one above
  CHECK(bits(-0.0f) == 0x8000);
  CHECK(bits(INFINITY) == 0x7f80);
  CHECK(bits(3.4e38f) == 0x7f80);  // above the largest bf16
  CHECK(std::isnan(ladder::to_float(ladder::to_bf16(NAN))));
  CHECK_FALSE(ladder::is_finite(ladder::to_bf16(NAN)));
  CHECK_FALSE(ladder::is_finite(ladder::to_bf16(-INFINITY)));
  CHECK(ladder::is_finite(ladder::to_bf16(3e38f)));
}

TEST_CASE("Every bf16 survives the way to float and back") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = ladder::to_float(ladder::bf16_from_bits(static_cast<uint16_t>(bits)));
    if (std::isnan(value)) continue;
    REQUIRE(ladder::bf16_bits(ladder::to_bf16(value)) == bits);
  }
}

TEST_CASE("Every half survives the way to float and back") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = ladder::half_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    REQUIRE(ladder::float_to_half(value) == bits);
  }
}

TEST_CASE("Half rounds to nearest, ties to even, and overflows to infinity") {
  CHECK(ladder::float_to_half(1 + 0x1p-11f) == 0x3c00);
  CHECK(ladder::float_to_half(1 + 3 * 0x1p-11f) == 0x3c02);
  CHECK(ladder::float_to_half(65519) == 0x7bff);
  CHECK(ladder::float_to_half(65520) == 0x7c00);
  CHECK(ladder::float_to_half(0x1p-24f) == 1);
  CHECK(ladder::float_to_half(0x1p-25f) == 0);
  CHECK(ladder::float_to_half(0x1.8p-25f) == 1);
  CHECK(ladder::float_to_half(-NAN) != 0xfc00);
}
