/// @file
/// The race checker: first alone, told step by step what threads do, then under real kernels.
#include <fmt/core.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <cuda/pipeline>

#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/observe/races.hpp"
#include "common/cpu_device/observe/source_lines.hpp"
#include "common/cpu_device/tests/pinned_vector.hpp"
#include "common/cpu_device/tests/tensor_map.cuh"
#include "common/cuda/launch.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/stmatrix.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/wgmma.cuh"

using Catch::Matchers::ContainsSubstring;
using cpu_device::AsyncOperation;
using cpu_device::Proxy;
using cpu_device::RaceChecker;
using cpu_device::SyncObject;
using Queue = cpu_device::RaceChecker::Queue;

using cpu_device::test::PinnedVector;

namespace races_test {
namespace {

/// A checker for one block of 256 threads with 1 KiB of shared memory, that remembers what it reports.
struct Scene {
  std::vector<std::string> reports;
  RaceChecker races{[this](const std::string& text) { reports.push_back(text); }};

  Scene() { races.begin(1, 256, 1024); }
  void write(unsigned thread, size_t offset, size_t bytes = 2) {
    races.access(thread, 0, offset, bytes, true, "store", races.site("kernel.cuh", 10));
  }
  void read(unsigned thread, size_t offset, size_t bytes = 2) {
    races.access(thread, 0, offset, bytes, false, "load", races.site("kernel.cuh", 20));
  }
  void block_barrier() { races.barrier_range(0, 256); }
  AsyncOperation tma(unsigned thread) {
    AsyncOperation op;
    races.issue(op, thread, Queue::none, Proxy::async, "TMA", races.site("kernel.cuh", 30));
    return op;
  }
  AsyncOperation wgmma() {
    AsyncOperation op;
    for (unsigned t = 128; t < 256; ++t) {
      races.issue(op, t, Queue::warpgroup, Proxy::async, "wgmma", races.site("kernel.cuh", 40));
    }
    return op;
  }
  bool silent() const { return reports.empty(); }
};

}  // namespace

// --- plain accesses ------------------------------------------------------------------------------------

TEST_CASE("a read after a write races without a barrier and does not with one") {
  Scene without, with;
  without.write(0, 100);
  without.read(1, 100);
  REQUIRE(without.reports.size() == 1);
  CHECK_THAT(without.reports[0], ContainsSubstring("at byte 100"));
  CHECK_THAT(without.reports[0], ContainsSubstring("kernel.cuh:10"));
  CHECK_THAT(without.reports[0], ContainsSubstring("kernel.cuh:20"));
  CHECK_THAT(without.reports[0], ContainsSubstring("warp 0 lane 1"));

  with.write(0, 100);
  with.block_barrier();
  with.read(1, 100);
  CHECK(with.silent());
}

TEST_CASE("two writes race, a thread with itself does not") {
  Scene scene;
  scene.write(5, 0);
  scene.write(5, 0);
  scene.read(5, 0);
  CHECK(scene.silent());
  scene.write(6, 0);
  REQUIRE_FALSE(scene.silent());
  CHECK_THAT(scene.reports[0], ContainsSubstring("two writes"));
}

TEST_CASE("overwriting what others may still read is a race, whichever of many readers it is") {
  for (const unsigned late_reader : {0u, 31u, 32u, 255u}) {
    CAPTURE(late_reader);
    Scene scene;
    scene.write(7, 64);
    scene.block_barrier();
    for (unsigned t = 0; t < 256; ++t) scene.read(t, 64);
    std::vector<unsigned> others;
    for (unsigned t = 0; t < 256; ++t) {
      if (t != late_reader) others.push_back(t);
    }
    scene.races.barrier(others.data(), 255);
    scene.write(late_reader == 7 ? 8 : 7, 64);
    REQUIRE(scene.reports.size() == 1);
    CHECK_THAT(scene.reports[0], ContainsSubstring("overwritten"));
    CHECK_THAT(scene.reports[0],
               ContainsSubstring(fmt::format("warp {} lane {} at", late_reader / 32, late_reader % 32)));
  }
}

TEST_CASE("reading what nobody has written is called too early, reading what is overwritten is not") {
  for (const bool was_written : {false, true}) {
    Scene scene;
    if (was_written) scene.write(0, 64);
    scene.block_barrier();
    scene.read(3, 64);
    scene.write(0, 64);
    REQUIRE(scene.reports.size() == 1);
    CHECK_THAT(scene.reports[0], ContainsSubstring(was_written ? ": overwritten while it may still be read: "
                                                               : ": read before it was written: "));
  }
}

TEST_CASE("reading again what was read and given back is called too early, whoever comes first") {
  Scene read_first, write_first;
  for (Scene* scene : {&read_first, &write_first}) {
    scene->write(0, 64);
    scene->block_barrier();
    scene->read(3, 64);
    scene->block_barrier();  // thread 0 may write again
  }
  read_first.read(3, 64);
  read_first.write(0, 64);
  REQUIRE(read_first.reports.size() == 1);
  CHECK_THAT(read_first.reports[0], ContainsSubstring(": read before it was written: no barrier or wait"));
  write_first.write(0, 64);
  write_first.read(3, 64);
  REQUIRE(write_first.reports.size() == 1);
  CHECK_THAT(write_first.reports[0], ContainsSubstring(": may be read before it is written: no barrier"));
}

TEST_CASE("what the writer has read itself says nothing of its neighbours in the warp") {
  Scene scene;
  scene.write(0, 64);
  scene.block_barrier();
  scene.read(0, 64);
  scene.write(0, 64);
  scene.read(3, 64);
  REQUIRE(scene.reports.size() == 1);
  CHECK_THAT(scene.reports[0],
             ContainsSubstring(": overwritten before it was read, by the write of a later round"));
}

TEST_CASE("writing again what a reader has not read yet is called overwriting, whoever comes first") {
  for (const bool write_first : {false, true}) {
    Scene scene;
    scene.write(0, 64);
    scene.block_barrier();
    scene.read(3, 64);  // one of two readers
    scene.block_barrier();
    if (write_first) scene.write(0, 64);
    scene.read(99, 64);
    if (!write_first) scene.write(0, 64);
    REQUIRE(scene.reports.size() == 1);
    CHECK_THAT(
        scene.reports[0],
        ContainsSubstring(write_first ? ": overwritten before it was read, by the write of a later round: "
                                      : ": overwritten while it may still be read: "));
  }
}

TEST_CASE("where nothing says who was too early, neither is blamed") {
  Scene scene;
  scene.races.access(0, 0, 64, 2, true, "store", scene.races.site("kernel.cuh", 5));  // cleared, or wanted?
  scene.block_barrier();
  scene.write(0, 64);
  scene.read(3, 64);
  REQUIRE(scene.reports.size() == 1);
  CHECK_THAT(scene.reports[0], ContainsSubstring(": a write and a read that no barrier or wait orders: it is "
                                                 "read too early, or overwritten too early"));
}

TEST_CASE("a copy of whose issue the reader knows is what it wants, also where something was before") {
  for (const auto queue : {Queue::none, Queue::thread}) {
    Scene scene;
    scene.write(0, 64);  // cleared
    scene.block_barrier();
    AsyncOperation copy;
    scene.races.issue(copy, 7, queue, Proxy::generic, "copy", scene.races.site("kernel.cuh", 30));
    scene.block_barrier();
    scene.races.access(copy, 0, 64, 16, true);
    scene.read(3, 64);
    REQUIRE(scene.reports.size() == 1);
    CHECK_THAT(scene.reports[0], ContainsSubstring(": may be read before the copy lands: no barrier"));
  }
}

TEST_CASE("a thread that reads where its own copy is to land reads too early, on any lap") {
  Scene scene;
  scene.write(3, 64);
  AsyncOperation copy;
  scene.races.issue(copy, 3, Queue::thread, Proxy::generic, "cp.async", scene.races.site("kernel.cuh", 30));
  scene.read(3, 64);
  scene.races.access(copy, 0, 64, 16, true);
  REQUIRE(scene.reports.size() == 1);
  CHECK_THAT(scene.reports[0], ContainsSubstring(": read before the copy landed: no barrier or wait orders"));
  CHECK_THAT(scene.reports[0],
             ContainsSubstring("\n  both: load ") && ContainsSubstring("\n  and   cp.async "));
}

TEST_CASE("a slot on its second lap: read before the copy landed, or overwritten by the copy") {
  for (const bool is_released : {true, false}) {
    Scene scene;
    const AsyncOperation first = scene.tma(0);
    SyncObject full, empty;
    scene.races.access(first, 0, 0, 64, true);
    scene.races.complete(first, full);
    scene.races.acquire(40, full);
    scene.read(40, 0);
    if (is_released) {
      scene.races.release(40, empty);
      scene.races.acquire(0, empty);
    }
    const AsyncOperation second = scene.tma(0);
    if (is_released) scene.read(40, 0);  // does not wait for the second
    scene.races.access(second, 0, 0, 64, true);
    REQUIRE(scene.reports.size() == 1);
    CHECK_THAT(scene.reports[0],
               ContainsSubstring(is_released ? ": read before the copy landed: "
                                             : ": overwritten while it may still be read: "));
  }
}

TEST_CASE("wgmma that reads too early, and operands that are overwritten while it reads") {
  for (const bool is_overwritten : {true, false}) {
    Scene scene;
    scene.write(200, 0, 16);
    scene.races.fence_proxy_async(200);
    scene.block_barrier();
    AsyncOperation first = scene.wgmma();
    if (is_overwritten) {
      scene.write(200, 0, 16);
      scene.races.access(first, 0, 0, 16, false);
    } else {
      scene.races.access(first, 0, 0, 16, false);
      for (unsigned t = 128; t < 256; ++t) scene.races.acquire(t, first);
      scene.block_barrier();
      scene.write(200, 0, 16);
      scene.races.fence_proxy_async(200);  // and no barrier
      const AsyncOperation second = scene.wgmma();
      scene.races.access(second, 0, 0, 16, false);
    }
    REQUIRE(scene.reports.size() == 1);
    CHECK_THAT(scene.reports[0],
               ContainsSubstring(is_overwritten ? ": overwritten while it may still be read: "
                                                : ": may be read before it is written: "));
    // It may have been issued before the write.
    CHECK_THAT(scene.reports[0], ContainsSubstring("\n  both: ") && !ContainsSubstring("\n  then "));
  }
}

TEST_CASE(
    "a copy into what one of several wgmma still reads overwrites it, also where the copy lands first") {
  for (const bool is_released : {true, false}) {
    Scene scene;
    SyncObject full, empty;
    const AsyncOperation first = scene.tma(0);
    scene.races.access(first, 0, 0, 64, true);
    scene.races.complete(first, full);
    for (unsigned t = 128; t < 256; ++t) scene.races.acquire(t, full);
    const AsyncOperation early = scene.wgmma();
    scene.wgmma();
    if (is_released) {  // before wgmma.wait_group
      for (unsigned t = 128; t < 256; ++t) scene.races.release(t, empty);
      scene.races.acquire(0, empty);
    }
    const AsyncOperation second = scene.tma(0);
    if (!is_released) {  // too late for the copy
      for (unsigned t = 128; t < 256; ++t) scene.races.release(t, empty);
      scene.races.acquire(0, empty);
    }
    scene.races.access(second, 0, 0, 64, true);
    scene.races.access(early, 0, 0, 64, false);
    REQUIRE(scene.reports.size() == 1);
    CHECK((scene.reports[0].find(": overwritten while it may still be read: ") != std::string::npos) ==
          is_released);
  }
}

TEST_CASE("only the first race of a cluster is reported") {
  Scene scene;
  scene.write(0, 0);
  scene.write(1, 0);
  scene.write(2, 0);
  CHECK(scene.reports.size() == 1);
  scene.races.begin(1, 256, 1024);
  scene.write(3, 0);
  CHECK(scene.reports.size() == 1);
  scene.write(4, 0);
  CHECK(scene.reports.size() == 2);
}

TEST_CASE("neighbouring bytes do not race") {
  Scene scene;
  for (unsigned t = 0; t < 256; ++t) scene.write(t, t, 1);
  for (unsigned t = 0; t < 256; ++t) scene.read(t, t, 1);
  CHECK(scene.silent());
}

TEST_CASE("a wide access races with a narrow one inside of it") {
  Scene scene;
  scene.write(0, 30, 2);
  scene.read(1, 16, 16);
  REQUIRE(scene.reports.size() == 1);
  CHECK_THAT(scene.reports[0], ContainsSubstring("at byte 30"));
}

TEST_CASE("accesses beyond shared memory are left to others") {
  Scene scene;
  scene.write(0, 1020, 16);
  scene.write(1, 2000, 16);
  CHECK(scene.silent());
}

TEST_CASE("release and acquire order, and chain over a third thread") {
  Scene scene;
  SyncObject first, second;
  scene.write(0, 0);
  scene.races.release(0, first);
  scene.races.acquire(1, first);
  scene.races.release(1, second);
  scene.races.acquire(2, second);
  scene.read(2, 0);
  CHECK(scene.silent());
  scene.write(0, 0);  // after its release: nobody knows of this one
  CHECK_FALSE(scene.silent());
}

TEST_CASE("what a thread does after its release is not covered by it") {
  Scene scene;
  SyncObject sync;
  scene.races.release(0, sync);
  scene.write(0, 0);
  scene.races.acquire(1, sync);
  scene.read(1, 0);
  CHECK_FALSE(scene.silent());
}

TEST_CASE("a barrier of one warp does not order the other warps") {
  Scene scene;
  scene.write(0, 0);
  scene.races.barrier_range(0, 32);
  scene.read(31, 0);
  CHECK(scene.silent());
  scene.read(32, 0);
  CHECK_FALSE(scene.silent());
}

TEST_CASE("blocks of a cluster have shared memories of their own") {
  std::vector<std::string> reports;
  RaceChecker races([&](const std::string& text) { reports.push_back(text); });
  races.begin(2, 32, 64);
  const auto site = races.site("kernel.cuh", 1);
  races.access(0, 0, 0, 4, true, "store", site);
  races.access(32, 1, 0, 4, true, "store", site);
  CHECK(reports.empty());
  races.access(33, 0, 0, 4, true, "store", site);  // distributed shared memory
  REQUIRE(reports.size() == 1);
  CHECK_THAT(reports[0], ContainsSubstring("block 1 warp 0 lane 1"));
}

TEST_CASE("an arrival that takes effect later carries what its thread knew when it arrived") {
  for (const bool reads_what_came_before : {true, false}) {
    Scene scene;
    SyncObject arrival, barrier;
    scene.write(0, 100);
    scene.races.release(0, arrival);
    scene.write(0, 200);
    scene.races.pass_on(arrival, barrier);
    scene.races.acquire(1, barrier);
    scene.read(1, reads_what_came_before ? 100 : 200);
    CHECK(scene.silent() == reads_what_came_before);
  }
}

TEST_CASE("a relaxed arrival orders operations that were waited for, and no accesses of threads") {
  for (const bool was_read_by_operation : {true, false}) {
    Scene scene;
    AsyncOperation read = scene.wgmma();
    scene.races.access(read, 0, 0, 64, false);
    scene.races.acquire(130, read);
    if (!was_read_by_operation) scene.read(130, 32);
    SyncObject barrier;
    scene.races.release_operations(130, barrier);
    scene.races.acquire(0, barrier);
    scene.races.access(scene.tma(0), 0, 0, 64, true);
    CHECK(scene.silent() == was_read_by_operation);
  }
}

TEST_CASE("who relies on a write must be ordered after it, and leaves no trace") {
  Scene unordered, ordered;
  const auto rely_on = [](Scene& scene) {
    scene.races.rely_on(1, 0, 100, 2, "TMA multicast", scene.races.site("kernel.cuh", 50));
  };
  unordered.write(0, 100);
  rely_on(unordered);
  CHECK_FALSE(unordered.silent());
  ordered.write(0, 100);
  ordered.block_barrier();
  rely_on(ordered);
  ordered.write(0, 100);
  CHECK(ordered.silent());
}

TEST_CASE("a block may leave when it knows of all accesses from other blocks, and of its own it need not") {
  for (const bool is_ordered : {true, false}) {
    std::vector<std::string> reports;
    RaceChecker races([&](const std::string& text) { reports.push_back(text); });
    races.begin(2, 32, 64);
    races.access(5, 0, 0, 4, false, "load", races.site("kernel.cuh", 1));
    races.access(33, 0, 8, 4, false, "load", races.site("kernel.cuh", 2));
    SyncObject barrier;
    races.release(33, barrier);
    if (is_ordered) races.acquire(7, barrier);
    races.leave(0);
    CHECK(reports.empty() == is_ordered);
    if (is_ordered) continue;
    CHECK_THAT(reports[0],
               ContainsSubstring("block 0 of the cluster leaves while its shared memory (byte 8)"));
    CHECK_THAT(reports[0], ContainsSubstring("  load (a read) by block 1 warp 0 lane 1 at kernel.cuh:2"));
  }
}

TEST_CASE(
    "a block that leaves before the bytes of another block's copy is told that nothing has waited for them") {
  std::vector<std::string> reports;
  RaceChecker races([&](const std::string& text) { reports.push_back(text); });
  races.begin(2, 32, 64);
  AsyncOperation copy;
  races.issue(copy, 33, Queue::none, Proxy::async, "TMA multicast", races.site("kernel.cuh", 3));
  races.annotate(copy, " for full[0]");
  races.access(copy, 0, 8, 4, /*write=*/true);
  races.leave(0);
  REQUIRE(reports.size() == 1);
  CHECK_THAT(
      reports[0],
      ContainsSubstring(" for full[0] at ") &&
          ContainsSubstring(": no thread of block 0 has waited for these bytes; is there a step that it does "
                            "not compute?"));
}

// --- asynchronous operations and proxies ---------------------------------------------------------------

TEST_CASE("cp.async must be waited for, by the issuer and then by a barrier") {
  const auto run = [](bool wait, bool barrier) {
    Scene scene;
    AsyncOperation op;
    scene.races.issue(op, 3, Queue::thread, Proxy::generic, "cp.async", scene.races.site("kernel.cuh", 1));
    scene.races.access(op, 0, 0, 16, true);
    if (wait) scene.races.acquire(3, op);
    if (barrier) scene.block_barrier();
    scene.read(200, 8);
    return scene.silent();
  };
  CHECK(run(true, true));
  CHECK_FALSE(run(false, true));
  CHECK_FALSE(run(true, false));
}

TEST_CASE("a wait for an earlier group of cp.async does not cover a later one") {
  Scene scene;
  AsyncOperation first, second;
  const auto site = scene.races.site("kernel.cuh", 1);
  scene.races.issue(first, 0, Queue::thread, Proxy::generic, "cp.async", site);
  scene.races.issue(second, 0, Queue::thread, Proxy::generic, "cp.async", site);
  scene.races.access(first, 0, 0, 16, true);
  scene.races.access(second, 0, 16, 16, true);
  scene.races.acquire(0, first);
  scene.read(0, 0);
  CHECK(scene.silent());
  scene.read(0, 16);
  REQUIRE(scene.reports.size() == 1);
  CHECK_THAT(scene.reports[0], ContainsSubstring("cp.async (a write) issued by block 0 warp 0 lane 0"));
}

TEST_CASE("a completion on a barrier tells of the operation, not of what its issuer did besides") {
  Scene scene;
  SyncObject full;
  AsyncOperation load = scene.tma(0);
  scene.write(0, 512);
  scene.races.access(load, 0, 0, 64, true);
  scene.races.complete(load, full);
  scene.races.acquire(40, full);
  scene.read(40, 0, 64);
  CHECK(scene.silent());
  scene.read(40, 512);
  CHECK_FALSE(scene.silent());
}

TEST_CASE("an asynchronous operation knows nothing that its issuer does later") {
  Scene scene;
  AsyncOperation store = scene.tma(0);
  scene.write(0, 0);
  scene.races.fence_proxy_async(0);
  scene.races.access(store, 0, 0, 16, false);
  CHECK_FALSE(scene.silent());
}

TEST_CASE("the issuer of a store is known after many others, and what is overwritten called so") {
  Scene scene;
  scene.write(5, 0);
  scene.races.fence_proxy_async(5);
  scene.block_barrier();
  AsyncOperation store = scene.tma(5);
  scene.races.remember_epochs(store);
  for (int i = 0; i < 200; ++i) scene.tma(64);
  scene.block_barrier();
  scene.write(70, 0);  // of the next tile
  scene.races.access(store, 0, 0, 2, /*write=*/false);
  REQUIRE(scene.reports.size() == 1);
  CHECK_THAT(scene.reports[0], ContainsSubstring(": overwritten while it may still be read: "));
  CHECK_THAT(scene.reports[0], ContainsSubstring("TMA (a read) issued by block 0 warp 0 lane 5 at"));
}

TEST_CASE("a write that came before the issue is not called one of the next tile, whatever is known since") {
  Scene scene;
  scene.write(5, 0);
  scene.races.fence_proxy_async(5);
  AsyncOperation store = scene.tma(4);
  scene.races.remember_epochs(store);
  scene.block_barrier();
  scene.races.access(store, 0, 0, 2, /*write=*/false);
  REQUIRE(scene.reports.size() == 1);
  CHECK_THAT(scene.reports[0], ContainsSubstring(": may be read before it is written: "));
}

TEST_CASE("a slot must not be filled again before its readers have released it") {
  const auto run = [](bool release) {
    Scene scene;
    SyncObject full, empty;
    AsyncOperation load = scene.tma(0);
    scene.races.access(load, 0, 0, 64, true);
    scene.races.complete(load, full);
    for (unsigned t = 128; t < 256; ++t) {
      scene.races.acquire(t, full);
      scene.read(t, t % 64);
      scene.races.fence_proxy_async(t);
      if (release || t != 200) scene.races.release(t, empty);
    }
    scene.races.acquire(0, empty);
    AsyncOperation again = scene.tma(0);
    scene.races.access(again, 0, 0, 64, true);
    return scene.silent();
  };
  CHECK(run(true));
  CHECK_FALSE(run(false));
}

TEST_CASE(
    "an ordinary read needs fence.proxy.async by anybody on the way to who overwrites it by the async "
    "proxy") {
  enum class Fence { none, by_reader, by_writer, before_the_read, by_stranger };
  const auto run = [](Fence fence) {
    Scene scene;
    SyncObject full, empty;
    const AsyncOperation first = scene.tma(3);
    scene.races.access(first, 0, 0, 64, true);
    scene.races.complete(first, full);
    scene.races.acquire(0, full);
    if (fence == Fence::before_the_read) scene.races.fence_proxy_async(0);
    scene.read(0, 0, 64);
    if (fence == Fence::by_reader) scene.races.fence_proxy_async(0);
    if (fence == Fence::by_stranger) scene.races.fence_proxy_async(2);
    scene.races.release(0, empty);
    scene.races.acquire(3, empty);
    if (fence == Fence::by_writer) scene.races.fence_proxy_async(3);
    const AsyncOperation second = scene.tma(3);
    scene.races.access(second, 0, 0, 64, true);
    if (!scene.silent())
      CHECK_THAT(scene.reports[0], ContainsSubstring("the async proxy may overwrite what an ordinary read"));
    return scene.silent();
  };
  CHECK(run(Fence::by_reader));
  CHECK(run(Fence::by_writer));
  CHECK_FALSE(run(Fence::none));
  CHECK_FALSE(run(Fence::before_the_read));
  CHECK_FALSE(run(Fence::by_stranger));
}

TEST_CASE("what wgmma has read needs no fence.proxy.async before TMA overwrites it") {
  Scene scene;
  SyncObject full, empty;
  const AsyncOperation first = scene.tma(3);
  scene.races.access(first, 0, 0, 64, true);
  scene.races.complete(first, full);
  for (unsigned t = 128; t < 256; ++t) scene.races.acquire(t, full);
  AsyncOperation product = scene.wgmma();
  scene.races.access(product, 0, 0, 64, false);
  for (unsigned t = 128; t < 256; ++t) scene.races.acquire(t, product);
  scene.races.release(128, empty);
  scene.races.acquire(3, empty);
  const AsyncOperation second = scene.tma(3);
  scene.races.access(second, 0, 0, 64, true);
  CHECK(scene.silent());
}

TEST_CASE("an ordinary write needs fence.proxy.async by anybody on the way to the async proxy") {
  enum class Fence { none, by_writer, by_reader, by_go_between, by_writer_too_late, by_stranger };
  const auto run = [](Fence fence) {
    Scene scene;
    SyncObject to_middle, to_reader;
    scene.write(0, 0, 64);
    if (fence == Fence::by_writer) scene.races.fence_proxy_async(0);
    scene.races.release(0, to_middle);
    if (fence == Fence::by_writer_too_late) scene.races.fence_proxy_async(0);
    scene.races.acquire(1, to_middle);
    if (fence == Fence::by_go_between) scene.races.fence_proxy_async(1);
    if (fence == Fence::by_stranger) scene.races.fence_proxy_async(2);
    scene.races.release(1, to_reader);
    scene.races.acquire(3, to_reader);
    if (fence == Fence::by_reader) scene.races.fence_proxy_async(3);
    AsyncOperation store = scene.tma(3);
    scene.races.access(store, 0, 0, 64, false);
    if (!scene.silent()) CHECK_THAT(scene.reports[0], ContainsSubstring("fence.proxy.async"));
    return scene.silent();
  };
  CHECK(run(Fence::by_writer));
  CHECK(run(Fence::by_go_between));
  CHECK(run(Fence::by_reader));
  CHECK_FALSE(run(Fence::none));
  CHECK_FALSE(run(Fence::by_writer_too_late));
  CHECK_FALSE(run(Fence::by_stranger));
}

TEST_CASE("the issuer's own writes need the fence, too") {
  Scene scene;
  scene.write(0, 0);
  const AsyncOperation store = scene.tma(0);
  scene.races.access(store, 0, 0, 2, false);
  CHECK_FALSE(scene.silent());
}

TEST_CASE("an ordinary write after an asynchronous read needs no fence, only the wait") {
  const auto run = [](bool wait) {
    Scene scene;
    const AsyncOperation store = scene.tma(0);
    scene.races.access(store, 0, 0, 64, false);
    if (wait) scene.races.acquire(0, store);
    scene.write(0, 0);
    return scene.silent();
  };
  CHECK(run(true));
  CHECK_FALSE(run(false));
}

TEST_CASE("what TMA wrote needs no fence before wgmma") {
  Scene scene;
  SyncObject full;
  const AsyncOperation load = scene.tma(0);
  scene.races.access(load, 0, 0, 64, true);
  scene.races.complete(load, full);
  for (unsigned t = 128; t < 256; ++t) scene.races.acquire(t, full);
  scene.races.access(scene.wgmma(), 0, 0, 64, false);
  CHECK(scene.silent());
}

TEST_CASE("wgmma may rely on nothing but what all 128 threads know") {
  for (const unsigned ignorant : {0u, 128u, 129u, 160u, 255u}) {  // 0: all of them know
    CAPTURE(ignorant);
    Scene scene;
    SyncObject full;
    scene.write(0, 0, 64);
    scene.races.fence_proxy_async(0);
    scene.races.release(0, full);
    for (unsigned t = 128; t < 256; ++t) {
      if (t != ignorant) scene.races.acquire(t, full);
    }
    scene.races.access(scene.wgmma(), 0, 0, 64, false);
    CHECK(scene.silent() == (ignorant == 0));
  }
}

TEST_CASE("wgmma needs all threads of its warpgroup to know of each other's writes") {
  const auto run = [](bool barrier) {
    Scene scene;
    for (unsigned t = 128; t < 256; ++t) {
      scene.write(t, 2 * t);
      scene.races.fence_proxy_async(t);
    }
    if (barrier) scene.races.barrier_range(128, 128);
    scene.races.access(scene.wgmma(), 0, 256, 256, false);
    return scene.silent();
  };
  CHECK(run(true));
  CHECK_FALSE(run(false));
}

TEST_CASE("wgmma on what one of its own threads wrote needs all others to know of it") {
  for (const unsigned writer : {128u, 129u, 200u, 255u}) {
    for (const unsigned knowing : {127u, 126u, 1u}) {  // of the 127 others, in the order of their numbers
      CAPTURE(writer, knowing);
      Scene scene;
      SyncObject sync;
      scene.write(writer, 0, 64);
      scene.races.fence_proxy_async(writer);
      scene.races.release(writer, sync);
      unsigned told = 0;
      for (unsigned t = 128; t < 256; ++t) {
        if (t != writer && told++ < knowing) scene.races.acquire(t, sync);
      }
      scene.races.access(scene.wgmma(), 0, 0, 64, false);
      CHECK(scene.silent() == (knowing == 127));
    }
  }
}

TEST_CASE("a warpgroup whose warps fence after the barrier one by one is accepted") {
  Scene scene;
  scene.write(0, 0, 64);
  scene.block_barrier();
  for (unsigned t = 128; t < 256; ++t) scene.races.fence_proxy_async(t);
  for (unsigned warp = 4; warp < 8; ++warp) scene.races.barrier_range(warp * 32, 32);
  scene.races.access(scene.wgmma(), 0, 0, 64, false);
  CHECK(scene.silent());
}

TEST_CASE("the completion of wgmma, seen by one warp, covers the reads of all four") {
  const auto run = [](bool wait) {
    Scene scene;
    SyncObject empty;
    const AsyncOperation mma = scene.wgmma();
    scene.races.access(mma, 0, 0, 64, false);
    if (wait) scene.races.acquire(128, mma);
    scene.races.release(128, empty);
    scene.races.acquire(0, empty);
    const AsyncOperation load = scene.tma(0);
    scene.races.access(load, 0, 0, 64, true);
    return scene.silent();
  };
  CHECK(run(true));
  CHECK_FALSE(run(false));
}

TEST_CASE("clocks and operations may outlive the checker") {
  SyncObject sync;
  AsyncOperation op;
  {
    Scene scene;
    scene.races.release(0, sync);
    scene.races.issue(op, 1, Queue::none, Proxy::async, "TMA", 0);
    scene.races.fence_proxy_async(0);
    scene.races.release(0, sync);
    scene.block_barrier();
    scene.races.release(0, sync);
  }
  sync.clear();
  CHECK(op.started());
}

// --- kernels -------------------------------------------------------------------------------------------

namespace {

constexpr int kThreads = 256;

struct Exchange {
  int values[kThreads], more[kThreads];
  ptx::Mbarrier full;
};

/// Every thread writes a value and reads its neighbour's; `kBarrier` says with what in between.
enum class Between { nothing, syncthreads, syncwarp, shuffle };

template <Between kBetween>
__global__ void exchange(int* out, int rounds) {
  auto& smem = ladder::shared_storage<Exchange>();
  const int t = static_cast<int>(threadIdx.x);
  int sum = 0;
  for (int i = 0; i < rounds; ++i) {
    if (i) __syncthreads();
    smem.values[t] = t + i;  // the store
    if (kBetween == Between::syncthreads) __syncthreads();
    if (kBetween == Between::syncwarp) __syncwarp();
    if (kBetween == Between::shuffle) sum += __shfl_sync(0xffffffff, 0, 0);
    sum += smem.values[(t & ~31) + (t + 1) % 32];  // the load
  }
  out[t] = sum;
}

/// Every second round a slot is overwritten; without the second barrier others may still read it.
template <bool kSecondBarrier>
__global__ void turns(int* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  const int t = static_cast<int>(threadIdx.x);
  int sum = 0;
  for (int i = 0; i < 4; ++i) {
    smem.values[t] = t + i;  // overwrites
    __syncthreads();
    sum += smem.values[kThreads - 1 - t];  // still reads
    if (kSecondBarrier) __syncthreads();
  }
  out[t] = sum;
}

/// The same, where one line stores for two callers.
__global__ void turns_with_a_helper(int* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  const int t = static_cast<int>(threadIdx.x);
  const auto store = [&](int i) { smem.values[t] = t + i; };
  int sum = 0;
  store(0);
  for (int i = 1; i < 3; ++i) {
    __syncthreads();
    sum += smem.values[t] + smem.values[kThreads - 1 - t];
    store(i);
  }
  out[t] = sum;
}

__device__ inline void copy_word(float* to, const float* from) {
  __pipeline_memcpy_async(to, from, 4);  // copies
}

__global__ void reads_a_copy_in_flight(const float* from, float* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  float* const to = reinterpret_cast<float*>(&smem.values[threadIdx.x]);
  copy_word(to, &from[threadIdx.x]);  // asks for the copy
  __pipeline_commit();
  out[threadIdx.x] = *to;
  __pipeline_wait_prior(0);
}

__global__ void leaves_a_copy_in_flight(const float* from) {
  auto& smem = ladder::shared_storage<Exchange>();
  auto pipe = cuda::make_pipeline();
  const auto copy = [&](float* to) {
    pipe.producer_acquire();
    cuda::memcpy_async(to, &from[threadIdx.x], cuda::aligned_size_t<4>(4), pipe);  // leaves it
    pipe.producer_commit();
  };
  copy(reinterpret_cast<float*>(&smem.values[threadIdx.x]));
}

__global__ void all_write_one(int* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  smem.values[0] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = smem.values[0];
}

/// The text of the failure; empty if the kernel is right.
template <class... Params, class... Args>
std::string failure_of(const cpu_device::Schedule& schedule, unsigned threads, size_t shared_bytes,
                       void (*kernel)(Params...), Args... args) {
  cpu_device::Options options;
  options.schedule = schedule;
  options.check_races = true;
  cpu_device::set_options(options);
  try {
    ladder::launch(kernel, {"test kernel", dim3(2), dim3(threads), shared_bytes}, args...);
  } catch (const cpu_device::Failure& failure) {
    return failure.what();
  }
  return "";
}

/// The same for kernels that use Exchange.
template <class... Params, class... Args>
std::string failure_of(const cpu_device::Schedule& schedule, void (*kernel)(Params...), Args... args) {
  return failure_of(schedule, kThreads, sizeof(Exchange), kernel, args...);
}

std::vector<cpu_device::Schedule> fixed_and_random_schedules() {
  std::vector<cpu_device::Schedule> schedules = cpu_device::fixed_schedules();
  for (uint64_t seed = 1; seed <= 100; ++seed) schedules.push_back(cpu_device::Schedule::random(seed));
  return schedules;
}

/// "test_races.cu:<line of this file that ends with the comment `mark`>".
std::string place_of(const std::string& mark) {
  std::ifstream source(__FILE__);
  std::string line;
  for (int number = 1; std::getline(source, line); ++number) {
    const std::string comment = "// " + mark;
    if (line.size() > comment.size() && line.substr(line.size() - comment.size()) == comment) {
      return "test_races.cu:" + std::to_string(number);
    }
  }
  return "no line is marked with: " + mark;
}

// --- a kernel with wgmma -------------------------------------------------------------------------------

struct WgmmaOperands {
  alignas(1024) uint16_t a[64 * 64];
  alignas(1024) uint16_t b[64 * 64];
  ptx::Mbarrier met;
};

/// Who executes fence.proxy.async between the stores and the wgmma that reads them.
enum class Fence { none, before_barrier, after_barrier };

/// @param kWait for the product, in the round that issues it
/// @param kLeftInFlight how many groups the wait of the next round, behind its barrier, leaves
template <Fence kFence, bool kWait, int kLeftInFlight = -1>
__global__ void multiply_zeros(float* out) {
  auto& smem = ladder::shared_storage<WgmmaOperands>();
  const int t = static_cast<int>(threadIdx.x);
  float d[32] = {};
  // The threads meet at an mbarrier, too, which has no part in what follows.
  if (t == 0) ptx::mbarrier_init(&smem.met, 128);
  __syncthreads();
  ptx::mbarrier_arrive(&smem.met);
  ptx::mbarrier_wait(&smem.met, 0);
  for (int round = 0; round < 2; ++round) {
    for (int i = t; i < 64 * 64; i += 128) smem.a[i] = smem.b[i] = 0;  // fills the operands
    if (kFence == Fence::before_barrier) ptx::fence_proxy_async();
    __syncthreads();
    if (kFence == Fence::after_barrier) ptx::fence_proxy_async();
    ptx::wgmma_fence();
    const uint64_t a = ptx::matrix_descriptor(smem.a, 16, 1024);
    const uint64_t b = ptx::matrix_descriptor(smem.b, 8192, 1024);
    ptx::wgmma_m64n64k16<true>(d, a, b, true);  // multiplies
    ptx::wgmma_commit_group();
    if (kWait) ptx::wgmma_wait_group<0>();
    __syncthreads();
    if constexpr (kLeftInFlight >= 0) {
      ptx::wgmma_wait_group<kLeftInFlight>();  // behind the barrier
      __syncwarp();                            // no lane writes before all have waited
    }
  }
  ptx::wgmma_wait_group<0>();
  ptx::keep_in_registers(d);
  out[t] = d[0];
}

}  // namespace

TEST_CASE("a missing __syncthreads is reported with the lines of both sides on every schedule") {
  PinnedVector<int> out(kThreads);
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    const std::string report = failure_of(schedule, exchange<Between::nothing>, out.data(), 1);
    CHECK_THAT(report, ContainsSubstring("race in shared memory of block 0"));
    CHECK_THAT(report, ContainsSubstring("read before it "));
    CHECK_THAT(report, ContainsSubstring("store by"));
    CHECK_THAT(report, ContainsSubstring("load by"));
    CHECK_THAT(report, ContainsSubstring(place_of("the store") + " in exchange"));
    CHECK_THAT(report, ContainsSubstring(place_of("the load")));
  }
}

