/// @file
/// What the wrong elements of a result have in common.
#include "common/exercise/check.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

namespace ladder::exercise {
namespace {

/// Fewer values may agree by chance with those of another place.
constexpr size_t kMin = 8;

std::string to_text(float value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

/// "row 3", "rows 8 to 15", "rows 8 to 15 of every 16"; empty if there is no short name.
/// @param wrong which of the rows hold a wrong element
std::string name_places(const std::string& one, const std::vector<bool>& wrong) {
  const auto first = static_cast<size_t>(std::find(wrong.begin(), wrong.end(), true) - wrong.begin());
  size_t end = first, count = 0;
  for (size_t i = 0; i < wrong.size(); ++i) {
    count += wrong[i];
    if (wrong[i]) end = i + 1;
  }
  if (count == 1) return fmt::format("{} {}", one, first);
  if (count == end - first) return fmt::format("{}s {} to {}", one, first, end - 1);
  for (size_t period = 2; period <= 256 && 2 * period <= wrong.size(); period *= 2) {
    bool repeats = true;
    for (size_t i = period; repeats && i < wrong.size(); ++i) repeats = wrong[i] == wrong[i - period];
    if (!repeats) continue;
    const size_t begin = first,
                 stop = begin + static_cast<size_t>(std::count(
                                    wrong.begin(), wrong.begin() + static_cast<ptrdiff_t>(period), true));
    if (stop > period ||
        std::find(wrong.begin() + static_cast<ptrdiff_t>(begin), wrong.begin() + static_cast<ptrdiff_t>(stop),
                  false) != wrong.begin() + static_cast<ptrdiff_t>(stop))
      return "";
    if (stop == begin + 1) return fmt::format("{} {} of every {}", one, begin, period);
    return fmt::format("{}s {} to {} of every {}", one, begin, stop - 1, period);
  }
  return "";
}

class Reader {
 public:
  explicit Reader(const Comparison& comparison) : c_(comparison), width_(std::max<size_t>(c_.columns, 1)) {
    for (size_t i = 0; i < c_.expected.size(); ++i)
      if (c_.is_wrong(i)) wrong_.push_back(i);
  }

  std::string describe() const {
    if (wrong_.empty()) return "";
    const float value = c_.got[wrong_[0]];
    std::string text = c_.place(wrong_[0]) + " is ";
    text += std::isnan(value) ? kNeverWritten : to_text(value);
    text += ", must be " + to_text(c_.expected[wrong_[0]]);
    if (c_.expected.size() == 1) return text;
    text += "; " + describe_places("are wrong");
    for (const std::string& relation :
         {as_alternative(), as_transpose(), as_row(), as_column(), as_shift(), as_multiple(), as_rounding()})
      if (!relation.empty()) return text + "; " + relation;
    return text;
  }

  /// @param what holds of the wrong elements, as "are wrong"
  std::string describe_places(const std::string& what) const {
    const size_t size = c_.expected.size();
    if (wrong_.size() == size) return fmt::format("all {} elements {}", size, what);
    if (wrong_.size() == 1) return fmt::format("the other {} are right", size - 1);
    std::vector<bool> rows(size / width_), columns(width_);
    for (const size_t at : wrong_) rows[at / width_] = columns[at % width_] = true;
    const bool all_rows = std::find(rows.begin(), rows.end(), false) == rows.end();
    const bool all_columns = std::find(columns.begin(), columns.end(), false) == columns.end();
    std::string where;
    if (!all_rows) where = name_places(c_.columns ? "row" : "element", rows);
    if (c_.columns && !all_columns)
      if (const std::string named = name_places("column", columns); !named.empty())
        where += (where.empty() ? "" : ", ") + named;
    return fmt::format("{} of {} elements {}{}", wrong_.size(), size, what,
                       where.empty() ? "" : ", all in " + where);
  }

 private:
  bool equal(size_t at, float value) const { return std::abs(c_.got[at] - value) <= c_.tolerance; }

  /// Do values of these places say anything? Many zeros are found in other places, too.
  bool tells(const std::vector<size_t>& places) const {
    if (places.size() < kMin) return false;
    std::vector<float> values;
    for (const size_t at : places) values.push_back(c_.got[at]);
    std::sort(values.begin(), values.end());
    return std::unique(values.begin(), values.end()) - values.begin() >= 3;
  }

  /// All are k times, or all are d more than what they must be.
  std::string as_multiple() const {
    const bool differ = std::any_of(wrong_.begin(), wrong_.end(),
                                    [&](size_t at) { return c_.expected[at] != c_.expected[wrong_[0]]; });
    if (std::all_of(wrong_.begin(), wrong_.end(), [&](size_t at) { return c_.got[at] == 0; }))
      return wrong_.size() > 1 ? "each of them is 0" : "";
    if (!differ) return "";
    const auto big = *std::max_element(wrong_.begin(), wrong_.end(), [&](size_t a, size_t b) {
      return std::abs(c_.expected[a]) < std::abs(c_.expected[b]);
    });
    const float ratio = c_.got[big] / c_.expected[big], inverse = 1 / ratio;
    const bool is_simple = ratio == std::round(ratio) || inverse == std::round(inverse);
    if (is_simple && holds([&](size_t at) { return ratio * c_.expected[at]; })) {
      if (ratio == -1) return "each of them has the wrong sign";
      return "each of them is " +
             (ratio == 2      ? "twice"
              : ratio == 0.5f ? "half"
                              : to_text(ratio) + " times") +
             " what it must be";
    }
    const float more = c_.got[wrong_[0]] - c_.expected[wrong_[0]];
    if (holds([&](size_t at) { return c_.expected[at] + more; }))
      return fmt::format("each of them is {} too {}", to_text(std::abs(more)), more > 0 ? "large" : "small");
    return "";
  }

  /// All are one or two steps of bf16 off.
  std::string as_rounding() const {
    constexpr int kBitsAfterFirst = 7;  // that bf16 has of a number
    const bool is =
        wrong_.size() >= kMin && std::all_of(wrong_.begin(), wrong_.end(), [&](size_t at) {
          const float right = c_.expected[at];
          if (right == 0 || !std::isfinite(right)) return false;
          return std::abs(c_.got[at] - right) <= 2 * std::ldexp(1.0f, std::ilogb(right) - kBitsAfterFirst);
        });
    return is ? "each is off by its last bits: is something rounded twice?" : "";
  }

  template <class Right>
  bool holds(const Right& right) const {
    return std::all_of(wrong_.begin(), wrong_.end(), [&](size_t at) { return equal(at, right(at)); });
  }

  /// All of them are what a known mistake makes.
  std::string as_alternative() const {
    if (!tells(wrong_)) return "";
    for (const Alternative& one : c_.alternatives)
      if (holds(one.value)) return one.text;
    return "";
  }

  std::string as_transpose() const {
    if (!c_.columns || c_.columns * c_.columns != c_.expected.size() || !tells(wrong_)) return "";
    const bool is = holds([&](size_t at) { return c_.expected[at % width_ * width_ + at / width_]; });
    return is ? c_.name + " is transposed" : "";
  }

  /// The wrong elements of the first wrong row are those of another row.
  std::string as_row() const {
    return c_.columns ? as_line(
                            "row", c_.expected.size() / width_, [&](size_t at) { return at / width_; },
                            [&](size_t at, size_t row) { return row * width_ + at % width_; })
                      : "";
  }
  std::string as_column() const {
    return c_.columns ? as_line(
                            "column", width_, [&](size_t at) { return at % width_; },
                            [&](size_t at, size_t column) { return at / width_ * width_ + column; })
                      : "";
  }
  template <class LineOf, class PlaceIn>
  std::string as_line(const char* kind, size_t lines, const LineOf& line_of, const PlaceIn& place_in) const {
    const size_t line = line_of(wrong_[0]);
    std::vector<size_t> places;
    for (const size_t at : wrong_)
      if (line_of(at) == line) places.push_back(at);
    if (!tells(places)) return "";
    for (size_t other = 0; other < lines; ++other) {
      const bool is_it = std::all_of(places.begin(), places.end(),
                                     [&](size_t at) { return equal(at, c_.expected[place_in(at, other)]); });
      if (is_it) return fmt::format("{} {} holds what {} {} must hold", kind, line, kind, other);
    }
    return "";
  }

  /// The first wrong elements, one after the other, are others that follow each other.
  std::string as_shift() const {
    std::vector<size_t> run;
    for (const size_t at : wrong_)
      if (run.empty() || at == run.back() + 1) run.push_back(at);
    if (c_.columns || !tells(run)) return "";
    const size_t first = run.front(), last = run.back();
    for (size_t other = 0; other + run.size() <= c_.expected.size(); ++other) {
      const bool is_it = std::all_of(run.begin(), run.end(),
                                     [&](size_t at) { return equal(at, c_.expected[at - first + other]); });
      if (is_it)
        return fmt::format("elements {} to {} hold what elements {} to {} must hold", first, last, other,
                           other + last - first);
    }
    return "";
  }

  const Comparison& c_;
  size_t width_;
  std::vector<size_t> wrong_;
};

}  // namespace

bool Comparison::is_wrong(size_t i) const { return !(std::abs(got[i] - expected[i]) <= tolerance); }

std::string Comparison::place(size_t i) const {
  if (columns == 0) return fmt::format("element {} of {}", i, name);
  return fmt::format("row {}, column {} of {}", i / columns, i % columns, name);
}

std::string describe_wrong_values(const Comparison& comparison) { return Reader(comparison).describe(); }

std::string describe_unwritten(const Comparison& comparison, const std::vector<bool>& written) {
  const size_t first =
      static_cast<size_t>(std::find(written.begin(), written.end(), false) - written.begin());
  const std::string text = comparison.place(first) + " was never written";
  if (std::count(written.begin(), written.end(), false) == 1) return text;
  Comparison flags{comparison.name, comparison.columns, 0, {}, std::vector<float>(written.size(), 1)};
  flags.got.assign(written.begin(), written.end());
  return text + "; " + Reader(flags).describe_places("were not");
}

}  // namespace ladder::exercise
