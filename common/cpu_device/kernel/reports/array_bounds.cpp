/// @file
/// Compares what a line accesses with the arrays that it names.
#include "common/cpu_device/kernel/reports/array_bounds.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "common/cpu_device/kernel/from_source/shared_variables.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"

namespace cpu_device {
namespace {

constexpr size_t kStep = 16;  ///< arrays begin at multiples of less, but then they are small

/// ".a", of "smem.a[slot].panels[1]" and "smem->a": what lies behind the struct, up to the first index.
std::string member_of(const std::string& name) {
  size_t begin = name.find_first_of(".-");
  if (begin == name.npos) return "";
  begin += name[begin] == '-' ? 2 : 1;
  return "." + name.substr(begin, name.find_first_of("[", begin) - begin);
}

bool is_of_member(const std::string& name, const std::string& member) {
  const size_t dot = name.find('.');
  return dot != name.npos && name.compare(dot, member.size(), member) == 0 &&
         (name.size() == dot + member.size() || name[dot + member.size()] == '[' ||
          name[dot + member.size()] == '.');
}

/// An array as a line names it.
struct NamedArray {
  std::string operand;        ///< "smem.a[y + 1][x]"
  std::string name;           ///< "smem.a"
  size_t begin = 0, end = 0;  ///< in the block's shared memory
  bool holds(size_t offset) const { return begin <= offset && offset < end; }
};

/// Are all its indices 0?
bool is_first_element(const std::string& name) {
  for (size_t at = name.find('['); at != name.npos; at = name.find('[', at + 1))
    if (name.compare(at, 3, "[0]") != 0) return false;
  return true;
}

std::optional<NamedArray> find_array(SharedLayout& layout, size_t bytes, const std::string& operand) {
  const std::string member = member_of(operand);
  NamedArray array{operand, "", bytes, 0};
  if (member.empty()) return {};
  for (size_t at = 0; at < bytes; at += kStep) {
    const std::string name = layout.name_of(at);
    if (!is_of_member(name, member)) continue;
    array.name = name.substr(0, name.find('.')) + member;
    array.begin = std::min(array.begin, at);
    array.end = std::min(at + kStep, bytes);
  }
  // What begins in the middle of a step, or lies in a union with what has another name, is not seen as a
  // whole.
  if (array.name.empty() || !is_first_element(layout.name_of(array.begin))) return {};
  while (array.end > array.begin && !is_of_member(layout.name_of(array.end - 1), member)) --array.end;
  return array;
}

size_t count_of_indices(const std::string& name) {
  size_t count = 0;
  int depth = 0;
  for (const char c : name) {
    count += c == '[' && depth == 0;
    depth += (c == '[') - (c == ']');
  }
  return count;
}

bool is_assigned(const std::string& text, size_t end) {
  const size_t at = text.find_first_not_of(" \n", end);
  if (at == text.npos) return false;
  const auto is = [&](size_t i, char c) { return i < text.size() && text[i] == c; };
  if (is(at, '=')) return !is(at + 1, '=');
  return std::string("+-*/%&|^").find(text[at]) != std::string::npos &&
         (is(at + 1, '=') || text[at] == text[at + 1]);
}

bool is_plainly_assigned(const std::string& text, size_t end) {
  const size_t at = text.find_first_not_of(" \n", end);
  return at != text.npos && text[at] == '=' && (at + 1 == text.size() || text[at + 1] != '=');
}

/// The operands of a line that an ordinary load, or store, of it may mean. Nothing where one of them may be a
/// pointer to what lies behind it, too.
std::vector<std::string> accessed_operands(const OwnLine& line, bool writes) {
  std::vector<std::string> chosen;
  const std::string& text = line.statement;
  if (text.find('?') != text.npos) return {};
  for (const std::string& operand : line.operands)
    for (size_t at = text.find(operand); at != text.npos; at = text.find(operand, at + 1)) {
      const size_t end = at + operand.size();
      const bool is_whole = end == text.size() || (text[end] != '.' && text[end] != '[' && text[end] != '(');
      if (at > 0 && text[at - 1] == '&') return {};
      if (is_whole && (writes ? is_assigned(text, end) : !is_plainly_assigned(text, end)) &&
          std::find(chosen.begin(), chosen.end(), operand) == chosen.end())
        chosen.push_back(operand);
    }
  return chosen;
}

/// The arrays of which a line accesses elements; nothing where it may mean others, too.
std::vector<NamedArray> accessed_arrays(SharedLayout& layout, size_t bytes, const OwnLine& line,
                                        bool is_operation, bool writes) {
  if (!line.is_direct) return {};
  std::vector<NamedArray> arrays;
  for (const std::string& operand : is_operation ? line.operands : accessed_operands(line, writes)) {
    const std::optional<NamedArray> array = find_array(layout, bytes, operand);
    if (!array) return {};
    // With fewer indices it is a pointer, with more it holds pointers.
    const size_t indices = count_of_indices(layout.name_of(array->begin));
    if (!is_operation && count_of_indices(operand) != indices) return {};
    if (count_of_indices(operand) > indices) return {};
    arrays.push_back(*array);
  }
  return arrays;
}

/// "smem.a[32][0] would be there, and smem.a ends with smem.a[31][31]"; empty where no index comes first.
std::string element_outside(SharedLayout& layout, const NamedArray& array, std::ptrdiff_t offset) {
  const std::string last = layout.name_of(array.end - 1);
  const size_t size = array.name.size();
  if (last.size() <= size || last[size] != '[') return "";
  const auto length = static_cast<std::ptrdiff_t>(std::strtoul(last.c_str() + size + 1, nullptr, 10) + 1);
  const auto bytes = static_cast<std::ptrdiff_t>(array.end - array.begin);
  if (bytes % length) return "";
  const std::ptrdiff_t stride = bytes / length, from = offset - static_cast<std::ptrdiff_t>(array.begin);
  const std::ptrdiff_t index = from >= 0 ? from / stride : -((-from + stride - 1) / stride);
  const std::string rest = layout.name_of(array.begin + static_cast<size_t>(from - index * stride));
  const std::string place = array.name + print("[%td]", index) + rest.substr(rest.find(']', size) + 1);
  return place + " would be there, and " + array.name +
         (index < 0 ? " begins with " + layout.name_of(array.begin) : " ends with " + last);
}

std::string listed(const std::vector<NamedArray>& arrays) {
  std::string text;
  for (const NamedArray& array : arrays) text += (text.empty() ? "" : " or ") + array.operand;
  return text;
}

}  // namespace

std::string explain_left_array(SharedLayout& layout, size_t bytes, const SiteAccesses& accesses) {
  const bool is_operation = accesses.what != "store" && accesses.what != "load";
  // What reads by a descriptor is explained elsewhere; a copy goes to what it names first.
  if (is_operation && !accesses.writes) return "";
  std::vector<NamedArray> arrays =
      accessed_arrays(layout, bytes, accesses.line, is_operation, accesses.writes);
  std::erase_if(arrays, [&](const NamedArray& array) {
    return std::any_of(accesses.barriers.begin(), accesses.barriers.end(),
                       [&](uint32_t barrier) { return array.holds(barrier); });
  });
  if (arrays.empty() || (is_operation && arrays.size() > 1)) return "";
  const std::string& text = accesses.line.statement;
  if (is_operation && text.find("(&" + arrays.front().operand) == text.npos &&
      text.find("(" + arrays.front().operand) == text.npos)
    return "";
  if (std::any_of(arrays.begin(), arrays.end(), [&](const NamedArray& one) {
        return one.holds(accesses.first) && one.holds(accesses.last);
      }))
    return "";
  if (arrays.size() > 1)
    return "the line at " + accesses.line.place + " reaches from " + layout.name_of(accesses.first) + " to " +
           layout.name_of(accesses.last) +
           ", and none of the arrays that it names holds both: is an index of " + listed(arrays) +
           " too large?";
  const NamedArray& array = arrays.front();
  const bool is_behind = accesses.last >= array.end;
  // An operation may begin within the array: then its first byte outside counts.
  const size_t outside = !is_behind || accesses.first >= array.end ? accesses.first : array.end;
  const std::string element =
      element_outside(layout, array, static_cast<std::ptrdiff_t>(is_behind ? outside : accesses.first));
  return array.operand + " (" + accesses.line.place + ") leaves " + array.name + ": " +
         (element.empty() ? print("it accesses byte %zu %s ",
                                  is_behind ? outside - array.end : array.begin - accesses.first,
                                  is_behind ? "behind the end of" : "before") +
                                array.name
                          : element);
}

std::string explain_beyond_block(SharedLayout& layout, size_t bytes, const OwnLine& line, bool writes,
                                 std::ptrdiff_t offset) {
  const std::vector<NamedArray> arrays = accessed_arrays(layout, bytes, line, /*is_operation=*/false, writes);
  if (arrays.empty()) return "";
  if (arrays.size() > 1)
    return ": is an index of " + listed(arrays) + (offset < 0 ? " negative?" : " too large?");
  const std::string element = element_outside(layout, arrays.front(), offset);
  return ", where " + arrays.front().operand + " leads" + (element.empty() ? "" : ": " + element);
}

}  // namespace cpu_device