TEST_CASE("with __syncthreads or __syncwarp the exchange is silent on all schedules and seeds") {
  PinnedVector<int> out(kThreads);
  for (const cpu_device::Schedule& schedule : fixed_and_random_schedules()) {
    CAPTURE(schedule.name());
    CHECK(failure_of(schedule, exchange<Between::syncthreads>, out.data(), 3) == "");
    CHECK(failure_of(schedule, exchange<Between::syncwarp>, out.data(), 3) == "");
  }
}

TEST_CASE("a shuffle orders nothing") {
  PinnedVector<int> out(kThreads);
  CHECK_FALSE(failure_of({}, exchange<Between::shuffle>, out.data(), 1).empty());
}

TEST_CASE("a slot overwritten while it is still read is reported, and its right twin is not") {
  PinnedVector<int> out(kThreads);
  for (const cpu_device::Schedule& schedule : fixed_and_random_schedules()) {
    CAPTURE(schedule.name());
    const std::string report = failure_of(schedule, turns<false>, out.data());
    CHECK_THAT(report, ContainsSubstring("overwritten before it was read, by the write of a later round"));
    CHECK_THAT(report, ContainsSubstring(place_of("overwrites")));
    CHECK_THAT(report, ContainsSubstring(place_of("still reads")));
    CHECK_THAT(report, ContainsSubstring("the last __syncthreads of both (test_races.cu:"));
    CHECK(failure_of(schedule, turns<true>, out.data()) == "");
  }
}

