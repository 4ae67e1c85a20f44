/// @file
/// Which rung builds on which. The climb is no line: 03 and 04 are two answers to 02.
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

  std::string id() const;    ///< "04.1"
  std::string name() const;  ///< "04.1 TMA, one slot"
  friend bool operator<(const RungPlace& a, const RungPlace& b) {
    return std::tie(a.lesson->name, a.rung) < std::tie(b.lesson->name, b.rung);
  }
};

class Lattice {
 public:
  /// @param core the best that the device has: rungs of builds with another are left out. Empty: none is.
  explicit Lattice(const std::vector<const Lesson*>& lessons, const std::string& core = "")
      : lessons_(lessons), core_(core) {}

  /// The rung with these settings (all knobs); nothing if the lesson, or the rung, is not one of them.
  std::optional<RungPlace> find(const std::string& lesson, const Settings& settings) const;
  /// What a rung builds on: the rung before it in its lesson, or the last of the lesson that this one builds
  /// on. Nothing for the first rung, and where that lesson is not among the lessons.
  std::optional<RungPlace> base(const RungPlace& place) const;
  /// The last rung of the lesson of that name; nothing if it is not among the lessons.
  std::optional<RungPlace> last_of(const std::string& lesson) const;
  /// All rungs, lesson by lesson.
  std::vector<RungPlace> rungs() const;

 private:
  bool runs(const RungPlace& place) const;

  std::vector<const Lesson*> lessons_;
  std::string core_;
};

/// The speeds of rungs, as they become known, compared along the lattice.
class Gains {
 public:
  explicit Gains(const std::vector<const Lesson*>& lessons, const std::string& core = "")
      : lattice_(lessons, core) {}

  const Lattice& lattice() const { return lattice_; }
  /// Remembers a rung's speed; a later one takes its place.
  void add(const Shape& shape, const RungPlace& place, double tflops);
  /// Nothing if it was not added.
  std::optional<double> tflops(const Shape& shape, const RungPlace& place) const;

  /// "04.1"; empty for the first rung.
  std::string base_cell(const RungPlace& place) const;
  /// "1.25": the gain over it; "-" if it is not known.
  std::string gain_cell(const Shape& shape, const RungPlace& place) const;

  /// A line for each rung: what alone tells it from the one that it builds on.
  std::vector<std::string> causes() const;
  /// For each shape the gains on the way to the last rung but those for any shape, which multiply to the
  /// whole.
  std::vector<std::string> path() const;
  /// A line for each rung that is slower than the one that it builds on, at one shape at least.
  std::vector<std::string> notes() const;

 private:
  std::optional<double> gain(const Shape& shape, const RungPlace& place, const RungPlace& base) const;

  Lattice lattice_;
  std::vector<Shape> shapes_;                                 ///< in the order in which they came
  std::vector<std::map<RungPlace, double>> tflops_by_shape_;  ///< for each of them
};

}  // namespace ladder
