/// @file
/// Tests of parsing: numbers, lists, shapes and their names; and of the number formats of files and devices.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "common/host/base/text.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/problem/half.hpp"
#include "common/host/problem/shape.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using ladder::parse_shapes;
using ladder::parse_sizes;
using ladder::Shape;

namespace {

auto says(const std::string& words) { return MessageMatches(ContainsSubstring(words)); }

}  // namespace

TEST_CASE("Text is split at every separator, and empty parts are kept") {
  CHECK(ladder::split("a,b", ',') == std::vector<std::string>{"a", "b"});
  CHECK(ladder::split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  CHECK(ladder::split("", ',') == std::vector<std::string>{""});
}

TEST_CASE("A folder's number is what its name begins with") {
  CHECK(ladder::number_of("03_double_buffer") == "03");
  CHECK(ladder::number_of("2_bias_epilogue") == "2");
  CHECK(ladder::number_of("fake") == "fake");
}

TEST_CASE("A number outside its range, or with anything else around it, is refused") {
  CHECK(ladder::parse_number("--rounds", "7", 1, 9) == 7);
  for (const char* text :
       {"0", "10", "-1", "+1", " 1", "1 ", "1.0", "1e1", "0x1", "", "99999999999999999999999"})
    CHECK_THROWS_MATCHES(ladder::parse_number("--rounds", text, 1, 9), std::invalid_argument,
                         says(std::string("--rounds '") + text + "': must be a whole number from 1 to 9"));
}

TEST_CASE("A size is a cube, and a list gives several") {
  CHECK(parse_sizes("--size", "512") == std::vector<Shape>{{512, 512, 512}});
  CHECK(parse_sizes("--size", "512,1") == std::vector<Shape>{{512, 512, 512}, {1, 1, 1}});
}

TEST_CASE("A shape is M x N x K or the name of one") {
  CHECK(parse_shapes("--shape", "1x20x300") == std::vector<Shape>{{1, 20, 300}});
  CHECK(parse_shapes("--shape", "llama3-70b-up,8x8x8") == std::vector<Shape>{{8192, 28672, 8192}, {8, 8, 8}});
}

TEST_CASE("Every named shape is one that can be multiplied, and no name occurs twice") {
  for (const ladder::NamedShape& named : ladder::named_shapes()) {
    INFO(named.name);
    CHECK(parse_shapes("--shape", named.name) == std::vector<Shape>{named.shape});
    CHECK(ladder::checked_shape("", named.shape.m, named.shape.n, named.shape.k) == named.shape);
  }
}

TEST_CASE("Sizes of zero, negative sizes and missing ones are refused, naming the argument and the value") {
  CHECK_THROWS_MATCHES(parse_sizes("--size", "0"), std::invalid_argument, says("--size '0'"));
  CHECK_THROWS_MATCHES(parse_sizes("--size", "-4"), std::invalid_argument, says("--size '-4'"));
  CHECK_THROWS_MATCHES(parse_sizes("--size", "4,,4"), std::invalid_argument, says("--size ''"));
  CHECK_THROWS_MATCHES(parse_shapes("--shape", "4x0x4"), std::invalid_argument, says("--shape 4x0x4: '0'"));
  CHECK_THROWS_MATCHES(parse_shapes("--shape", "4x4"), std::invalid_argument,
                       says("--shape '4x4': must be MxNxK"));
  CHECK_THROWS_MATCHES(parse_shapes("--shape", "4x4x4x4"), std::invalid_argument, says("must be MxNxK"));
  CHECK_THROWS_MATCHES(parse_shapes("--shape", "llama9"), std::invalid_argument, says("llama3-70b-up"));
}

TEST_CASE("Sizes that overflow are refused, each alone and as a product") {
  CHECK_THROWS_MATCHES(parse_sizes("--size", "2147483648"), std::invalid_argument, says("to 2147483647"));
  CHECK_THROWS_MATCHES(parse_sizes("--size", "46341"), std::invalid_argument,
                       says("fewer than 2^31 elements"));
  CHECK(parse_sizes("--size", "46340").size() == 1);
  CHECK_THROWS_MATCHES(parse_shapes("--shape", "2147483647x2147483647x2147483647"), std::invalid_argument,
                       says("A is 2147483647 x 2147483647"));
  for (const char* shape : {"2147483647x1x1", "1x2147483647x1", "1x1x2147483647", "1x1x2147482625"})
    CHECK_THROWS_MATCHES(parse_shapes("--shape", shape), std::invalid_argument,
                         says("must be at most 2147482624"));
  CHECK_THROWS_MATCHES(parse_shapes("--shape", "1x1x2147483647"), std::invalid_argument,
                       says("--shape 1x1x2147483647: k = 2147483647: "));
  CHECK(parse_shapes("--shape", "1x1x2147482624").front().k == 2147482624);
  CHECK_THROWS_MATCHES(parse_shapes("--shape", "8x65536x65536"), std::invalid_argument,
                       says("B is 65536 x 65536"));
  CHECK_THROWS_MATCHES(parse_shapes("--shape", "65536x65536x8"), std::invalid_argument,
                       says("C is 65536 x 65536"));
}

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
