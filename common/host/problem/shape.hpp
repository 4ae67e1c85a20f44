/// @file
/// The sizes of a problem, and the names of sizes that matter in practice.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ladder {

/// A is [m, k], B is [k, n], C is [m, n].
struct Shape {
  int m = 0, n = 0, k = 0;
  /// Where A is multiplied by several B: as many matrices [k, n], one behind the other in memory.
  int b_matrices = 1;

  /// "128x64x32": m, n, k.
  std::string name() const;
  /// The bytes of A, B and C together, in bf16.
  double bytes() const { return 2.0 * (double(m) * k + double(k) * n * b_matrices + double(m) * n); }
  double flops() const { return 2.0 * m * n * k * b_matrices; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// A shape that occurs in a real model.
struct NamedShape {
  std::string name;
  Shape shape;
};
const std::vector<NamedShape>& named_shapes();

/// The largest m, n or k. Kernels count in int up to the ends of tiles that stick out, and some tiles ahead
/// of those.
constexpr int kLargestSize = INT32_MAX - 1023;

/// "4096": a cube. "1024,4096": several.
/// @throws std::invalid_argument, like all three, naming `argument`, its value and the rule: every size is at
/// least 1 and at most kLargestSize, and no matrix has 2^31 elements or more.
std::vector<Shape> parse_sizes(const std::string& argument, const std::string& list);

/// "128x64x32" (MxNxK) or the name of a shape, for example "llama3-70b-up"; or several, separated by commas.
std::vector<Shape> parse_shapes(const std::string& argument, const std::string& list);

/// Checks sizes that do not come from text, for example from the header of a file.
Shape checked_shape(const std::string& argument, uint64_t m, uint64_t n, uint64_t k);

}  // namespace ladder
