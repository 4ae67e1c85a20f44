/// @file
/// What mbarriers are called: the names are read in the source.
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "common/cuda/barrier_names.hpp"
#include "common/testing/temporary_directory.hpp"

using ladder::barrier_name;
using ladder::BarrierNote;
using ladder::initialised_in;
using ladder::testing::TemporaryDirectory;

namespace {

/// A source file of one line, and its names.
class Source {
 public:
  explicit Source(const std::string& line) : path_(directory_.file("kernel.cuh")) {
    ladder::testing::write_bytes(path_, "// A kernel.\n" + line + "\n");
    date(-std::chrono::hours(1));
  }
  /// Lets the source have been written so long after the program.
  void date(std::chrono::hours after) const {
    const auto program = std::filesystem::last_write_time("/proc/self/exe");
    std::filesystem::last_write_time(path_, program + after);
  }
  std::string barrier(unsigned number = 0, bool several = false) const {
    return barrier_name({path_.c_str(), 2}, number, several);
  }
  std::string end(const char* end, int slot, unsigned number = 0, bool several = false) const {
    return barrier_name({path_.c_str(), 2, end, slot}, number, several);
  }
  BarrierNote note(uint32_t launch, uint32_t address, const char* end = "", int slot = 0) const {
    BarrierNote note{.launch = launch, .address = address, .line = 2, .slot = slot, .end = {}, .file = {}};
    std::strncpy(note.end, end, sizeof note.end - 1);
    std::strncpy(note.file, path_.c_str(), sizeof note.file - 1);
    return note;
  }

 private:
  TemporaryDirectory directory_;
  std::string path_;
};

}  // namespace

TEST_CASE("barrier names: the ends of a pipeline have its name before them, and their slot behind") {
  const Source source("    smem.pipe_lc.init(1, kWarpgroups);");
  CHECK(source.end("full", 0) == "pipe_lc.full[0]");
  CHECK(source.end("empty", 3) == "pipe_lc.empty[3]");
}

TEST_CASE("barrier names: pipelines of an array are told apart by their number") {
  CHECK(Source("smem.pipe_cs[i].init(128, 1);").end("full", 1, 0, true) == "pipe_cs[0].full[1]");
  CHECK(Source("smem.pipe_cs[i].init(128, 1);").end("empty", 0, 2, true) == "pipe_cs[2].empty[0]");
  CHECK(Source("for (auto& pipe_cs : smem.pipe_cs) pipe_cs.init(128, 1);").end("full", 0, 1, true) ==
        "pipe_cs[1].full[0]");
  CHECK(Source("smem.pipes[2].init(128, 1);").end("full", 0) == "pipes[2].full[0]");
}

TEST_CASE("barrier names: a barrier is called as the argument of its initialisation") {
  CHECK(Source("ptx::mbarrier_init(&inbox.full, 1);").barrier() == "inbox.full");
  CHECK(Source("ptx::mbarrier_init(&inbox.full, 1);").barrier(1, true) == "inbox.full[1]");
  CHECK(Source("ptx::mbarrier_init(&smem.turn[warpgroup], 128);").barrier() == "turn[0]");
  CHECK(Source("ptx::mbarrier_init(&shared->inbox[place(me, 2)].full, 1);").barrier(3, true) ==
        "inbox[3].full");
  CHECK(Source("if (leads) ptx::mbarrier_init(\n    &full, 1);").barrier() == "full");
}

TEST_CASE("barrier names: where the source does not tell, file and line do") {
  CHECK(barrier_name({"/moved/away/gemm.cuh", 147, "full", 1}, 0, false) == "gemm.cuh:147.full[1]");
  CHECK(barrier_name({"/moved/away/gemm.cuh", 147}, 2, true) == "gemm.cuh:147[2]");
  CHECK(Source("mbarrier_init(&a, 1); mbarrier_init(&b, 1);").barrier() == "kernel.cuh:2");
  CHECK(Source("prepare(smem);").end("full", 0) == "kernel.cuh:2.full[0]");
}

TEST_CASE("barrier names: nothing is read in a source that is newer than the program") {
  const Source source("smem.pipe_lc.init(1, kWarpgroups);");
  source.date(std::chrono::hours(1));
  CHECK(source.end("full", 0) == "kernel.cuh:2.full[0]");
}

TEST_CASE("barrier names: what is initialised in a line") {
  CHECK(initialised_in("init(a);\nb.init(1, 1);\n", true) == "");
  CHECK(initialised_in("this->pipe.init(1, 1);\n", true) == "pipe");
  CHECK(initialised_in("block->pipes[at[i]].init(1, 1);\n", true) == "block.pipes[at[i]]");
  CHECK(initialised_in("return x;\nmbarrier_init(&b, 1);\n", false) == "");
  CHECK(initialised_in("init_barrier<2>(&full[i], 1);\n", false, "init_barrier") == "full[i]");
  CHECK(initialised_in("ring.full[i].init(1);\n", false, "init") == "ring.full[i]");
  CHECK(initialised_in("reinit(&full[i]);\n", false, "init") == "");
}

TEST_CASE("barrier names: notes of one launch are counted, and the last note of a place counts") {
  const Source turns("ptx::mbarrier_init(turn, 128);"), other("ptx::mbarrier_init(&other, 1);");
  const std::vector<BarrierNote> notes = {turns.note(1, 0x10), turns.note(2, 0x20), turns.note(2, 0x28),
                                          other.note(1, 0x30), turns.note(3, 0x30), {}};
  const auto name = [&](uint32_t address) {
    return ladder::name_in_notes(notes.data(), notes.size(), address);
  };
  CHECK(name(0x10) == "turn");
  CHECK(name(0x20) == "turn[0]");
  CHECK(name(0x28) == "turn[1]");
  CHECK(name(0x30) == "turn");
  CHECK(name(0).empty());
}

TEST_CASE("barrier names: the slots of a pipeline are not several pipelines") {
  const Source source("smem.pipe_lc.init(1, 2);");
  const std::vector<BarrierNote> notes = {source.note(1, 0x10, "full", 0), source.note(1, 0x18, "full", 1),
                                          source.note(1, 0x20, "empty", 0)};
  CHECK(ladder::name_in_notes(notes.data(), notes.size(), 0x18) == "pipe_lc.full[1]");
  CHECK(ladder::name_in_notes(notes.data(), notes.size(), 0x20) == "pipe_lc.empty[0]");
}
