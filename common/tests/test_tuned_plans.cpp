/// @file
/// The file of tuned plans: where it is, what it keeps, and what becomes of a damaged one.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/host/base/exit_codes.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/tuned_plans.hpp"
#include "common/testing/temporary_directory.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using ladder::Shape;
using ladder::TunedPlan;
using ladder::testing::read_bytes;
using ladder::testing::TemporaryDirectory;
using ladder::testing::write_bytes;

namespace {

/// An environment variable, which has its value again at the end.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) { value ? setenv(name_, value, 1) : unsetenv(name_); }

  const char* name_;
  std::optional<std::string> before_;
};

TunedPlan plan_of(const Shape& shape, const std::string& tile, const std::string& gpu = "NVIDIA H200") {
  return {{gpu, "580.1", "abc, CUDA 13.0"}, "06_any_shape", shape, {{"tile", tile}}};
}

/// One that was measured here.
TunedPlan plan_here(const Shape& shape) {
  TunedPlan plan = plan_of(shape, "64x128");
  plan.on = ladder::tuned_here(plan.lesson);
  return plan;
}

}  // namespace

TEST_CASE("Tuned plans are in the user's folder for caches, whose path must be absolute") {
  const auto path = [](const char* cache, const char* home) {
    const Variable xdg("XDG_CACHE_HOME", cache), user("HOME", home);
    return ladder::tuned_plans_path();
  };
  CHECK(path("/c", "/h") == "/c/kernel-ladder/plans.json");
  for (const char* no_folder : {static_cast<const char*>(nullptr), "", "relative/c"}) {
    CHECK(path(no_folder, "/h") == "/h/.cache/kernel-ladder/plans.json");
    CHECK_THROWS_AS(path(no_folder, no_folder), std::runtime_error);
  }
}

TEST_CASE("Tuned plans are added to those of the file, in the place of what they replace") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("new/folder/plans.json");
  CHECK(ladder::read_tuned_plans(path).empty());
  const TunedPlan one = plan_of({1, 2, 3}, "64x128"), two = plan_of({1, 2, 4}, "64x128"),
                  elsewhere = plan_of({1, 2, 3}, "128x128", "NVIDIA H100"),
                  other_one = plan_of({1, 2, 3}, "128x256");
  ladder::remember_plans(path, {one, two});
  CHECK(ladder::read_tuned_plans(path) == std::vector{one, two});
  ladder::remember_plans(path, {elsewhere, other_one});
  CHECK(ladder::read_tuned_plans(path) == std::vector{other_one, two, elsewhere});
}

TEST_CASE("A damaged file of tuned plans is named with what is wrong, and kept beside the new one") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("plans.json");
  const TunedPlan plan = plan_of({8, 8, 8}, "64x128");
  ladder::remember_plans(path, {plan});
  const std::string good = read_bytes(path);
  std::vector<std::string> damaged = {"",
                                      "{}",
                                      "[]",
                                      "null",
                                      R"({"plans": null})",
                                      R"({"plans": {}})",
                                      R"({"plans": {"a": 1}})",
                                      R"({"plans": [1]})"};
  damaged.push_back(good.substr(0, good.size() / 2));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    damaged.push_back(text.replace(text.find(from), from.size(), to));
  };
  with("\"m\": 8", "\"m\": 0");
  with("\"m\": 8", "\"m\": -8");
  with("\"m\": 8", "\"m\": \"8\"");
  with("\"m\": 8", "\"m\": 8.7");
  with("\"m\": 8", "\"m\": 1e300");
  for (const char* const nothing : {"null", "[]", "{}"})
    with("\"settings\":", std::string("\"settings\": ") + nothing + ", \"other\":");
  with("\"gpu\"", "\"cpu\"");
  with("\"64x128\"", "64");
  for (const std::string& text : damaged) {
    INFO(text);
    write_bytes(path, text);
    CHECK_THROWS_MATCHES(ladder::read_tuned_plans(path), ladder::DamagedPlans,
                         MessageMatches(ContainsSubstring("tuned plans '" + path + "': damaged: ")));
    CHECK_THROWS_AS(ladder::prepare_tuned_plans(path), ladder::DamagedPlans);
    ladder::remember_plans(path, {plan});
    CHECK(read_bytes(ladder::damaged_plans_path(path)) == text);
    CHECK(ladder::read_tuned_plans(path) == std::vector{plan});
  }
}

TEST_CASE("A file of tuned plans that is none is not waited for, and not replaced") {
  const TemporaryDirectory directory;
  const std::string pipe = directory.file("pipe"), folder = directory.file("");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, folder})
    CHECK_THROWS_MATCHES(ladder::read_tuned_plans(path), std::invalid_argument,
                         MessageMatches(ContainsSubstring("is no regular file")));
  const std::string link = directory.file("link");
  std::filesystem::create_symlink("/dev/null", link);
  for (const std::string& path : {pipe, folder, link}) {
    CHECK_THROWS_AS(ladder::prepare_tuned_plans(path), std::runtime_error);
    CHECK_THROWS_AS(ladder::remember_plans(path, {plan_of({8, 8, 8}, "64x128")}), std::runtime_error);
  }
}

TEST_CASE("Tuned plans of this device are forgotten by shape, and all with the file") {
  try {
    ladder::require_device();
  } catch (const ladder::BadInput& missing) {
    SKIP(missing.what());
  }
  const TemporaryDirectory directory;
  const std::string path = directory.file("plans.json"), lesson = "06_any_shape";
  const TunedPlan one = plan_here({1, 2, 3}), two = plan_here({1, 2, 4}),
                  elsewhere = plan_of({1, 2, 3}, "64x128");
  ladder::remember_plans(path, {one, two, elsewhere});
  CHECK(ladder::forget_plans(path, lesson, {{1, 2, 3}, {1, 2, 5}}) == 1);
  CHECK(ladder::read_tuned_plans(path) == std::vector{two, elsewhere});
  CHECK(ladder::forget_plans(path, "05_ws_double_buffer", {{1, 2, 4}}) == 0);
  CHECK(ladder::forget_plans(path, lesson, {}) == 2);
  CHECK(directory.names().empty());
  CHECK(ladder::forget_plans(path, lesson, {}) == 0);
  write_bytes(path, "{");
  CHECK_THROWS_AS(ladder::forget_plans(path, lesson, {{1, 2, 3}}), std::invalid_argument);
  CHECK_FALSE(ladder::forget_plans(path, lesson, {}).has_value());
  CHECK(directory.names().empty());
}

TEST_CASE("Programs that remember plans at the same time leave a whole file") {
  constexpr int kPrograms = 4, kPlans = 25;
  const TemporaryDirectory directory;
  const std::string path = directory.file("plans.json");
  std::vector<pid_t> children;
  for (int program = 0; program < kPrograms; ++program) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      alarm(300);
      try {
        for (int i = 1; i <= kPlans; ++i)
          ladder::remember_plans(path, {plan_of({program + 1, i, 8}, "64x128")});
        _exit(0);
      } catch (...) {
        _exit(1);
      }
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK_FALSE(ladder::read_tuned_plans(path).empty());
  CHECK(directory.names() == std::vector<std::string>{"plans.json"});
}

TEST_CASE("The build of a lesson's kernels is known, that of other lessons is not") {
  CHECK(ladder::kernel_build("06_any_shape").size() == 12);
  CHECK(ladder::kernel_build("06_any_shape") != ladder::kernel_build("05_ws_double_buffer"));
  CHECK(ladder::kernel_build("99_fake") == "unknown");
}
