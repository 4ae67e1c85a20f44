/// @file
/// The ring of pinned slots: who gets which slot, and what happens when none comes back.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <deque>
#include <optional>
#include <type_traits>

#include "07_streams/pinned_ring.hpp"
#include "07_streams/tests/test_support.hpp"

using namespace lesson07;
using Catch::Matchers::ContainsSubstring;
using Ring = PinnedRing<int>;

namespace {

constexpr std::chrono::milliseconds kShort{50};

/// Is there a way to what is guarded but under its lock?
template <class G>
concept IsWithinReach = requires(G guarded) {
  guarded.value_;
}
|| requires(G guarded) { guarded.front(); }
|| requires(G guarded) { *guarded; }
|| requires(G guarded) { guarded.get(); }
|| std::is_convertible_v<G&, std::deque<int>&>;
static_assert(!IsWithinReach<ladder::Guarded<std::deque<int>>>);
static_assert(IsWithinReach<std::deque<int>>);

}  // namespace

TEST_CASE("slots come back in the order in which they were released") {
  skip_without_device();
  Ring ring("test", 3, 4);
  std::optional<Ring::Slot> a(ring.acquire(kShort)), b(ring.acquire(kShort)), c(ring.acquire(kShort));
  CHECK(a->number() == 0);
  CHECK(b->number() == 1);
  CHECK(c->number() == 2);
  CHECK(a->data() != b->data());
  c->release();
  a->release();
  CHECK(ring.acquire(kShort).number() == 2);
  CHECK(ring.acquire(kShort).number() == 0);
}

TEST_CASE("a slot goes back once: by release, or with its owner") {
  skip_without_device();
  Ring ring("test", 1, 4);
  {
    Ring::Slot slot = ring.acquire(kShort);
    const Ring::Slot moved = std::move(slot);
    CHECK(moved.number() == 0);
  }
  Ring::Slot slot = ring.acquire(kShort);
  slot.release();
  slot.release();
  const Ring::Slot again = ring.acquire(kShort);
  CHECK_THROWS_WITH(ring.acquire(kShort), ContainsSubstring("a free slot of the test ring"));
}

TEST_CASE("who reads a slot of a spoiling ring that was given back reads NaN") {
  skip_without_device();
  for (const Recycled recycled : {Recycled::as_it_is, Recycled::spoiled}) {
    PinnedRing<float> ring("test", 1, 4, recycled);
    PinnedRing<float>::Slot slot = ring.acquire(kShort);
    const float* const late = slot.data();
    slot.data()[0] = slot.data()[3] = 5;
    CHECK(late[0] == 5);
    slot.release();
    CHECK(std::isnan(late[0]) == (recycled == Recycled::spoiled));
    CHECK(std::isnan(late[3]) == (recycled == Recycled::spoiled));
  }
}

TEST_CASE("a drain that ends returns what the stream says, in silence") {
  int looks = 0;
  const auto ends = [&] { return ++looks < 5 ? cudaErrorNotReady : cudaErrorLaunchFailure; };
  CHECK(wait_or_exit(ends, "nothing", {}) == cudaErrorLaunchFailure);
  CHECK(looks == 5);
}

TEST_CASE("a drain that does not end says what was wrong, and ends the program with the code of a failure") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    const Patience little{std::chrono::milliseconds(10), std::chrono::milliseconds(30)};
    wait_or_exit([] { return cudaErrorNotReady; }, "the host has waited 5 ms for a slot", little);
    std::_Exit(0);
  }
  close(ends[1]);
  std::string said;
  char buffer[256];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == ladder::kExitFailure);
  CHECK(said ==
        "07_streams: error: the host has waited 5 ms for a slot\n"
        "07_streams: the device is still at work; waiting 30 ms for it\n"
        "07_streams: the device has not ended in 30 ms: a kernel or a host function hangs. The program ends, "
        "and "
        "gives nothing back\n");
}