TEST_CASE("a line that stores for two callers is known as one when it overwrites too early") {
  PinnedVector<int> out(kThreads);
  for (const cpu_device::Schedule& schedule : fixed_and_random_schedules()) {
    CAPTURE(schedule.name());
    CHECK_THAT(failure_of(schedule, turns_with_a_helper, out.data()),
               ContainsSubstring("overwritten before it was read, by the write of a later round"));
  }
}

TEST_CASE("a report of a copy names those who called for it") {
  PinnedVector<float> from(kThreads), out(kThreads);
  CHECK_THAT(failure_of({}, reads_a_copy_in_flight, from.data(), out.data()),
             ContainsSubstring(place_of("copies") + " in copy_word, called from observe/" +
                               place_of("asks for the copy")));
  const std::string report = failure_of({}, leaves_a_copy_in_flight, from.data());
  CHECK_THAT(report, ContainsSubstring(place_of("leaves it")));
#ifndef __clang__  // whose lines of a lambda that it inlines name no caller
  CHECK_THAT(report, ContainsSubstring(" in a lambda, called from observe/test_races.cu:"));
#endif
}

namespace {

struct ThreeSlots {
  float slots[3][kThreads];
};

/// Each wait leaves the newest copy in flight, although it is read.
__global__ void waits_for_too_few_copies(const float* from, float* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  copy_word(reinterpret_cast<float*>(&smem.values[threadIdx.x]), &from[threadIdx.x]);
  __pipeline_commit();
  __pipeline_wait_prior(1);
  __syncthreads();  // meet in vain
  out[threadIdx.x] = static_cast<float>(smem.values[kThreads - 1 - threadIdx.x]);
  __pipeline_wait_prior(0);
}

/// A ring of three slots. Each step fills the slot that the step before has read, or the slot that the next
/// step reads.
template <bool kFillsTheNext>
__global__ void fills_a_ring(const float* from, float* out) {
  auto& smem = ladder::shared_storage<ThreeSlots>();
  const unsigned t = threadIdx.x;
  for (int step = 0; step < 2; ++step) {
    copy_word(&smem.slots[step][t], &from[t]);
    __pipeline_commit();
  }
  for (int step = 0; step < 6; ++step) {
    __pipeline_wait_prior(1);
    __syncthreads();                                                            // meet in each step
    copy_word(&smem.slots[(step + (kFillsTheNext ? 1 : 2)) % 3][t], &from[t]);  // fills a slot
    __pipeline_commit();
    out[t] = smem.slots[step % 3][kThreads - 1 - t];  // reads the ring
  }
  __pipeline_wait_prior(0);
}

/// The same ring, of which the reader takes two slots alone.
__global__ void reads_two_slots_of_three(const float* from, float* out) {
  auto& smem = ladder::shared_storage<ThreeSlots>();
  const unsigned t = threadIdx.x;
  for (int step = 0; step < 2; ++step) {
    copy_word(&smem.slots[step][t], &from[t]);
    __pipeline_commit();
  }
  for (int step = 0; step < 6; ++step) {
    __pipeline_wait_prior(1);
    __syncthreads();
    copy_word(&smem.slots[(step + 2) % 3][t], &from[t]);
    __pipeline_commit();
    out[t] = smem.slots[step % 2][kThreads - 1 - t];
  }
  __pipeline_wait_prior(0);
}

/// bf16 is passed to a function where it is read.
__global__ void reads_bf16_too_early(float* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  auto* const values = reinterpret_cast<__nv_bfloat16*>(smem.values);
  const unsigned t = threadIdx.x;
  float sum = 0;
  for (int round = 0; round < 2; ++round) {
    values[t] = __float2bfloat16(1);
#pragma unroll
    for (int i = 1; i < 4; ++i)
      sum += __bfloat162float(values[(t + i) % kThreads]) *  // reads bf16
             __bfloat162float(values[(t + i) % kThreads]);   // reads it again
    __syncthreads();
  }
  out[t] = sum;
}

/// The copy is committed in the right order, or behind the barrier.
template <bool kCommitsFirst>
__global__ void commits_a_copy(const float* from, float* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  copy_word(reinterpret_cast<float*>(&smem.values[threadIdx.x]), &from[threadIdx.x]);
  if (kCommitsFirst) __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();                          // comes before the commit
  if (!kCommitsFirst) __pipeline_commit();  // commits late
  out[threadIdx.x] = static_cast<float>(smem.values[kThreads - 1 - threadIdx.x]);
  __pipeline_wait_prior(0);
}

template <bool kLeavesOpen>
__global__ void leaves_copies_open(const float* from, float* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  copy_word(reinterpret_cast<float*>(&smem.values[threadIdx.x]), &from[threadIdx.x]);
  __pipeline_commit();
  copy_word(reinterpret_cast<float*>(&smem.more[threadIdx.x]), &from[threadIdx.x]);
  if (!kLeavesOpen) __pipeline_commit();
  __pipeline_wait_prior(1);  // counts groups
  __syncthreads();
  out[threadIdx.x] = static_cast<float>(smem.values[kThreads - 1 - threadIdx.x]);
  __pipeline_wait_prior(0);
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

__global__ void initialises_twice(int* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  if (threadIdx.x % kThreads == 0 || threadIdx.x == 32) ptx::mbarrier_init(&smem.full, 1);
  out[threadIdx.x] = 0;
}

__global__ void copies_twice_to_one_place(const float* from) {
  auto& smem = ladder::shared_storage<Exchange>();
  float* const to = reinterpret_cast<float*>(&smem.values[threadIdx.x]);
  copy_word(to, &from[threadIdx.x]);  // first time
  __pipeline_commit();
  __syncthreads();
  copy_word(to, &from[kThreads - 1 - threadIdx.x]);  // second time
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

__global__ void copies_to_a_slot_in_flight(const float* from) {
  auto& smem = ladder::shared_storage<Exchange>();
  copy_word(reinterpret_cast<float*>(&smem.values[threadIdx.x]), &from[threadIdx.x]);
  __pipeline_commit();
  __pipeline_wait_prior(1);  // leaves the first out
  copy_word(reinterpret_cast<float*>(&smem.values[threadIdx.x]), &from[threadIdx.x]);
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

__global__ void waits_for_all_but_its_copy(const float* from, float* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  copy_word(reinterpret_cast<float*>(&smem.values[threadIdx.x]), &from[threadIdx.x]);
  __pipeline_commit();
  __pipeline_wait_prior(1);  // leaves its copy out
  out[threadIdx.x] = reinterpret_cast<float&>(smem.values[threadIdx.x]);
  __pipeline_wait_prior(0);
}

/// Each thread reads back what it has copied, and fills its place again before that, or behind it.
template <bool kReadsFirst>
__global__ void refills_what_it_reads(const float* from, float* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  float* const to = reinterpret_cast<float*>(&smem.values[threadIdx.x]);
  copy_word(to, &from[threadIdx.x]);
  __pipeline_commit();
  __pipeline_wait_prior(0);  // covers the first copy
  if (kReadsFirst) out[threadIdx.x] = *to;
  copy_word(to, &from[threadIdx.x]);
  __pipeline_commit();
  if (!kReadsFirst) out[threadIdx.x] = *to;
  __pipeline_commit();
  __pipeline_wait_prior(2);
  __pipeline_commit();
  __pipeline_wait_prior(2);
  __pipeline_wait_prior(0);
}

struct Handed {
  int value;
  ptx::Mbarrier filled, taken, begun;
};
/// Initialises the barriers.
__device__ Handed& begin_to_hand() {
  auto& smem = ladder::shared_storage<Handed>();
  if (threadIdx.x == 0)
    for (ptx::Mbarrier* barrier : {&smem.filled, &smem.taken, &smem.begun}) ptx::mbarrier_init(barrier, 1);
  __syncthreads();
  return smem;
}
/// Thread 0 hands values to thread 32, which gives nothing back before it has the second.
__global__ void never_flips(int* out) {
  Handed& smem = begin_to_hand();
  for (uint32_t round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) {
      if (round > 0) ptx::mbarrier_wait(&smem.begun, 0);
      ptx::mbarrier_wait(&smem.taken, 1);  // never flips
      smem.value = static_cast<int>(round);
      ptx::mbarrier_arrive(&smem.filled);
    } else if (threadIdx.x == 32) {
      ptx::mbarrier_wait(&smem.filled, round);
      if (round == 0) ptx::mbarrier_arrive(&smem.begun);
      out[round] = smem.value;
    }
  }
}

/// Thread 32 gives back the first value only, and thread 0 waits for that twice.
__global__ void flips_once(int* out) {
  Handed& smem = begin_to_hand();
  for (uint32_t round = 0; round < 3; ++round) {
    if (threadIdx.x == 0) {
      if (round == 2) ptx::mbarrier_wait(&smem.begun, 0);
      ptx::mbarrier_wait(&smem.taken, round == 0);  // flips once
      smem.value = static_cast<int>(round);
      ptx::mbarrier_arrive(&smem.filled);
    } else if (threadIdx.x == 32) {
      ptx::mbarrier_wait(&smem.filled, round % 2);
      if (round == 1) ptx::mbarrier_arrive(&smem.begun);
      out[round] = smem.value;
      if (round == 0) ptx::mbarrier_arrive(&smem.taken);
    }
  }
}

/// Only half of the block comes to the barrier before it reads.
__global__ void meets_by_halves(int* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  smem.values[threadIdx.x] = 1;
  if (threadIdx.x < kThreads / 2) __syncthreads();  // half of them
  out[threadIdx.x] = smem.values[kThreads - 1 - threadIdx.x];
}

/// One thread comes to the barrier before it reads, and the others of its warp do not.
__global__ void meets_alone(int* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  smem.values[threadIdx.x] = 1;
  if (threadIdx.x == 0) __syncthreads();  // one of them
  out[threadIdx.x] = smem.values[threadIdx.x ^ 1];
}

/// Two threads of two warps for each element.
__global__ void stores_twice(int* out) {
  auto& smem = ladder::shared_storage<Exchange>();
  smem.values[threadIdx.x % (kThreads / 2)] = 1;
  __syncthreads();
  out[threadIdx.x] = smem.values[threadIdx.x];
}

struct Box {
  int values[kThreads];
  ptx::Mbarrier full;
};
/// A line that names a barrier need not access that.
__global__ void stores_beside_a_barrier(int* out) {
  auto& smem = ladder::shared_storage<Box>();
  auto& box = smem.values;
  const auto store = [](int& to, ptx::Mbarrier* count) {
    to = static_cast<int>(threadIdx.x);
    if (threadIdx.x == kThreads) ptx::mbarrier_arrive(count);
  };
  if (threadIdx.x == 0) ptx::mbarrier_init(&smem.full, 1);
  __syncthreads();
  store(box[threadIdx.x], &smem.full);
  out[threadIdx.x] = box[kThreads - 1 - threadIdx.x];
}

}  // namespace

TEST_CASE("a wait that leaves the copy in flight is told from threads that have not met") {
  PinnedVector<float> from(kThreads), out(kThreads);
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    const std::string report = failure_of(schedule, waits_for_too_few_copies, from.data(), out.data());
    CHECK_THAT(
        report,
        ContainsSubstring(
            "the last __syncthreads of both (" + place_of("meet in vain") +
            ") comes after the cp.async is issued, but no wait had covered that by then: the wait at "));
    CHECK_THAT(report, !ContainsSubstring("have not met"));
  }
}

TEST_CASE("a copy into the slot that is read next is told from one that nobody waited for") {
  PinnedVector<float> from(kThreads), out(kThreads);
  const auto run = [&](const cpu_device::Schedule& schedule, auto kernel) {
    return failure_of(schedule, kThreads, sizeof(ThreeSlots), kernel, from.data(), out.data());
  };
  int told = 0;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    CHECK(run(schedule, fills_a_ring<false>) == "");
    const std::string report = run(schedule, fills_a_ring<true>);
    CAPTURE(report);
    CHECK_THAT(report, ContainsSubstring("race in shared memory of block 0 at smem.slots[1]["));
    CHECK_THAT(report, !ContainsSubstring("comes before both"));
    told += report.find("the cp.async is issued before the __syncthreads of both (" +
                        place_of("meet in each step") +
                        "), and the load that still wants what was there comes after it: should it fill "
                        "another slot?\n") != report.npos;
  }
  CHECK(told > 0);
}

