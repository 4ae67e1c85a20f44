/// @file
/// What learners read holds nothing that measures, bounds or names: common/ptx, common/device and the
/// lessons' kernels. Shadow headers bring that in (common/instrumented).
#include <catch2/catch_test_macros.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common/testing/patterns.hpp"
#include "common/testing/temporary_directory.hpp"

namespace fs = std::filesystem;

namespace teaching_files_test {
namespace {

bool is_lesson(const fs::path& folder) {
  const std::string name = folder.filename();
  return name.size() > 3 && std::isdigit(name[0]) && std::isdigit(name[1]) && name[2] == '_';
}

std::vector<fs::path> teaching_files(const fs::path& root) {
  std::vector<fs::path> files;
  for (const char* folder : {"common/ptx", "common/device"})
    for (const auto& entry : fs::directory_iterator(root / folder))
      if (entry.path().extension() == ".cuh") files.push_back(entry.path());
  for (const auto& entry : fs::directory_iterator(root))
    if (is_lesson(entry.path()) && fs::exists(entry.path() / "gemm.cuh"))
      files.push_back(entry.path() / "gemm.cuh");
  return files;
}

/// "file:line: word" for each word that does not belong there.
std::vector<std::string> complaints_about(const fs::path& file) {
  std::vector<std::string> complaints;
  std::ifstream text(file);
  int number = 1;
  for (std::string line; std::getline(text, line); ++number)
    for (const char* word : {"trace::", "WaitBound", "CallSite", "mbarrier_name", "LADDER_TRACE",
                             "LADDER_BOUNDED_WAITS", "common/instrumented"})
      if (line.find(word) != line.npos)
        complaints.push_back(file.filename().string() + ":" + std::to_string(number) + ": " + word);
  return complaints;
}

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(fs::path(LADDER_SOURCE_DIR) / file).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("teaching files hold nothing that measures, bounds or names") {
  const std::vector<fs::path> files = teaching_files(LADDER_SOURCE_DIR);
  CHECK(files.size() >= 25);
  for (const fs::path& file : files) {
    INFO(file.string());
    CHECK(complaints_about(file) == std::vector<std::string>());
  }
}

TEST_CASE("teaching files: a pipeline inside of a block knows nothing of clusters") {
  CHECK(text_of("common/device/pipeline.cuh").find("ptx/cluster.cuh") == std::string::npos);
}

TEST_CASE("teaching files: an instruction that a GPU lacks is a trap, unless nothing can depend on it") {
  // Hints; fences for what is a trap itself; the rank of a block that is alone; waits for a kernel that has
  // ended.
  const std::set<std::string> may_be_empty = {"tma_prefetch",        "fence_mbarrier_init",
                                              "fence_proxy_async",   "cluster_block_rank",
                                              "griddepcontrol_wait", "griddepcontrol_launch_dependents"};
  const std::string function = R"(__device__ __forceinline__ [\w*]+ (\w+)\()";
  int checked = 0;
  for (const char* header :
       {"mbarrier", "tma", "cluster", "fence", "mma_sync", "stmatrix", "grid_dependency"}) {
    std::istringstream lines(text_of(std::string("common/ptx/") + header + ".cuh"));
    std::string name;
    bool asks = false, answers = false;
    for (std::string line; std::getline(lines, line);) {
      if (const auto match = ladder::testing::first_match(line, function)) name = (*match)[1];
      if (line.find("#if !defined(__CUDA_ARCH__)") == 0) asks = true, answers = false;
      if (line == "#else") answers = true;
      if (line != "#endif" || !asks) continue;
      INFO(header << ".cuh: " << name);
      CHECK(answers != may_be_empty.contains(name));
      asks = false, ++checked;
    }
  }
  CHECK(checked >= 20);
}

TEST_CASE("teaching files: a word that does not belong there is found, with its line") {
  const ladder::testing::TemporaryDirectory directory;
  const std::string path = directory.file("gemm.cuh");
  std::ofstream(path) << "int x;\nconst trace::Span span;\n";
  CHECK(complaints_about(path) == std::vector<std::string>{"gemm.cuh:2: trace::"});
}

}  // namespace teaching_files_test
