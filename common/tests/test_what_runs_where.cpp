/// @file
/// The page's table of what runs where, held against what the lessons say of themselves.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/host/base/text.hpp"
#include "common/host/device/compiled_code.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/lesson.hpp"
#include "common/host/problem/lesson_registry.hpp"
#include "common/testing/patterns.hpp"

namespace {

using ladder::Code;
using ladder::Lesson;

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// The cells of each line of the first table below the heading, without the line of dashes.
std::vector<std::vector<std::string>> table_below(const std::string& heading) {
  std::ifstream page(LADDER_SOURCE_DIR "/docs/using_the_programs.md");
  std::vector<std::vector<std::string>> table;
  bool below = false;
  for (std::string line; std::getline(page, line);) {
    below = below || line == heading;
    if (!below) continue;
    if (line.rfind("|", 0) == 0 && line.rfind("|--", 0) != 0) {
      std::vector<std::string> cells;
      for (const std::string& cell : ladder::split(line.substr(1, line.size() - 2), '|'))
        cells.push_back(trimmed(cell));
      table.push_back(cells);
    } else if (!table.empty() && line.empty()) {
      break;
    }
  }
  return table;
}

/// Of "Ampere (sm_80, sm_90a)".
std::vector<Code> codes_in(const std::string& cell) {
  std::vector<Code> codes;
  for (const auto& match : ladder::testing::all_matches(cell, "sm_([0-9]+)(a?)"))
    codes.push_back({std::stoi(match[1]), !match[2].empty()});
  return codes;
}

/// Of "01, 07".
std::vector<std::string> numbers_in(const std::string& cell) {
  std::vector<std::string> numbers;
  for (const std::string& number : ladder::split(cell, ',')) numbers.push_back(trimmed(number));
  return numbers;
}

/// What the table must say of the code and the lesson: its cores that run, "yes" if it has no choice of
/// cores, or "-".
std::string cell_of(const Code& code, const std::string& number) {
  const std::vector<const Lesson*> lessons = ladder::all_lessons();
  const auto runs = [&](const Lesson* lesson) {
    return ladder::why_not(lesson->requirement(), {"a GPU", code.architecture, "", code}).empty();
  };
  // 07 is the host's program around the best kernel that runs.
  if (number == "07") return std::any_of(lessons.begin(), lessons.end(), runs) ? "yes" : "-";
  const auto lesson = std::find_if(lessons.begin(), lessons.end(),
                                   [&](const Lesson* one) { return one->name.rfind(number, 0) == 0; });
  if (lesson == lessons.end()) throw std::invalid_argument("there is no lesson " + number);
  if (!runs(*lesson)) return "-";
  std::vector<std::string> cores;
  for (const ladder::Knob& knob : (*lesson)->knobs)
    if (knob.name == "core")
      for (const std::string& core : knob.choices)
        if (ladder::has_core(code, core)) cores.push_back("`" + core + "`");
  return cores.empty() ? "yes" : ladder::join(cores, ", ");
}

}  // namespace

TEST_CASE("what runs where: the page says what the lessons say") {
  const auto table = table_below("## Which GPU runs what");
  REQUIRE(table.size() > 1);
  std::set<int> architectures;
  std::set<std::string> numbers;
  for (size_t row = 1; row < table.size(); ++row) {
    REQUIRE(table[row].size() == table[0].size());
    for (const Code& code : codes_in(table[row][0])) {
      architectures.insert(code.architecture * 2 + code.specific);
      for (size_t column = 1; column < table[0].size(); ++column)
        for (const std::string& number : numbers_in(table[0][column])) {
          INFO("sm_" << code.architecture << (code.specific ? "a" : "") << ", lesson " << number);
          CHECK(table[row][column] == cell_of(code, number));
          numbers.insert(number);
        }
    }
  }
  CHECK(architectures == std::set<int>{2 * 75, 2 * 80, 2 * 86, 2 * 89, 2 * 90, 2 * 90 + 1, 2 * 100, 2 * 120});
  CHECK(numbers == std::set<std::string>{"01", "02", "03", "04", "05", "06", "07"});
}

TEST_CASE(
    "Problems that every lesson checks have tiles side by side and below each other, and sides unlike") {
  if (!ladder::on_cpu_device()) SKIP("the CPU device checks them");
  for (const Lesson* lesson : ladder::all_lessons()) {
    INFO(lesson->name);
    for (const ladder::Shape& shape : {lesson->cpu_check, lesson->cpu_check_few}) {
      INFO(shape.name());
      CHECK(shape.m != shape.n);  // else a message may name the wrong one
      CHECK(shape.n != shape.k);
      CHECK(shape.k != shape.m);
    }
    if (!lesson->resources && !lesson->choice) continue;
    std::vector<ladder::Settings> all = lesson->cpu_rows;
    all.push_back({});
    for (const ladder::Rung& rung : lesson->rungs) all.push_back(rung.settings);
    for (const ladder::Settings& chosen : all) {
      const ladder::Settings settings = lesson->settings(chosen);
      // "192x64, 1x4x1": the tile, and the blocks of a cluster; those of lesson 06 itself are pairs along M.
      std::string plan = lesson->resources ? lesson->resources(settings).tile + ", " : "";
      plan += !lesson->resources                    ? lesson->choice(lesson->cpu_check, settings)
              : lesson->name == "06_clusters_dsmem" ? "2x1x1"
                                                    : "1x1x1";
      INFO(ladder::describe(chosen) << ": " << plan);
      const auto found = ladder::testing::first_match(plan, "^([0-9]+)x([0-9]+)(?:, ([0-9]+)x([0-9]+))?");
      if (!found) continue;
      const auto blocks = [&](size_t i) { return (*found)[i].empty() ? 1 : std::stoi((*found)[i]); };
      CHECK(lesson->cpu_check.m > std::stoi((*found)[1]) * blocks(3));
      CHECK(lesson->cpu_check.n > std::stoi((*found)[2]) * blocks(4));
    }
  }
}