TEST_CASE("a reader of the wrong slot is asked for another, and no right wait is blamed") {
  PinnedVector<float> from(kThreads), out(kThreads);
  int asked = 0;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    const std::string report =
        failure_of(schedule, kThreads, sizeof(ThreeSlots), reads_two_slots_of_three, from.data(), out.data());
    CAPTURE(report);
    CHECK(report.find("race in shared memory") != report.npos);
    CHECK_THAT(report, !ContainsSubstring("leaves out the newest"));
    asked += report.find(
                 "smem.slots[2], whose copies have landed, is read by nobody: should the load read "
                 "another slot?\n") != report.npos;
  }
  CHECK(asked > 0);
}

TEST_CASE("a read of bf16 is named with its own line") {
  PinnedVector<float> out(kThreads);
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules())
    CHECK_THAT(failure_of(schedule, reads_bf16_too_early, out.data()),
               ContainsSubstring(place_of("reads bf16") + " reads (load)") ||
                   ContainsSubstring(place_of("reads it again") + " reads (load)"));
}

namespace {

[[gnu::noinline]] const void* who_calls() { return __builtin_return_address(0); }

[[gnu::noinline]] std::string describes_itself() {
  return cpu_device::describe_call_site(reinterpret_cast<uintptr_t>(who_calls()));
}

}  // namespace

