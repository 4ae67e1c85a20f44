/// @file
/// The rooms of the repository: which includes which is what their READMEs allow, and no arrows run in a
/// circle.
///
/// A room is a folder of sources with a README that has the line "**May include:** `room`, `room`." or "**May
/// include:** nothing." Rooms inside a folder may share its README: there each has a section of its name. A
/// lesson is a room as a whole, without its exercises and broken copies. Tests may include anything.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cctype>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/testing/patterns.hpp"
#include "common/testing/temporary_directory.hpp"

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using ladder::testing::TemporaryDirectory;

namespace rooms_test {
namespace {

using Rooms = std::set<std::string>;

constexpr int kMaxLines = 40;  // of what is said of a room: a screen
const std::string kRuleBegins = "**May include:**";

/// What a lesson may include. Its README is a page for learners, so the rule is here.
const Rooms kLessonMayInclude = {
    "common/cuda",         "common/device",       "common/host/base",    "common/host/device",
    "common/host/measure", "common/host/problem", "common/host/program", "common/host/timeline",
    "common/host/verify",  "common/ptx",
};

/// Folders of scripts: rooms without arrows.
const Rooms kScripts = {"common/cmake", "common/lab", "common/results"};

/// One #include; both paths are seen from the root.
struct Include {
  std::string file, included;
};

/// From a room to those that it includes, with every include that makes the arrow.
using Arrows = std::map<std::string, std::map<std::string, std::vector<Include>>>;

struct Tree {
  Rooms rooms;  // all that have sources
  Arrows arrows;
};

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (const auto& part : fs::path(path)) parts.push_back(part.string());
  return parts;
}

/// Whether the path begins with a lesson's folder, NN_name.
bool in_lesson(const std::string& path) {
  return path.size() > 3 && std::isdigit(path[0]) && std::isdigit(path[1]) && path[2] == '_';
}

bool is_lesson(const std::string& room) { return in_lesson(room) && room.find('/') == std::string::npos; }

/// The room that a file is in. Most are folders of common/; four folders have rooms inside.
std::string room_of(const std::string& file) {
  auto folders = parts_of(file);
  folders.pop_back();
  size_t depth = in_lesson(file) ? 1 : 2;
  if (file.starts_with("common/host/") || file.starts_with("common/cpu_device/")) depth = 3;
  if (file.starts_with("common/own_kernel/rewrite/") || file.starts_with("common/own_kernel/ptx/")) depth = 3;
  if (file.starts_with("07_streams/")) depth = 2;
  folders.resize(std::min(folders.size(), depth));
  std::string room;
  for (const auto& folder : folders) room += (room.empty() ? "" : "/") + folder;
  return room;
}

bool is_source(const fs::path& file) {
  static const std::set<std::string> suffixes = {".hpp", ".cpp", ".cuh", ".cu", ".h"};
  // Some shadow headers have names like <cuda/atomic>.
  return suffixes.contains(file.extension()) ||
         (file.extension().empty() && (file.generic_string().starts_with("common/cpu_device/shadow/") ||
                                       file.generic_string().starts_with("common/instrumented/shadow/")));
}

bool is_in(const std::string& file, const std::string& folder) {
  const auto parts = parts_of(file);
  return std::find(parts.begin(), parts.end() - 1, folder) != parts.end() - 1;
}

bool is_test(const std::string& file) {
  return is_in(file, "tests") || fs::path(file).filename().string().starts_with("test_");
}

/// Copies of a lesson that learners and the lab change: part of no room.
bool is_copy(const std::string& file) {
  return in_lesson(file) && (is_in(file, "exercise") || is_in(file, "broken"));
}

/// All sources below common/ and the lessons, seen from the root.
std::vector<std::string> sources_of(const fs::path& root) {
  std::vector<std::string> sources;
  for (const auto& top : fs::directory_iterator(root)) {
    const std::string name = top.path().filename();
    if (!top.is_directory() || (name != "common" && !in_lesson(name))) continue;
    for (const auto& entry : fs::recursive_directory_iterator(top)) {
      const fs::path file = entry.path().lexically_relative(root);
      if (entry.is_regular_file() && is_source(file)) sources.push_back(file.generic_string());
    }
  }
  std::sort(sources.begin(), sources.end());
  return sources;
}

/// The repository's own files that a file includes. Other headers are the system's or the toolkit's; what
/// stands in for those on the CPU device is found by an include path, not by a path from the root, and so is
/// no arrow either.
std::vector<Include> includes_of(const fs::path& root, const std::string& file) {
  std::vector<Include> includes;
  std::ifstream text(root / file);
  for (std::string line; std::getline(text, line);) {
    if (line.find("include") == std::string::npos) continue;
    const auto match = ladder::testing::whole_match(line, R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
    if (!match) continue;
    const std::string &mark = (*match)[1], &path = (*match)[2];
    const fs::path from_root = fs::path(path).lexically_normal();
    const fs::path beside = (fs::path(file).parent_path() / path).lexically_normal();
    if (fs::is_regular_file(root / from_root)) {
      includes.push_back({file, from_root.generic_string()});
    } else if (mark == "\"" && fs::is_regular_file(root / beside)) {
      includes.push_back({file, beside.generic_string()});
    }
  }
  return includes;
}

Tree tree_of(const fs::path& root) {
  Tree tree;
  for (const auto& file : sources_of(root)) {
    const std::string room = room_of(file);
    if (is_copy(file) || kScripts.contains(room)) continue;
    tree.rooms.insert(room);
    if (is_test(file)) continue;
    for (const auto& include : includes_of(root, file)) {
      const std::string other = room_of(include.included);
      if (other != room) tree.arrows[room][other].push_back(include);
    }
  }
  return tree;
}

/// The rule of a room whose README is a page, not a screen.
std::optional<Rooms> rule_of_page(const std::string& room) {
  if (room == "common/cpu_device")
    return Rooms{};  // one header, through which programs and tests see the CPU device
  if (!is_lesson(room)) return std::nullopt;
  Rooms rule = kLessonMayInclude;
  if (room == "07_streams") rule.insert("07_streams/timeline");
  // Roles without wgmma are one kernel with any number of slots: one in 04, a ring in 05.
  if (room == "05_ws_double_buffer") rule.insert("04_warp_specialized");
  // Where clusters do not pay, the launcher of 06 takes the kernels of 05.
  if (room == "06_clusters_dsmem") rule.insert("05_ws_double_buffer");
  return rule;
}

/// What the line of a README allows; no value, and what is wrong, if it is not of the one form.
std::optional<Rooms> rule_in(const std::string& line, const std::string& readme,
                             std::vector<std::string>& complaints) {
  if (!ladder::testing::whole_match(line, R"(\*\*May include:\*\* (nothing|`[^`]+`(, `[^`]+`)*)\.)")) {
    complaints.push_back(readme + ": not of the form '" + kRuleBegins + " `room`, `room`.': " + line);
    return std::nullopt;
  }
  Rooms rule;
  for (const auto& match : ladder::testing::all_matches(line, "`([^`]+)`")) rule.insert(match[1]);
  return rule;
}

/// Whether a heading begins what is said of a room inside this one.
bool begins_inner_room(const fs::path& root, const std::string& room, const std::string& heading) {
  return heading.starts_with("## ") && fs::is_directory(root / room / heading.substr(3));
}

/// What is said of a room, and where: its own README, or the section of its name in that of the folder above.
struct Said {
  std::string where;
  std::vector<std::string> lines;
};

std::optional<Said> said_of(const fs::path& root, const std::string& room) {
  Said said{.where = room + "/README.md", .lines = {}};
  const bool own = fs::is_regular_file(root / said.where);
  const std::string above = fs::path(room).parent_path().generic_string();
  const std::string heading = "## " + fs::path(room).filename().string();
  if (!own) said.where = above + "/README.md";
  std::ifstream text(root / said.where);
  bool within = own;
  for (std::string line; std::getline(text, line);) {
    if (begins_inner_room(root, own ? room : above, line)) within = line == heading;
    if (within) said.lines.push_back(line);
  }
  if (said.lines.empty()) return std::nullopt;
  return said;
}

/// The rooms that a room may include. No value where nothing says so, which is then among the complaints
/// unless the room is one of tests.
std::optional<Rooms> rule_of(const fs::path& root, const std::string& room, const Rooms& rooms,
                             std::vector<std::string>& complaints) {
  if (const auto rule = rule_of_page(room)) return rule;
  const auto said = said_of(root, room);
  if (!said) {
    complaints.push_back(room + " has sources but no README.md");
    return std::nullopt;
  }
  const std::string& readme = said->where;
  std::optional<std::string> rule_line;
  for (const auto& line : said->lines)
    if (line.starts_with(kRuleBegins) && !rule_line) rule_line = line;
  if (said->lines.size() > kMaxLines)
    complaints.push_back(readme + " has " + std::to_string(said->lines.size()) + " lines; a screen has " +
                         std::to_string(kMaxLines));
  if (is_test(room + "/")) return std::nullopt;
  if (!rule_line) {
    complaints.push_back(readme + " lacks the line '" + kRuleBegins + " ...'");
    return std::nullopt;
  }
  const auto rule = rule_in(*rule_line, readme, complaints);
  for (const auto& other : rule.value_or(Rooms{}))
    if (!rooms.contains(other)) complaints.push_back(readme + " allows " + other + ", which is no room");
  return rule;
}

/// The shortest way along arrows from a room back to itself, as the rooms on it; empty if there is none.
std::vector<std::string> circle_through(const std::string& room, const Arrows& arrows) {
  std::map<std::string, std::string> before;
  std::deque<std::string> next = {room};
  while (!next.empty() && !before.contains(room)) {
    const std::string here = next.front();
    next.pop_front();
    const auto found = arrows.find(here);
    if (found == arrows.end()) continue;
    for (const auto& [other, includes] : found->second)
      if (before.try_emplace(other, here).second) next.push_back(other);
  }
  if (!before.contains(room)) return {};
  std::vector<std::string> circle = {room};
  do circle.insert(circle.begin(), before.at(circle.front()));
  while (circle.front() != room);
  return circle;
}

/// One sentence for each circle of rooms, with an include for each of its arrows.
std::vector<std::string> circles_in(const Arrows& arrows) {
  std::vector<std::string> sentences;
  Rooms told;
  for (const auto& [room, others] : arrows) {
    const auto circle = told.contains(room) ? std::vector<std::string>{} : circle_through(room, arrows);
    if (circle.empty()) continue;
    std::string sentence = "a circle: " + room;
    for (size_t i = 0; i + 1 < circle.size(); ++i) {
      const auto& includes = arrows.at(circle[i]).at(circle[i + 1]);
      sentence += " -> " + circle[i + 1] + " (" +
                  (includes.empty() ? "its README allows it"
                                    : includes.front().file + " includes " + includes.front().included) +
                  ")";
    }
    told.insert(circle.begin(), circle.end());
    sentences.push_back(sentence);
  }
  return sentences;
}

/// What is wrong with the rooms of the repository at `root`, one line each; empty if nothing is.
std::string complaints_about(const fs::path& root) {
  Tree tree = tree_of(root);
  std::vector<std::string> complaints;
  for (const auto& room : tree.rooms) {
    const auto rule = rule_of(root, room, tree.rooms, complaints);
    if (!rule) continue;
    for (const auto& [other, includes] : tree.arrows[room])
      for (const auto& include : includes)
        if (!rule->contains(other))
          complaints.push_back(include.file + " includes " + include.included + ", but " + room +
                               " may not include " + other);
    // Nor may what is allowed but not done run in a circle. A lesson's rule is the same for all, so it is not
    // asked.
    if (!is_lesson(room))
      for (const auto& other : *rule) tree.arrows[room][other];
  }
  for (const auto& circle : circles_in(tree.arrows)) complaints.push_back(circle);
  std::string lines;
  for (const auto& complaint : complaints) lines += complaint + "\n";
  return lines;
}

/// A repository made up for a test: three rooms that keep the rules, and a lesson.
class MadeUpRepository {
 public:
  MadeUpRepository() {
    write("common/low/README.md", "# low\n\n**May include:** nothing.\n");
    write("common/low/low.hpp", "#include <vector>\n#include <cuda_runtime.h>\n");
    write("common/high/README.md", "# high\n\n**May include:** `common/low`.\n");
    write("common/high/high.hpp", "#pragma once\n#include \"common/low/low.hpp\"\n");
    write("common/host/README.md", "# host\n\n## base\n\n**May include:** nothing.\n");
    write("common/host/base/base.cpp", "");
    write("common/cpu_device/shadow/README.md", "**May include:** nothing.\n");
    write("common/cpu_device/shadow/cuda_runtime.h", "");
    write("01_first/gemm.cuh", "#include \"common/host/base/base.cpp\"\n");
  }

  void write(const std::string& file, const std::string& text) {
    const std::string path = directory_.file(file);
    fs::create_directories(fs::path(path).parent_path());
    ladder::testing::write_bytes(path, text);
  }

  void remove(const std::string& file) { fs::remove(directory_.file(file)); }

  std::string complaints() const { return complaints_about(directory_.file("")); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("Rooms include what their READMEs allow, and no arrows run in a circle") {
  const Tree tree = tree_of(LADDER_SOURCE_DIR);
  CHECK(tree.rooms.contains("common/cpu_device/shadow"));
  CHECK(tree.arrows.at("common/device").contains("common/ptx"));
  CHECK(tree.arrows.at("07_streams/experiments").contains("07_streams"));
  CHECK(complaints_about(LADDER_SOURCE_DIR) == "");
}

TEST_CASE("CLI11, which takes seconds to compile, is included by one source") {
  std::vector<std::string> sources;
  for (const auto& file : sources_of(LADDER_SOURCE_DIR)) {
    std::ifstream stream(fs::path(LADDER_SOURCE_DIR) / file);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (text.find("\n#include <CLI/") != std::string::npos) sources.push_back(file);
  }
  CHECK(sources == std::vector<std::string>{"common/host/base/arguments.cpp"});
}

TEST_CASE("A repository that keeps the rules of its rooms has no complaints") {
  CHECK(MadeUpRepository().complaints() == "");
}

TEST_CASE("A forbidden include is named, with both rooms") {
  MadeUpRepository repository;
  repository.write("common/low/deep/more.cpp", "  #  include \"common/host/base/base.cpp\"  // why\n");
  CHECK(repository.complaints() ==
        "common/low/deep/more.cpp includes common/host/base/base.cpp, but common/low may not include "
        "common/host/base\n");
}

TEST_CASE("A forbidden include is found by whichever path it is written") {
  MadeUpRepository repository;
  repository.write("common/low/beside.cpp", "#include \"../host/base/base.cpp\"\n");
  repository.write("common/low/in_brackets.cpp", "#include <common/host/../host/base/base.cpp>\n");
  const std::string complaints = repository.complaints();
  CHECK_THAT(complaints, ContainsSubstring("common/low/beside.cpp includes common/host/base/base.cpp, but"));
  CHECK_THAT(complaints,
             ContainsSubstring("common/low/in_brackets.cpp includes common/host/base/base.cpp, but"));
}

TEST_CASE("A shadow header without a suffix has arrows like any other") {
  MadeUpRepository repository;
  repository.write("common/cpu_device/shadow/cuda/atomic", "#include \"common/low/low.hpp\"\n");
  CHECK(repository.complaints() ==
        "common/cpu_device/shadow/cuda/atomic includes common/low/low.hpp, but common/cpu_device/shadow may "
        "not include "
        "common/low\n");
}

TEST_CASE("A lesson may not include the programs that run it, nor another lesson") {
  MadeUpRepository repository;
  repository.write("02_second/lesson.cu",
                   "#include \"01_first/gemm.cuh\"\n#include \"common/high/high.hpp\"\n");
  const std::string complaints = repository.complaints();
  CHECK_THAT(complaints,
             ContainsSubstring("02_second/lesson.cu includes 01_first/gemm.cuh, but 02_second may not"));
  CHECK_THAT(complaints, ContainsSubstring("02_second may not include common/high"));
}

TEST_CASE("The front door of the CPU device includes nothing") {
  MadeUpRepository repository;
  repository.write("common/cpu_device/cpu_device.hpp", "#include \"common/low/low.hpp\"\n");
  CHECK_THAT(repository.complaints(), ContainsSubstring("but common/cpu_device may not include common/low"));
}

TEST_CASE("Tests, exercises and broken copies may include anything") {
  MadeUpRepository repository;
  repository.write("common/low/test_low.cpp", "#include \"common/high/high.hpp\"\n");
  repository.write("common/tests/README.md", "# tests\n");
  repository.write("common/tests/helper.hpp", "#include \"common/high/high.hpp\"\n");
  repository.write("01_first/test_gemm.cu", "#include \"common/high/high.hpp\"\n");
  repository.write("01_first/exercise/1_one/check.cu", "#include \"common/high/high.hpp\"\n");
  repository.write("07_streams/broken/lesson.cu", "#include \"common/high/high.hpp\"\n");
  CHECK(repository.complaints() == "");
}

TEST_CASE("A circle of rooms is named, with an include for each arrow") {
  MadeUpRepository repository;
  repository.write("common/low/README.md", "**May include:** `common/middle`.\n");
  repository.write("common/low/low.hpp", "#include \"common/middle/middle.hpp\"\n");
  repository.write("common/middle/README.md", "**May include:** `common/high`.\n");
  repository.write("common/middle/middle.hpp", "#include \"common/high/high.hpp\"\n");
  CHECK(repository.complaints() ==
        "a circle: common/high -> common/low (common/high/high.hpp includes common/low/low.hpp) -> "
        "common/middle "
        "(common/low/low.hpp includes common/middle/middle.hpp) -> common/high (common/middle/middle.hpp "
        "includes "
        "common/high/high.hpp)\n");
}

TEST_CASE("A circle that READMEs allow is named before anybody closes it") {
  MadeUpRepository repository;
  repository.write("common/low/README.md", "**May include:** `common/high`.\n");
  CHECK(repository.complaints() ==
        "a circle: common/high -> common/low (common/high/high.hpp includes common/low/low.hpp) -> "
        "common/high (its README "
        "allows it)\n");
}

TEST_CASE("Rooms inside a folder may share its README, each with a section and a rule of its own") {
  MadeUpRepository repository;
  repository.write("common/host/verify/verify.cpp", "#include \"common/low/low.hpp\"\n");
  CHECK(repository.complaints() == "common/host/verify has sources but no README.md\n");
  const std::string base = "# host\n\n## base\n\n**May include:** nothing.\n\n";
  repository.write("common/host/README.md", base + "## verify\n\n**May include:** `common/low`.\n");
  CHECK(repository.complaints() == "");
  repository.write("common/host/README.md", base + "## verify\n\nMay include anything.\n");
  CHECK(repository.complaints() == "common/host/README.md lacks the line '**May include:** ...'\n");
  repository.write("common/host/README.md", base + "## verify\n\n**May include:** nothing.\n");
  CHECK_THAT(repository.complaints(), ContainsSubstring("common/host/verify may not include common/low"));
  // The folder may be a room itself. Its own lines end where those of a room inside begin.
  repository.write("common/own_kernel/main.cpp", "#include \"common/low/low.hpp\"\n");
  repository.write("common/own_kernel/ptx/asm.hpp", "");
  repository.write("common/host/README.md", base + "## verify\n\n**May include:** `common/low`.\n");
  repository.write("common/own_kernel/README.md",
                   "# own\n\n**May include:** `common/low`.\n\n## ptx\n\n**May include:** nothing.\n" +
                       std::string(30, '\n'));
  CHECK(repository.complaints() == "");
}

TEST_CASE("A room needs a README of at most a screen, with the line that says what it may include") {
  MadeUpRepository repository;
  SECTION("none") {
    repository.remove("common/high/README.md");
    CHECK(repository.complaints() == "common/high has sources but no README.md\n");
  }
  SECTION("no rule") {
    repository.write("common/high/README.md", "# high\n\nMay include: `common/low`.\n");
    CHECK(repository.complaints() == "common/high/README.md lacks the line '**May include:** ...'\n");
  }
  SECTION("a rule of another form") {
    repository.write("common/high/README.md", "**May include:** common/low.\n");
    CHECK(repository.complaints() ==
          "common/high/README.md: not of the form '**May include:** `room`, `room`.': **May include:** "
          "common/low.\n");
  }
  SECTION("a room that there is not") {
    repository.write("common/high/README.md", "**May include:** `common/low`, `common/lowest`.\n");
    CHECK(repository.complaints() == "common/high/README.md allows common/lowest, which is no room\n");
  }
  SECTION("too long") {
    repository.write("common/high/README.md", "**May include:** `common/low`.\n" + std::string(40, '\n'));
    CHECK(repository.complaints() == "common/high/README.md has 41 lines; a screen has 40\n");
  }
  SECTION("a room of tests") {
    repository.write("common/tests/helper.hpp", "");
    CHECK(repository.complaints() == "common/tests has sources but no README.md\n");
  }
}

}  // namespace rooms_test
