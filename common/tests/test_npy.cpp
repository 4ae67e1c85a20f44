/// @file
/// Tests of NumPy's file format: what we write, what NumPy writes, and every way in which a file can be
/// broken.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "common/host/program/npy.hpp"
#include "common/testing/temporary_directory.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using ladder::NpyMatrix;
using ladder::testing::TemporaryDirectory;
using ladder::testing::write_bytes;

namespace {

template <class Value>
std::string bytes_of(std::initializer_list<Value> values) {
  std::string bytes;
  for (Value value : values) {
    char raw[sizeof(Value)];
    std::memcpy(raw, &value, sizeof value);
    bytes.append(raw, sizeof raw);
  }
  return bytes;
}

/// A file as NumPy lays it out.
std::string npy(const std::string& dictionary, const std::string& data, int major = 1) {
  const std::string header = dictionary + "\n";
  const std::string length = major == 1 ? bytes_of({static_cast<uint16_t>(header.size())})
                                        : bytes_of({static_cast<uint32_t>(header.size())});
  return std::string("\x93NUMPY") + static_cast<char>(major) + '\0' + length + header + data;
}

std::string dictionary(const std::string& descr, const std::string& shape,
                       const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

NpyMatrix read(const std::string& bytes) {
  const TemporaryDirectory directory;
  write_bytes(directory.file("a.npy"), bytes);
  return ladder::read_npy("--a", directory.file("a.npy"));
}

void check_refused(const std::string& bytes, const std::string& words) {
  INFO("must say: " << words);
  CHECK_THROWS_MATCHES(read(bytes), std::invalid_argument,
                       MessageMatches(ContainsSubstring("--a '") && ContainsSubstring("a.npy': ") &&
                                      ContainsSubstring(words)));
}

const std::string kSixFloats = bytes_of<float>({1, 2, 3, 4, 5, 6});

}  // namespace

TEST_CASE("What is written is read again, in every type") {
  const TemporaryDirectory directory;
  const NpyMatrix matrix{2, 3, {1, -2, 0.5f, 256, -0.0f, INFINITY}};
  for (const std::string& dtype : ladder::npy_dtypes()) {
    INFO(dtype);
    const std::string path = directory.file(dtype + ".npy");
    ladder::write_npy("--output", path, matrix, dtype);
    const NpyMatrix again = ladder::read_npy("--a", path);
    CHECK(again.rows == 2);
    CHECK(again.columns == 3);
    CHECK(again.values == matrix.values);
  }
}

TEST_CASE("What is written is what NumPy would write") {
  const TemporaryDirectory directory;
  ladder::write_npy("--output", directory.file("c.npy"), {1, 2, {1, 2}}, "f4");
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
  header.resize(117, ' ');  // 10 bytes before it, a line break behind it, 128 in all
  CHECK(ladder::testing::read_bytes(directory.file("c.npy")) == npy(header, bytes_of<float>({1, 2})));
}

TEST_CASE("All versions of the format are read, row by row or column by column") {
  for (int version : {1, 2, 3}) {
    CHECK(read(npy(dictionary("<f4", "(2, 3)"), kSixFloats, version)).values ==
          std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(read(npy(dictionary("<f4", "(2, 3)", "True"), kSixFloats, version)).values ==
          std::vector<float>{1, 3, 5, 2, 4, 6});
  }
}

TEST_CASE("Every type that the page promises is read") {
  CHECK(read(npy(dictionary("<f8", "(1, 2)"), bytes_of<double>({1.5, -3}))).values ==
        std::vector<float>{1.5, -3});
  CHECK(read(npy(dictionary("<f2", "(1, 2)"), bytes_of<uint16_t>({0x3e00, 0xc200}))).values ==
        std::vector<float>{1.5, -3});
  for (const char* bf16 : {"|V2", "<V2"})
    CHECK(read(npy(dictionary(bf16, "(1, 2)"), bytes_of<uint16_t>({0x3fc0, 0xc040}))).values ==
          std::vector<float>{1.5, -3});
}

TEST_CASE("Whole numbers of 16 bits are not taken for bf16, unless the reader says so") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("u2.npy");
  write_bytes(path, npy(dictionary("<u2", "(1, 2)"), bytes_of<uint16_t>({0x3fc0, 0xc040})));
  CHECK_THROWS_MATCHES(
      ladder::read_npy("--a", path), std::invalid_argument,
      MessageMatches(ContainsSubstring("uint16 ('<u2')") && ContainsSubstring("say --bf16-as-uint16")));
  CHECK(ladder::read_npy("--a", path, /*uint16_is_bf16=*/true).values == std::vector<float>{1.5, -3});
  // Other whole numbers stay refused.
  write_bytes(path, npy(dictionary("<i2", "(1, 2)"), bytes_of<uint16_t>({1, 2})));
  CHECK_THROWS_MATCHES(ladder::read_npy("--a", path, true), std::invalid_argument,
                       MessageMatches(ContainsSubstring("'<i2'; must be one of")));
}

TEST_CASE("NaN passes through") {
  CHECK(std::isnan(read(npy(dictionary("<f4", "(1, 1)"), bytes_of<float>({NAN}))).values.at(0)));
}

TEST_CASE("A missing, an empty and a foreign file are refused by name") {
  CHECK_THROWS_MATCHES(ladder::read_npy("--b", "/nonexistent/b.npy"), std::invalid_argument,
                       MessageMatches(ContainsSubstring("--b '/nonexistent/b.npy': cannot be read")));
  CHECK_THROWS_MATCHES(ladder::read_npy("--b", "/nonexistent/b.npy"), std::invalid_argument,
                       MessageMatches(ContainsSubstring("No such file")));
  CHECK_THROWS_MATCHES(ladder::read_npy("--b", TemporaryDirectory().file("")), std::invalid_argument,
                       MessageMatches(ContainsSubstring("is a folder; must be an .npy file")));
  check_refused("", "is empty");
  check_refused("PK\x03\x04 a zip file", "not an .npy file");
  check_refused("\x93NUM", "cut short in its header");
}

TEST_CASE("A file that is cut short, or too long, is refused") {
  const std::string whole = npy(dictionary("<f4", "(2, 3)"), kSixFloats);
  check_refused(whole.substr(0, 9), "cut short in its header");
  check_refused(whole.substr(0, 40), "cut short in its header");
  check_refused(whole.substr(0, whole.size() - 1), "cut short in its data");
  check_refused(whole + "x", "longer than its header says");
}

TEST_CASE("Other versions, types and dimensions are refused") {
  check_refused(npy(dictionary("<f4", "(2, 3)"), kSixFloats, 4), "version 4.0");
  check_refused(npy(dictionary(">f4", "(2, 3)"), kSixFloats), "'>f4'; must be one of");
  check_refused(npy(dictionary("<i8", "(2, 3)"), kSixFloats), "'<i8'");
  check_refused(npy(dictionary("|O", "(2, 3)"), kSixFloats), "'|O'");
  check_refused(npy(dictionary("<f4", "(6,)"), kSixFloats), "1 dimensions; must have 2");
  check_refused(npy(dictionary("<f4", "()"), bytes_of<float>({1})), "0 dimensions");
  check_refused(npy(dictionary("<f4", "(1, 2, 3)"), kSixFloats), "3 dimensions");
}

TEST_CASE("A header that promises more than fits into memory is refused before memory is asked for") {
  check_refused(npy(dictionary("<f4", "(1000000, 1000000)"), kSixFloats), "fewer than 2^31 elements");
  check_refused(npy(dictionary("<f4", "(18446744073709551615, 2)"), kSixFloats), "fewer than 2^31 elements");
  check_refused(npy(dictionary("<f4", "(18446744073709551616, 2)"), kSixFloats), "malformed header");
  check_refused(npy(dictionary("<f4", "(40000, 40000)"), kSixFloats), "cut short in its data");
}

TEST_CASE("A negative size is named with its axis") {
  check_refused(npy(dictionary("<f4", "(2, -3)"), kSixFloats),
                "axis 1 has the size -3; it must be 0 or more");
}

TEST_CASE("A header that is no dictionary of the three keys is refused") {
  for (const char* header :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False}", "{'descr': <f4}",
        "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': No, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 'x'}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} and more", "{'descr': '<f4"})
    check_refused(npy(header, kSixFloats), "malformed header");
}

TEST_CASE("An unknown type for the output is refused, and nothing is written") {
  const TemporaryDirectory directory;
  CHECK_THROWS_MATCHES(ladder::write_npy("--output", directory.file("c.npy"), {1, 1, {1}}, "f3"),
                       std::invalid_argument,
                       MessageMatches(ContainsSubstring("--dtype 'f3': must be one of f4")));
  CHECK(directory.names().empty());
}