TEST_CASE("a function that returns a string is named without the tag of its ABI") {
  CHECK_THAT(describes_itself(), ContainsSubstring(" in describes_itself"));
  CHECK_THAT(describes_itself(), !ContainsSubstring("cxx11"));
}

TEST_CASE("copies that no commit has closed where a wait counts groups are named") {
  PinnedVector<float> from(kThreads), out(kThreads);
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    CHECK(failure_of(schedule, leaves_copies_open<false>, from.data(), out.data()) == "");
    CHECK_THAT(
        failure_of(schedule, leaves_copies_open<true>, from.data(), out.data()),
        ContainsSubstring(": the wait at " + place_of("counts groups") +
                          " leaves out the newest 1 groups, and the last cp.async before it are in none: "
                          "commit in each round\n"));
  }
}

TEST_CASE("a barrier that two threads initialise needs no order, but one thread") {
  PinnedVector<int> out(kThreads);
  CHECK_THAT(failure_of({}, initialises_twice, out.data()),
             ContainsSubstring(": one thread alone must initialise a barrier\n"));
}

TEST_CASE("a copy that is committed behind the __syncthreads is called so") {
  PinnedVector<float> from(kThreads), out(kThreads);
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    CHECK(failure_of(schedule, commits_a_copy<true>, from.data(), out.data()) == "");
    CHECK_THAT(failure_of(schedule, commits_a_copy<false>, from.data(), out.data()),
               ContainsSubstring("no commit comes between the cp.async and the next __syncthreads (" +
                                 place_of("comes before the commit") + ")"));
  }
  CHECK_THAT(failure_of({}, commits_a_copy<false>, from.data(), out.data()),
             ContainsSubstring("; the one at " + place_of("commits late") + " closes its group after that"));
}

TEST_CASE("two copies of a thread to one place are told apart by those who call for them") {
  PinnedVector<float> from(kThreads);
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    const std::string report = failure_of(schedule, copies_twice_to_one_place, from.data());
    for (const char* const call : {"first time", "second time"})
      CHECK_THAT(report,
                 ContainsSubstring(place_of("copies") + ", called from " + place_of(call) + ", writes"));
    CHECK_THAT(report, ContainsSubstring(": both of block (0,0,0) warp "));
    CHECK_THAT(
        report,
        ContainsSubstring(
            "no wait of its own for the first cp.async comes between, and nobody reads there between the "
            "two: "
            "are more copies begun ahead than there are slots, is the second for another place, or must it "
            "wait for the first?"));
    CHECK_THAT(report, !ContainsSubstring("__syncthreads"));
  }
}

TEST_CASE("of two copies of a thread to one place the wait is named that leaves out the first") {
  PinnedVector<float> from(kThreads);
  CHECK_THAT(failure_of({}, copies_to_a_slot_in_flight, from.data()),
             ContainsSubstring("comes between: the wait at " + place_of("leaves the first out") +
                               " leaves out the newest group of copies\n"));
}

TEST_CASE("a wait that leaves out the copy that its thread reads next is named") {
  PinnedVector<float> from(kThreads), out(kThreads);
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules())
    CHECK_THAT(
        failure_of(schedule, waits_for_all_but_its_copy, from.data(), out.data()),
        ContainsSubstring("one thread does both, and no wait of its own covers the cp.async: the wait at " +
                          place_of("leaves its copy out") +
                          " leaves out the newest group of copies, and this is one of them\n"));
}

TEST_CASE("a copy that begins before its thread reads what was there is asked whether it begins too early") {
  PinnedVector<float> from(kThreads), out(kThreads);
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    CHECK(failure_of(schedule, refills_what_it_reads<true>, from.data(), out.data()) == "");
    const std::string report = failure_of(schedule, refills_what_it_reads<false>, from.data(), out.data());
    CHECK_THAT(report, ContainsSubstring("overwritten while it may still be read, or read before the copy"));
    CHECK_THAT(report,
               ContainsSubstring("one thread starts the cp.async and reads after that, and its last wait "
                                 "before the read (" +
                                 place_of("covers the first copy") +
                                 ") comes before both: is the cp.async started too early"));
  }
}

TEST_CASE("a wait that passes twice with the same parity is said to be the second") {
  PinnedVector<int> out(2);
  int named = 0;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    const std::string report = failure_of(schedule, 64, sizeof(Handed), never_flips, out.data());
    CAPTURE(schedule.name(), report);
    CHECK(!report.empty());
    named +=
        report.find(" with parity 1 (" + place_of("never flips") +
                    "), as it had the time before: the parity has not flipped between the two, and parity "
                    "1 passes before the first phase has ended\n") != report.npos;
  }
  CHECK(named >= 1);
}

TEST_CASE("a wait for a phase that was waited for before says that its parity has not flipped") {
  PinnedVector<int> out(3);
  int named = 0;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    const std::string report = failure_of(schedule, 64, sizeof(Handed), flips_once, out.data());
    CAPTURE(schedule.name(), report);
    CHECK(!report.empty());
    named += report.find("; its wait there before (" + place_of("flips once") +
                         ") was for the same phase: the parity, 0, has not flipped between") != report.npos;
  }
  CHECK(named >= 1);
}

TEST_CASE("where half of a block waits in a __syncthreads, a race says which half does not") {
  PinnedVector<int> out(kThreads);
  CHECK_THAT(failure_of({}, meets_by_halves, out.data()),
             ContainsSubstring("the two threads have not met in a __syncthreads: warps 0-3 wait there (" +
                               place_of("half of them") + "), and warps 4-7 have not come there yet"));
}

TEST_CASE("where one lane waits in a __syncthreads, a race counts its warp once") {
  PinnedVector<int> out(kThreads);
  CHECK_THAT(failure_of({}, meets_alone, out.data()),
             ContainsSubstring("warp 0 lane 0 waits there (" + place_of("one of them") +
                               "), and warp 0 lanes 1-31, warps 1-7 have not come there yet"));
}

TEST_CASE("where a line stores to one place twice, elements of its own for each thread are asked for") {
  PinnedVector<int> out(kThreads);
  CHECK_THAT(failure_of({}, stores_twice, out.data()),
             ContainsSubstring("the two threads have not met in a __syncthreads") &&
                 ContainsSubstring("; or should each store elements of its own?\n"));
}

TEST_CASE("a barrier that a line names is not taken for what the line accesses") {
  PinnedVector<int> out(kThreads);
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    const std::string report =
        failure_of(schedule, kThreads, sizeof(Box), stores_beside_a_barrier, out.data());
    CHECK_THAT(report, ContainsSubstring("race in shared memory of block 0 at smem.values["));
    CHECK_THAT(report, !ContainsSubstring("(smem.full)"));
  }
}

TEST_CASE("two threads that write the same address are reported") {
  PinnedVector<int> out(kThreads);
  CHECK_THAT(failure_of({}, all_write_one, out.data()), ContainsSubstring("two writes"));
}

