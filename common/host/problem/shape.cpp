/// @file
/// The sizes of a problem, and the names of sizes that matter in practice.
#include "common/host/problem/shape.hpp"

#include <fmt/core.h>
#include <cstdint>
#include <stdexcept>

#include "common/host/base/text.hpp"

namespace ladder {
namespace {

constexpr uint64_t kMaxElements = (1u << 31) - 1;

Shape parse_shape(const std::string& argument, const std::string& text) {
  for (const NamedShape& named : named_shapes())
    if (named.name == text) return named.shape;

  const std::vector<std::string> sizes = split(text, 'x');
  const bool starts_with_digit = !text.empty() && text[0] >= '0' && text[0] <= '9';
  if (sizes.size() != 3 || !starts_with_digit) {
    std::vector<std::string> names;
    for (const NamedShape& named : named_shapes()) names.push_back(named.name);
    throw std::invalid_argument(argument + " '" + text +
                                "': must be MxNxK, for example 4096x4096x1024, or one of " +
                                join(names, ", "));
  }
  uint64_t size[3];
  for (int i = 0; i < 3; ++i) size[i] = parse_number(argument + " " + text + ":", sizes[i], 1, kMaxElements);
  return checked_shape(argument + " " + text, size[0], size[1], size[2]);
}

}  // namespace

std::string Shape::name() const { return fmt::format("{}x{}x{}", m, n, k); }

const std::vector<NamedShape>& named_shapes() {
  // The layers of Llama 3, from the models' published configuration files (config.json): hidden size, width
  // of the feed-forward layer, attention heads and key/value heads of 128 elements. m is the number of
  // tokens.
  static const std::vector<NamedShape> shapes = {
      {"llama3-8b-qkv", {4096, 6144, 4096}},       // hidden 4096; 32 heads + 2 * 8 key/value heads
      {"llama3-8b-out", {4096, 4096, 4096}},       // hidden 4096, from 32 heads
      {"llama3-8b-up", {4096, 14336, 4096}},       // feed-forward width 14336
      {"llama3-8b-down", {4096, 4096, 14336}},     // and back
      {"llama3-70b-qkv", {8192, 10240, 8192}},     // hidden 8192; 64 heads + 2 * 8 key/value heads
      {"llama3-70b-out", {8192, 8192, 8192}},      // hidden 8192, from 64 heads
      {"llama3-70b-up", {8192, 28672, 8192}},      // feed-forward width 28672
      {"llama3-70b-down", {8192, 8192, 28672}},    // and back
      {"llama3-70b-out-m64", {64, 8192, 8192}},    // decoding 64 sequences: one token each
      {"llama3-70b-out-m512", {512, 8192, 8192}},  // decoding 512 sequences
  };
  return shapes;
}

Shape checked_shape(const std::string& argument, uint64_t m, uint64_t n, uint64_t k) {
  const struct {
    const char* name;
    uint64_t rows, columns;
  } matrices[] = {{"A", m, k}, {"B", k, n}, {"C", m, n}};
  for (const auto& matrix : matrices) {
    const std::string sizes = fmt::format("{} x {}", matrix.rows, matrix.columns);
    if (matrix.rows == 0 || matrix.columns == 0)
      throw std::invalid_argument(argument + ": " + matrix.name + " is " + sizes +
                                  "; sizes must be at least 1");
    // Two sizes below 2^31 cannot overflow 64 bits.
    if (matrix.rows > kMaxElements || matrix.columns > kMaxElements ||
        matrix.rows * matrix.columns > kMaxElements)
      throw std::invalid_argument(argument + ": " + matrix.name + " is " + sizes +
                                  "; a matrix must have fewer than 2^31 elements");
  }
  const struct {
    const char* name;
    uint64_t size;
  } sizes[] = {{"m", m}, {"n", n}, {"k", k}};
  for (const auto& [name, size] : sizes)
    if (size > kLargestSize)
      throw std::invalid_argument(
          fmt::format("{}: {} = {}: must be at most {}, so that the ends of all tiles fit into 32 bits",
                      argument, name, size, kLargestSize));
  return {static_cast<int>(m), static_cast<int>(n), static_cast<int>(k)};
}

std::vector<Shape> parse_sizes(const std::string& argument, const std::string& list) {
  std::vector<Shape> shapes;
  for (const std::string& text : split(list, ',')) {
    const uint64_t size = parse_number(argument, text, 1, kMaxElements);
    shapes.push_back(checked_shape(argument + " " + text, size, size, size));
  }
  return shapes;
}

std::vector<Shape> parse_shapes(const std::string& argument, const std::string& list) {
  std::vector<Shape> shapes;
  for (const std::string& text : split(list, ',')) shapes.push_back(parse_shape(argument, text));
  return shapes;
}

}  // namespace ladder
