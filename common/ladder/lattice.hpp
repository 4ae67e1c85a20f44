/// @file
/// Which rung builds on which. The climb is no line: 03 and 04 both build on 02, and 05 on both of them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "common/host/problem/lesson.hpp"
#include "common/host/problem/shape.hpp"

namespace ladder {

/// A rung of a lesson, by its place among the lesson's.
struct RungPlace {
  const Lesson* lesson = nullptr;
  size_t rung = 0;

  std::string name() const;  ///< "03 three slots"
  friend bool operator<(const RungPlace& a, const RungPlace& b) {
    return std::tie(a.lesson->name, a.rung) < std::tie(b.lesson->name, b.rung);
  }
};

class Lattice {
 public:
  explicit Lattice(const std::vector<const Lesson*>& lessons) : lessons_(lessons) {}

  /// The rung with these settings (all knobs); nothing if the lesson, or the rung, is not one of them.
  std::optional<RungPlace> find(const std::string& lesson, const Settings& settings) const;
  /// What a rung builds on: the rung before it in its lesson, or the last of each lesson that this one builds
  /// on. Without what is not among the lessons.
  std::vector<RungPlace> bases(const RungPlace& place) const;
  /// The last rung of the lesson of that number; nothing if it is not among the lessons.
  std::optional<RungPlace> last_of(const std::string& number) const;

 private:
  std::vector<const Lesson*> lessons_;
};

/// The speeds of rungs, as they become known, compared along the lattice.
class Gains {
 public:
  explicit Gains(const std::vector<const Lesson*>& lessons) : lattice_(lessons) {}

  const Lattice& lattice() const { return lattice_; }
  /// Remembers a rung's speed; a later one takes its place.
  void add(const Shape& shape, const RungPlace& place, double tflops);
  /// Nothing if it was not added.
  std::optional<double> tflops(const Shape& shape, const RungPlace& place) const;

  /// "03, 04"; empty for the first rung.
  std::string bases_cell(const RungPlace& place) const;
  /// "1.25, 1.32": the gain over each of them; "-" for what is not known.
  std::string gains_cell(const Shape& shape, const RungPlace& place) const;

  /// A line for each rung that is slower than one that it builds on, at one shape at least.
  std::vector<std::string> notes() const;
  /// What a ring and what roles bring alone and together, for each shape where all four are known.
  std::vector<std::string> two_by_two() const;

 private:
  std::optional<double> gain(const Shape& shape, const RungPlace& place, const RungPlace& base) const;

  Lattice lattice_;
  std::vector<Shape> shapes_;                                 ///< in the order in which they came
  std::vector<std::map<RungPlace, double>> tflops_by_shape_;  ///< for each of them
};

}  // namespace ladder