TEST_CASE("wgmma on ordinary stores needs fence.proxy.async, before the barrier or after it") {
  PinnedVector<float> out(128);
  const auto run = [&](const cpu_device::Schedule& schedule, auto kernel) {
    return failure_of(schedule, 128, sizeof(WgmmaOperands), kernel, out.data());
  };
  const std::string report = run({}, multiply_zeros<Fence::none, true>);
  CHECK_THAT(report, ContainsSubstring("fence.proxy.async"));
  CHECK_THAT(report, ContainsSubstring(place_of("fills the operands")));
  CHECK_THAT(report, ContainsSubstring(place_of("multiplies")));
  for (const cpu_device::Schedule& schedule : fixed_and_random_schedules()) {
    CAPTURE(schedule.name());
    CHECK(run(schedule, multiply_zeros<Fence::before_barrier, true>) == "");
    CHECK(run(schedule, multiply_zeros<Fence::after_barrier, true>) == "");
  }
}

TEST_CASE("operands overwritten before wgmma_wait_group are reported on every schedule") {
  PinnedVector<float> out(128);
  int left_out = 0;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    const std::string report = failure_of(schedule, 128, sizeof(WgmmaOperands),
                                          multiply_zeros<Fence::before_barrier, false>, out.data());
    CHECK_THAT(report, ContainsSubstring("wgmma (a read) issued by the warpgroup of"));
    CHECK_THAT(report, ContainsSubstring("overwritten while it may still be read"));
    CHECK_THAT(report, ContainsSubstring(place_of("fills the operands")));
    CHECK_THAT(report,
               ContainsSubstring("comes after the wgmma is issued, but no wait for wgmma comes between"));
    // A wait that leaves the product out would not cover it in front of the barrier, either.
    const std::string left = failure_of(schedule, 128, sizeof(WgmmaOperands),
                                        multiply_zeros<Fence::before_barrier, false, 1>, out.data());
    CHECK_THAT(left, !ContainsSubstring("comes after it") && ContainsSubstring("no wait "));
    left_out +=
        left.find("no wait had covered that by then: the wait for wgmma at " +
                  place_of("behind the barrier") + " leaves out the newest group of products") != left.npos;
  }
  CHECK(left_out >= 2);
}

