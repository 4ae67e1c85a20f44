/// @file
/// The cache of compiled kernels: what was put there comes back, and nothing else is ever run.
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "06_clusters_dsmem/any_shape/on_demand.hpp"
#include "common/testing/temporary_directory.hpp"

namespace fs = std::filesystem;
using lesson06::any_shape::read_cached;
using lesson06::any_shape::write_cached;

namespace {

/// A cache with one kernel in it. Its folder is made by the first kernel.
struct Cache {
  ladder::testing::TemporaryDirectory directory;
  fs::path folder = fs::path(directory.file("kernel-ladder")) / "kernels";
  std::string path = (folder / "0123456789abcdef").string(), key = "sources, options, toolkit, kernel";
  std::string kernel = std::string("name\n\0\1cubin", 12);

  Cache() { REQUIRE(write_cached(path, key, kernel).empty()); }
};

}  // namespace

TEST_CASE("06: a kernel comes back from the cache as it was put there, for this user alone") {
  const Cache cache;
  CHECK(read_cached(cache.path, cache.key) == cache.kernel);
  CHECK(fs::status(cache.folder).permissions() == fs::perms::owner_all);
  CHECK(fs::status(cache.path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(std::distance(fs::directory_iterator(cache.folder), fs::directory_iterator()) == 1);
  CHECK(!read_cached(cache.path + "0", cache.key));  // nothing is there, which is no reason for a warning
}

TEST_CASE("06: another kernel under the same name is not run") {
  const Cache cache;
  CHECK(!read_cached(cache.path, cache.key + ", of another toolkit"));
}

TEST_CASE("06: a damaged kernel is not run") {
  const Cache cache;
  const auto damage = GENERATE(0, 1, 2);
  if (damage == 0) fs::resize_file(cache.path, fs::file_size(cache.path) - 1);
  if (damage == 1) std::ofstream(cache.path, std::ios::app) << 'x';
  if (damage == 2) {
    std::fstream file(cache.path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('N');
  }
  CHECK(!read_cached(cache.path, cache.key));
  REQUIRE(write_cached(cache.path, cache.key, cache.kernel).empty());
  CHECK(read_cached(cache.path, cache.key) == cache.kernel);
}

TEST_CASE("06: a kernel that others may have written is not run") {
  const Cache cache;
  const int up = GENERATE(0, 1, 2);
  const fs::path writable = up == 0   ? fs::path(cache.path)
                            : up == 1 ? cache.folder
                                      : cache.folder.parent_path();
  for (const fs::perms by : {fs::perms::group_write, fs::perms::others_write}) {
    INFO(writable << " " << static_cast<int>(by));
    fs::permissions(writable, by, fs::perm_options::add);
    CHECK(!read_cached(cache.path, cache.key));
    if (fs::is_directory(writable)) CHECK(!write_cached(cache.path, cache.key, cache.kernel).empty());
    fs::permissions(writable, by, fs::perm_options::remove);
  }
  CHECK(read_cached(cache.path, cache.key) == cache.kernel);
}

TEST_CASE("06: a link to a kernel is not followed, and a pipe is not waited for") {
  const Cache cache;
  const std::string link = cache.path + "1", pipe = cache.path + "2";
  fs::create_symlink(cache.path, link);
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(!read_cached(link, cache.key));
  CHECK(!read_cached(pipe, cache.key));
}

TEST_CASE("06: where no kernel can be kept, it is said why") {
  const Cache cache;
  const std::string below_a_file = cache.path + "/kernels/0";
  CHECK(!write_cached(below_a_file, cache.key, cache.kernel).empty());
}