namespace {

struct StoredTiles {
  alignas(128) uint16_t tile[64];
  ladder::Pipeline<1> pipe, other;
};

struct TwoStoredTiles {
  alignas(128) uint16_t tiles[2][64];
  ladder::Pipeline<2> pipe;
};

struct StoredRows {
  alignas(128) uint16_t rows[2][64];
};

enum class Storer {
  right,
  is_overtaken,  ///< by warp 0, which waits once, until the new tile is empty
  takes_the_other_parity,
  takes_the_other_pipeline,
  lets_one_lane_fence,
  lets_one_lane_fence_behind_a_syncwarp,
  gives_back_too_early,
  never_commits,
  neither_waits_nor_commits
};

/// As the check of an exercise does, which counts the calls.
void wrapped_store(const CUtensorMap& map, const void* tile, CPU_DEVICE_WHERE) {
  ptx::tma_store(&map, tile, 0, 0, where);
}

/// Warp 0 fills a tile again and again, and thread 32 has TMA store it.
template <Storer kStorer>
__global__ void store_tiles(const __grid_constant__ CUtensorMap map) {
  auto& smem = ladder::shared_storage<StoredTiles>();
  if (threadIdx.x == 0) {
    smem.pipe.init(32, 1);
    smem.other.init(32, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  for (uint32_t round = 0; round < 4; ++round) {
    const uint32_t parity = round % 2;
    if (threadIdx.x < 32) {
      if (kStorer != Storer::is_overtaken || round == 0) ptx::mbarrier_wait(&smem.pipe.empty[0], parity ^ 1);
      smem.tile[2 * threadIdx.x] = smem.tile[2 * threadIdx.x + 1] = static_cast<uint16_t>(round);
      constexpr bool kIsJoined = kStorer == Storer::lets_one_lane_fence_behind_a_syncwarp;
      if (kIsJoined) __syncwarp();
      if ((!kIsJoined && kStorer != Storer::lets_one_lane_fence) || threadIdx.x == 1)
        ptx::fence_proxy_async();
      ptx::mbarrier_arrive(&smem.pipe.full[0]);
    } else if (threadIdx.x == 32) {
      if (kStorer == Storer::takes_the_other_pipeline)
        ptx::mbarrier_wait(&smem.other.full[0], 1);
      else if (kStorer != Storer::neither_waits_nor_commits)
        ptx::mbarrier_wait(&smem.pipe.full[0],
                           kStorer == Storer::takes_the_other_parity ? parity ^ 1 : parity);
      wrapped_store(map, &smem.tile);  // stores a tile
      if (kStorer != Storer::never_commits && kStorer != Storer::neither_waits_nor_commits)
        ptx::tma_store_commit();
      if (kStorer != Storer::gives_back_too_early) ptx::tma_store_wait_read<0>();
      ptx::mbarrier_arrive(&smem.pipe.empty[0]);
    }
  }
  if (threadIdx.x == 32) ptx::tma_store_wait<0>();
}

/// Warp 0 fills two tiles in turns, before or after it waits until the tile is empty. Thread 32 has TMA store
/// them, and releases the tile before once its wait leaves the newest store alone. It waits for each tile, or
/// once for both.
template <bool kAcquiresFirst, bool kWaitsForEach = true>
__global__ void store_two_tiles(const __grid_constant__ CUtensorMap map) {
  auto& smem = ladder::shared_storage<TwoStoredTiles>();
  if (threadIdx.x == 0) {
    smem.pipe.init(32, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  ladder::Producer producer(smem.pipe);
  ladder::Consumer consumer(smem.pipe);
  for (int round = 0; round < 6; ++round) {
    if (threadIdx.x < 32) {
      if (kAcquiresFirst) producer.producer_acquire();
      uint16_t* const pair = &smem.tiles[round % 2][2 * threadIdx.x];
      pair[0] = pair[1] = static_cast<uint16_t>(round);
      if (!kAcquiresFirst) producer.producer_acquire();
      ptx::fence_proxy_async();
      producer.producer_commit();
    } else if (threadIdx.x == 32) {
      if (kWaitsForEach || round % 2 == 0) consumer.consumer_wait();
      ptx::tma_store(&map, &smem.tiles[round % 2], 0, 0);
      ptx::tma_store_commit();
      ptx::tma_store_wait_read<1>();
      if (round) consumer.consumer_release();
    }
  }
  if (threadIdx.x == 32) ptx::tma_store_wait<0>();
}

/// Each warp fills a row and has TMA store it, or the first one.
template <bool kOwnRow>
__global__ void store_rows(const __grid_constant__ CUtensorMap map) {
  auto& smem = ladder::shared_storage<StoredRows>();
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  smem.rows[warp][2 * lane] = smem.rows[warp][2 * lane + 1] = 1;
  ptx::fence_proxy_async();
  __syncwarp();
  if (lane != 0) return;
  ptx::tma_store(&map, &smem.rows[kOwnRow ? warp : 0], 0, static_cast<int>(blockIdx.x * 2 + warp));
  ptx::tma_store_commit();
  ptx::tma_store_wait<0>();
}

/// Where all threads of a block fill a tile again and again, and thread 0 has TMA store it: what is left out,
/// or misplaced.
enum class Staging { nothing, wait, wait_behind_the_barrier, barrier_before_the_store };

template <Staging kWrong>
__global__ void stage_tiles(const __grid_constant__ CUtensorMap map) {
  auto& smem = ladder::shared_storage<StoredTiles>();
  const bool waits = threadIdx.x == 0 && kWrong != Staging::wait;
  for (int round = 0; round < 4; ++round) {
    if (waits && kWrong != Staging::wait_behind_the_barrier) ptx::tma_store_wait_read<0>();
    __syncthreads();  // the staged tile is free
    if (waits && kWrong == Staging::wait_behind_the_barrier) ptx::tma_store_wait_read<0>();  // waits late
    smem.tile[threadIdx.x] = static_cast<uint16_t>(round);                                   // stages
    ptx::fence_proxy_async();
    if (kWrong != Staging::barrier_before_the_store) __syncthreads();
    if (threadIdx.x == 0) {
      ptx::tma_store(&map, &smem.tile, 0, 0);
      ptx::tma_store_commit();
    }
  }
  if (threadIdx.x == 0) ptx::tma_store_wait<0>();
}

/// What one warp forgets that fills a tile again and again, of which lane 0 has TMA store each.
enum class Walk { nothing, commit, wait, syncwarp_behind_the_wait, syncwarp_before_the_store };

template <Walk kForgets>
__global__ void walk_over_tiles(const __grid_constant__ CUtensorMap map) {
  auto& smem = ladder::shared_storage<StoredTiles>();
  const unsigned lane = threadIdx.x;
  for (int round = 0; round < 4; ++round) {
    if (lane == 0 && kForgets != Walk::wait) ptx::tma_store_wait_read<0>();  // waits for the store
    if (kForgets != Walk::syncwarp_behind_the_wait) __syncwarp();
    smem.tile[2 * lane] = smem.tile[2 * lane + 1] = static_cast<uint16_t>(round);
    ptx::fence_proxy_async();
    if (kForgets != Walk::syncwarp_before_the_store) __syncwarp();
    if (lane == 0) {
      ptx::tma_store(&map, &smem.tile, 0, 0);
      if (kForgets != Walk::commit) ptx::tma_store_commit();
    }
  }
  if (lane == 0) ptx::tma_store_wait<0>();
}

struct StagedTile {
  alignas(128) uint16_t tile[256];
};

/// The same with stmatrix, which the lanes of the warp execute at once.
template <bool kForgetsSyncwarp>
__global__ void stage_tiles(const __grid_constant__ CUtensorMap map) {
  auto& smem = ladder::shared_storage<StagedTile>();
  const unsigned lane = threadIdx.x;
  for (int round = 0; round < 4; ++round) {
    if (lane == 0) ptx::tma_store_wait_read<0>();
    if (!kForgetsSyncwarp) __syncwarp();
    ptx::stmatrix_x4(&smem.tile[8 * lane], {0, 0, 0, 0});
    ptx::fence_proxy_async();
    __syncwarp();
    if (lane == 0) {
      ptx::tma_store(&map, &smem.tile, 0, 0);
      ptx::tma_store_commit();
    }
  }
  if (lane == 0) ptx::tma_store_wait<0>();
}

/// Two tiles in turns: while TMA reads one, the next store is in line.
enum class Line { right, commits_behind_the_wait, waits_for_too_few };

template <Line kLine>
__global__ void store_in_line(const __grid_constant__ CUtensorMap map) {
  auto& smem = ladder::shared_storage<StoredRows>();
  const unsigned lane = threadIdx.x;
  for (int round = 0; round < 5; ++round) {
    smem.rows[round % 2][2 * lane] = smem.rows[round % 2][2 * lane + 1] = static_cast<uint16_t>(round);
    ptx::fence_proxy_async();
    __syncwarp();
    if (lane == 0) {
      ptx::tma_store(&map, &smem.rows[round % 2], 0, 0);  // is in line
      if (kLine != Line::commits_behind_the_wait) ptx::tma_store_commit();
      ptx::tma_store_wait_read<kLine == Line::waits_for_too_few ? 2 : 1>();  // leaves one in line
      if (kLine == Line::commits_behind_the_wait) ptx::tma_store_commit();   // closes too late
    }
    __syncwarp();
  }
  if (lane == 0) ptx::tma_store_wait<0>();
}

struct LoadedTiles {
  alignas(128) uint16_t tiles[2][64];
  ladder::Pipeline<2> pipe;
};

enum class Ring { right, releases_before_it_reads, fills_one_slot_only, reads_the_other_slot };

/// Thread 32 has TMA fill two slots again and again, which thread 0 reads.
template <Ring kRing>
__global__ void load_tiles(const __grid_constant__ CUtensorMap map, int* out) {
  auto& smem = ladder::shared_storage<LoadedTiles>();
  if (threadIdx.x == 0) {
    smem.pipe.init(1, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  ladder::Producer producer(smem.pipe);
  ladder::Consumer consumer(smem.pipe);
  for (int round = 0; round < 8; ++round) {
    if (threadIdx.x == 32) {
      const int slot = producer.producer_acquire();
      ptx::Mbarrier* const full = producer.expect_bytes(sizeof smem.tiles[0]);
      ptx::tma_load(&smem.tiles[kRing == Ring::fills_one_slot_only ? 0 : slot], &map, 0, 0, full);
      producer.producer_commit_bytes();
    } else if (threadIdx.x == 0) {
      const int slot = consumer.consumer_wait();
      if (kRing == Ring::releases_before_it_reads) consumer.consumer_release();
      const int read = kRing == Ring::fills_one_slot_only    ? 0
                       : kRing == Ring::reads_the_other_slot ? 1 - slot
                                                             : slot;
      out[0] += smem.tiles[read][0];
      ptx::fence_proxy_async();
      if (kRing != Ring::releases_before_it_reads) consumer.consumer_release();
    }
  }
}

/// Warps 0 and 1 fill a tile each, and lane 0 arrives for its warp, without a __syncwarp. Warp 1 has arrived
/// elsewhere before.
__global__ void arrive_for_others(int* out) {
  auto& smem = ladder::shared_storage<LoadedTiles>();
  if (threadIdx.x == 0) smem.pipe.init(2, 100);
  __syncthreads();
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp < 2) {
    for (int i = 0; warp == 1 && i < 9; ++i) ptx::mbarrier_arrive(&smem.pipe.empty[1]);
    smem.tiles[warp][lane] = 1;
    if (lane == 0) ptx::mbarrier_arrive(&smem.pipe.full[0]);
  } else {
    ptx::mbarrier_wait(&smem.pipe.full[0], 0);
    out[lane] = smem.tiles[lane % 2][lane];
  }
}

struct TwoRings {
  alignas(128) uint16_t a[2][64];
  alignas(128) uint16_t b[64];
  ladder::Pipeline<2> pipe_a;
  ladder::Pipeline<1> pipe_b;
};

/// Thread 32 has TMA fill a slot of one ring and some of another in each round, and thread 0 reads both.
template <bool kWaitsForB, int kOfA>
__global__ void load_two_rings(const __grid_constant__ CUtensorMap map, int* out) {
  auto& smem = ladder::shared_storage<TwoRings>();
  if (threadIdx.x == 0) {
    smem.pipe_a.init(1, 1);
    smem.pipe_b.init(1, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  ladder::Producer fill_a(smem.pipe_a);
  ladder::Producer fill_b(smem.pipe_b);
  ladder::Consumer read_a(smem.pipe_a);
  ladder::Consumer read_b(smem.pipe_b);
  for (int round = 0; round < 8; ++round) {
    if (threadIdx.x == 32) {
      if (kWaitsForB) fill_b.producer_acquire();
      ptx::tma_load(&smem.b, &map, 0, 0, fill_b.expect_bytes(sizeof smem.b));
      fill_b.producer_commit_bytes();
      for (int i = 0; i < kOfA; ++i) {
        const int slot = fill_a.producer_acquire();
        ptx::tma_load(&smem.a[slot], &map, 0, 0, fill_a.expect_bytes(sizeof smem.a[slot]));
        fill_a.producer_commit_bytes();
      }
    } else if (threadIdx.x == 0) {
      read_b.consumer_wait();
      for (int i = 0; i < kOfA; ++i) {
        const int slot = read_a.consumer_wait();
        out[0] += smem.a[slot][0] + smem.b[0];
        ptx::fence_proxy_async();
        read_a.consumer_release();
      }
      read_b.consumer_release();
    }
  }
}

CUtensorMap map_of_row(__nv_bfloat16* row) {
  return cpu_device::test::map_of(row, 1, 64, 1, CU_TENSOR_MAP_SWIZZLE_NONE);
}

}  // namespace

TEST_CASE("a wrong parity and a missing wait for TMA's read are told apart on every schedule") {
  PinnedVector<__nv_bfloat16> out(64);
  const CUtensorMap map = map_of_row(out.data());
  const auto run = [&](const cpu_device::Schedule& schedule, auto kernel) {
    return failure_of(schedule, 64, sizeof(StoredTiles), kernel, map);
  };
  int named = 0, blamed = 0, unheard = 0;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    CHECK(run(schedule, store_tiles<Storer::right>) == "");
    CHECK(run(schedule, store_tiles<Storer::lets_one_lane_fence_behind_a_syncwarp>) == "");
    CHECK_THAT(
        run(schedule, store_tiles<Storer::lets_one_lane_fence>),
        ContainsSubstring("; nothing orders the one of warp 0 lane 1 (test_races.cu:") &&
            ContainsSubstring(") between the two: is a __syncwarp missing before that fence, or behind "
                              "it?\n") &&
            !ContainsSubstring("it has executed none"));
    const std::string elsewhere = run(schedule, store_tiles<Storer::takes_the_other_pipeline>);
    unheard +=
        elsewhere.find("the reader waited last for other.full[0], and warp 0 lane ") != elsewhere.npos &&
        elsewhere.find("), for which no thread has waited\n") != elsewhere.npos;
    CHECK_THAT(elsewhere, !ContainsSubstring("writes again without waiting"));
    const std::string parity = run(schedule, store_tiles<Storer::takes_the_other_parity>);
    // Where the storer comes late enough, it waits for ever.
    CHECK_THAT(parity,
               (ContainsSubstring("read before it") &&
                ContainsSubstring("the reader waited last for pipe.full[0] with parity 1, which passes")) ||
                   ContainsSubstring("for pipe.full[0], phase of parity 1: it has not waited for phase 0, of "
                                     "parity 0, which has ended"));
    named += parity.find("read before it") != std::string::npos;
    CHECK_THAT(run(schedule, store_tiles<Storer::gives_back_too_early>),
               ContainsSubstring("overwritten while it may still be read") &&
                   ContainsSubstring(place_of("stores a tile") + " reads (TMA store)"));
    const std::string overtaken = run(schedule, store_tiles<Storer::is_overtaken>);
    blamed += overtaken.find("writes again without waiting for pipe.empty[0]: ") != std::string::npos;
    CAPTURE(overtaken);
    CHECK(overtaken.find("the reader waited last") == std::string::npos);
  }
  CHECK(named >= 2);
  CHECK(blamed >= 1);
  CHECK(unheard >= 1);
}

TEST_CASE("a tile that is staged before its acquire is not blamed on the wait that leaves a newer store") {
  PinnedVector<__nv_bfloat16> out(64);
  const CUtensorMap map = map_of_row(out.data());
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    CHECK(failure_of(schedule, 64, sizeof(TwoStoredTiles), store_two_tiles<true>, map) == "");
    const std::string early = failure_of(schedule, 64, sizeof(TwoStoredTiles), store_two_tiles<false>, map);
    CHECK_THAT(early, ContainsSubstring(" writes again without waiting for pipe.empty[") &&
                          ContainsSubstring("; its last wait is for pipe.empty["));
    CHECK_THAT(early, !ContainsSubstring("leaves out the newest group"));
  }
}

TEST_CASE("a storer that waits once for two tiles is told that it reads another slot than was acquired") {
  PinnedVector<__nv_bfloat16> out(64);
  const CUtensorMap map = map_of_row(out.data());
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    const std::string once =
        failure_of(schedule, 64, sizeof(TwoStoredTiles), store_two_tiles<true, false>, map);
    CHECK_THAT(once, ContainsSubstring(" writes behind its wait for pipe.empty[1] (test_races.cu:") &&
                         ContainsSubstring("), and block (0,0,0) warp 1 lane 0 reads behind its wait for "
                                           "pipe.full[0] (test_races.cu:") &&
                         ContainsSubstring("): these are two slots\n"));
  }
}

TEST_CASE("a TMA store of what another warp has staged is told from one that comes too early") {
  PinnedVector<__nv_bfloat16> out(4 * 64);
  const CUtensorMap map = cpu_device::test::map_of(out.data(), 4, 64, 1, CU_TENSOR_MAP_SWIZZLE_NONE);
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    CHECK(failure_of(schedule, 64, sizeof(StoredRows), store_rows<true>, map) == "");
    CHECK_THAT(failure_of(schedule, 64, sizeof(StoredRows), store_rows<false>, map),
               ContainsSubstring(
                   "warp 1 stores smem.rows[0][0] to [0][63], where warp 0 writes, and not what it has "
                   "written itself, smem.rows[1][0] to [1][63]: is the row of its source another warp's?\n"));
  }
}

TEST_CASE(
    "a store that begins too early is named before its missing commit, which is named alone elsewhere") {
  PinnedVector<__nv_bfloat16> out(64);
  const CUtensorMap map = map_of_row(out.data());
  int named = 0, where_to_wait = 0;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    const auto run = [&](auto kernel) { return failure_of(schedule, 64, sizeof(StoredTiles), kernel, map); };
    const std::string early = run(store_tiles<Storer::neither_waits_nor_commits>);
    CHECK_THAT(early, ContainsSubstring("read before it "));
    where_to_wait += early.find("the reader has waited for no mbarrier, and warp 0 lane ") != early.npos &&
                     early.find(" arrives at pipe.full[0] (test_races.cu:") != early.npos;
    const std::string text = run(store_tiles<Storer::never_commits>);
    named += text.find("TMA stores that were never committed") != std::string::npos;
    CHECK(text.find("read before it ") == std::string::npos);
  }
  CHECK(named >= 3);
  CHECK(where_to_wait >= 1);
}

TEST_CASE("the next tile overwrites what a TMA store may still read: what its thread has left out is named") {
  PinnedVector<__nv_bfloat16> out(64);
  const CUtensorMap map = map_of_row(out.data());
  const std::string overwritten = "overwritten while it may still be read";
  const std::string issuer = "the TMA store of block (0,0,0) warp 0 lane 0";
  int commits = 0, waits = 0, behind = 0, behind_of_stmatrix = 0, before = 0;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    const auto run = [&](auto kernel) { return failure_of(schedule, 32, sizeof(StoredTiles), kernel, map); };
    const auto has = [](const std::string& text, const std::string& part) {
      return text.find(part) != text.npos;
    };
    CHECK(run(walk_over_tiles<Walk::nothing>) == "");
    const std::string commit = run(walk_over_tiles<Walk::commit>);
    CHECK_THAT(commit, ContainsSubstring("that were never committed") ||
                           (ContainsSubstring(overwritten) &&
                            ContainsSubstring("no tma_store_commit of the thread that issues " + issuer)));
    commits += has(commit, " comes behind it, so that the wait for TMA stores at " +
                               place_of("waits for the store") + " does not cover it");
    const std::string wait = run(walk_over_tiles<Walk::wait>);
    CHECK_THAT(wait, ContainsSubstring(overwritten) &&
                         ContainsSubstring("no tma_store_wait_read of the thread that issues " + issuer +
                                           " comes between"));
    waits += has(wait, "TMA store (a read) issued by block (0,0,0) warp 0 lane 0");
    const auto stage = [&](auto kernel) { return failure_of(schedule, 32, sizeof(StagedTile), kernel, map); };
    CHECK(stage(stage_tiles<false>) == "");
    behind_of_stmatrix +=
        has(stage(stage_tiles<true>), "so a __syncwarp must come between that wait and the stmatrix: lane ");
    behind += has(run(walk_over_tiles<Walk::syncwarp_behind_the_wait>), "so a __syncwarp must come between");
    const std::string early = run(walk_over_tiles<Walk::syncwarp_before_the_store>);
    CHECK_THAT(early, ContainsSubstring("read before it "));
    before += has(early, " of the same warp issues the TMA store: lanes do not run in step, so a __syncwarp");
  }
  CHECK(waits > 0);
  CHECK(behind > 0);
  CHECK(behind_of_stmatrix > 0);
  CHECK(before > 0);
  CAPTURE(commits);
}

TEST_CASE("a store that is committed behind the wait which was to count it is named") {
  PinnedVector<__nv_bfloat16> out(64);
  const CUtensorMap map = map_of_row(out.data());
  const std::string in_no_group = "was in no group by then";
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    const auto run = [&](auto kernel) { return failure_of(schedule, 32, sizeof(StoredRows), kernel, map); };
    CHECK(run(store_in_line<Line::right>) == "");
    CHECK_THAT(run(store_in_line<Line::commits_behind_the_wait>),
               ContainsSubstring("the wait for TMA stores at " + place_of("leaves one in line") +
                                 " leaves out the newest group of stores, and with it the TMA store of block "
                                 "(0,0,0) warp 0 lane 0: the store before that wait, at " +
                                 place_of("is in line") +
                                 ", was in no group by then, because it is committed "
                                 "behind the wait, at " +
                                 place_of("closes too late") + ": commit first, and wait then\n"));
    CHECK_THAT(run(store_in_line<Line::waits_for_too_few>),
               ContainsSubstring(" leaves out the 2 newest groups of stores, and with it ") &&
                   !ContainsSubstring(in_no_group));
  }
}

TEST_CASE("whether threads themselves have written shared memory is known where races are checked") {
  PinnedVector<int> out(64);
  PinnedVector<__nv_bfloat16> row(64);
  const CUtensorMap map = map_of_row(row.data());
  (void)cpu_device::take_work_of_kernels();
  CHECK(failure_of({}, 64, sizeof(LoadedTiles), load_tiles<Ring::right>, map, out.data()) == "");
  CHECK(!cpu_device::take_work_of_kernels().stages);
  CHECK(failure_of({}, 64, sizeof(StoredTiles), store_tiles<Storer::right>, map) == "");
  CHECK(cpu_device::take_work_of_kernels().stages);
  CHECK(cpu_device::take_work_of_kernels().stages);  // of no launch
}

TEST_CASE("of a block that stages a tile the missing barrier is told from the one before the store's wait") {
  PinnedVector<__nv_bfloat16> out(64);
  const CUtensorMap map = map_of_row(out.data());
  int late = 0, forgotten = 0, early = 0;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    const auto run = [&](auto kernel) { return failure_of(schedule, 64, sizeof(StoredTiles), kernel, map); };
    const std::string barrier =
        "the last __syncthreads of both (" + place_of("the staged tile is free") + ") ";
    CHECK(run(stage_tiles<Staging::nothing>) == "");
    const std::string behind = run(stage_tiles<Staging::wait_behind_the_barrier>);
    late += behind.find(barrier + "comes before block (0,0,0) warp 0 lane 0 has waited for its TMA store (" +
                        place_of("waits late") + "): the wait must come first\n") != behind.npos;
    const std::string none = run(stage_tiles<Staging::wait>);
    forgotten += none.find(
                     "no tma_store_wait_read of the thread that issues the TMA store of block (0,0,0) "
                     "warp 0 lane 0 comes between") != none.npos;
    const std::string read = run(stage_tiles<Staging::barrier_before_the_store>);
    CHECK_THAT(read, ContainsSubstring("read before it ") && !ContainsSubstring("tma_store_wait_read"));
    early +=
        read.find(barrier + "comes before both: another must come between the write and the TMA store") !=
        read.npos;
  }
  CHECK(late >= 2);
  CHECK(forgotten >= 2);
  CHECK(early >= 2);
}

TEST_CASE("a loader that fills a slot again without a wait is named, not the reader, which has waited") {
  PinnedVector<__nv_bfloat16> row(64);
  PinnedVector<int> out(1);
  const CUtensorMap map = map_of_row(row.data());
  int named = 0;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    const auto run = [&](auto kernel) {
      return failure_of(schedule, 64, sizeof(TwoRings), kernel, map, out.data());
    };
    CHECK(run(load_two_rings<true, 2>) == "");
    CHECK(run(load_two_rings<true, 3>) == "");
    CHECK_THAT(run(load_two_rings<false, 2>),
               ContainsSubstring("must wait for pipe_b.empty[0] before it does so again; it has never waited "
                                 "there, and waited last for pipe_a.empty[1]\n") ||
                   ContainsSubstring("warp 1 lane 0 fills the slot again, and has never waited for "
                                     "pipe_b.empty[0]"));
    const std::string text = run(load_two_rings<false, 3>);
    CHECK_THAT(text, ContainsSubstring("pipe_b") && !ContainsSubstring("the reader must wait"));
    named += text.find("overwritten while it may still be read") != text.npos &&
             text.find(
                 "warp 1 lane 0 fills the slot again, and has never waited for pipe_b.empty[0]; the "
                 "reader has waited for phase 0 of pipe_b.full[0]") != text.npos;
  }
  CHECK(named >= 1);
}

TEST_CASE("what a loader waited for is that of the copy that overwrites, however late this lands") {
  PinnedVector<__nv_bfloat16> row(64);
  PinnedVector<int> out(1);
  const CUtensorMap map = map_of_row(row.data());
  int released = 0, two_slots = 0, asked = 0;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    CAPTURE(schedule.name());
    const auto run = [&](auto kernel) {
      return failure_of(schedule, 64, sizeof(LoadedTiles), kernel, map, out.data());
    };
    CHECK(run(load_tiles<Ring::right>) == "");
    const std::string early = run(load_tiles<Ring::releases_before_it_reads>);
    CAPTURE(early);
    const bool is_slot_0 = early.find(" at smem.tiles[0]") != early.npos;
    CHECK_THAT(early, !ContainsSubstring(is_slot_0 ? "waited last for pipe.empty[1]"
                                                   : "waited last for pipe.empty[0]"));
    CHECK_THAT(early, !ContainsSubstring("these are two slots"));
    released += early.find("; warp 0 lane 0 arrives there before this load") != early.npos;
    const std::string one_slot = run(load_tiles<Ring::fills_one_slot_only>);
    two_slots += one_slot.find(": these are two slots") != one_slot.npos;
    CHECK_THAT(one_slot, !ContainsSubstring("does it read another slot"));
    const std::string other_slot = run(load_tiles<Ring::reads_the_other_slot>);
    asked +=
        other_slot.find("the reader must wait for pipe.full[1]; the reader waited last for pipe.full[0]") !=
            other_slot.npos &&
        other_slot.find(": does it read another slot than it waits for?\n") != other_slot.npos;
  }
  CHECK(released >= 1);
  CHECK(two_slots >= 1);
  CHECK(asked >= 1);
}

TEST_CASE("of a missing __syncwarp the lane is named that arrives for the warp, not one of another warp") {
  PinnedVector<int> out(32);
  int named = 0;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    const std::string report = failure_of(schedule, 96, sizeof(LoadedTiles), arrive_for_others, out.data());
    CAPTURE(report);
    for (const char* other : {"0", "1"}) {
      const std::string arrives = std::string(": warp ") + other + " lane 0 arrives at pipe.full[0]";
      const std::string did =
          std::string("for others, too, and nothing orders that behind what warp ") + other + " lane ";
      CHECK((report.find(arrives) != report.npos) == (report.find(did) != report.npos));
      named += report.find(did) != report.npos;
    }
  }
  CHECK(named >= 1);
}

namespace {

/// Warp 0 reads what warp 1 then overwrites, from lane kBegins on; lane 0 arrives for it: before it reads, or
/// after it. Then warp 0 may read another slot by the same line.
template <bool kArrivesFirst, int kBegins, int kSlots = 1>
__global__ void release_for_others(int* out) {
  auto& smem = ladder::shared_storage<LoadedTiles>();
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) smem.pipe.init(32, 1);
  if (warp == 0) smem.tiles[0][lane] = smem.tiles[1][lane] = 1;
  __syncthreads();
  if (warp == 0) {
    for (int slot = 0; slot < kSlots; ++slot) {
      if (kArrivesFirst && lane == 0) ptx::mbarrier_arrive(&smem.pipe.empty[slot]);
      out[lane] = smem.tiles[slot][lane];  // the reads
      if (!kArrivesFirst && lane == 0) ptx::mbarrier_arrive(&smem.pipe.empty[slot]);
    }
  } else {
    ptx::mbarrier_wait(&smem.pipe.empty[0], 0);
    if (lane > 0 || kBegins == 0) smem.tiles[0][lane] = 2;
  }
}

}  // namespace

TEST_CASE("a release before the reads is told from one without a __syncwarp behind them") {
  PinnedVector<int> out(32);
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) {
    if (schedule.order == cpu_device::Order::highest_first) continue;  // the write comes first there
    const auto said = [&](auto kernel) {
      return failure_of(schedule, 64, sizeof(LoadedTiles), kernel, out.data());
    };
    CHECK_THAT(said(release_for_others<true, 1>),
               ContainsSubstring("and reads after that: it must arrive after the reads"));
    CHECK_THAT(said(release_for_others<true, 0>),
               ContainsSubstring("; warp 0 lane 0 arrives there before this load") ||
                   ContainsSubstring("and reads after that"));
    for (const auto kernel : {release_for_others<false, 1>, release_for_others<false, 1, 2>})
      CHECK_THAT(said(kernel),
                 ContainsSubstring("for others, too, and nothing orders that behind what warp 0 lane ") &&
                     !ContainsSubstring("and reads after that"));
  }
}

TEST_CASE("without the option nothing is checked") {
  PinnedVector<int> out(kThreads);
  cpu_device::set_options({});
  CHECK_NOTHROW(
      ladder::launch(all_write_one, {"test kernel", dim3(1), dim3(kThreads), sizeof(Exchange)}, out.data()));
}

}  // namespace races_test

TEST_CASE("an object that is made in a loop is told from one that is made before it") {
  const auto lines = [](const std::string& source) {
    return cpu_device::lines_made_in_loop(source, 9, "Producer", "pipe");
  };
  using Lines = std::pair<unsigned, unsigned>;
  CHECK(lines("for (Tile tile : walk(a, b)) {\n  Producer mine(smem.pipe);\n  mine.acquire();") ==
        Lines{2, 1});
  CHECK(lines("while (true)\n{ if (x) {\n  Producer<2> mine{smem.pipe};\n") == Lines{3, 1});
  CHECK(lines("void f() {\n  Producer mine(smem.pipe);\n  for (;;) {\n") == Lines{0, 0});
  CHECK(lines("for (;;) {\n}\nProducer mine(smem.pipe);\n") == Lines{0, 0});
  CHECK(lines("for (;;) {\n  Producer mine(smem.other_pipe);\n") == Lines{0, 0});
  CHECK(lines("for (;;) {\n  // Producer mine(smem.pipe);\n  Consumer mine(smem.pipe);\n") == Lines{0, 0});
  CHECK(lines("\n\n\n\n\n\n\n\n\n\nfor (;;) {\n  Producer mine(smem.pipe);\n") == Lines{0, 0});
}

TEST_CASE("the operands in shared memory of a line are found, and the one that two lines share") {
  using cpu_device::operands_in;
  using Names = std::vector<std::string>;
  CHECK(operands_in("core.start(smem.a[slot], my_rows, smem.b[slot % 2], step == 0);") ==
        Names{"smem.a[slot]", "smem.b[slot % 2]"});
  CHECK(operands_in("tma_load(&smem->b[i].panels[column / 64], &maps.b);") ==
        Names{"smem->b[i].panels[column / 64]"});
  CHECK(operands_in("smem.pipe.init(1, 2);") == Names{"smem.pipe"});
  CHECK(operands_in("my_smem.a = ladder::shared_storage<T>(smem);").empty());
  const cpu_device::OwnLine both{"x:1", {"smem.a[slot]", "smem.b[slot]"}}, one{"x:2", {"smem.a[s]"}},
      other{"x:3", {"smem.c"}}, none{"x:4", {}};
  CHECK(shared_operand(both, one) == "smem.a[slot]");
  CHECK(shared_operand(one, none) == "smem.a[s]");
  CHECK(shared_operand(none, both) == "");  // which of the two?
  CHECK(shared_operand(one, other) == "");
}
