/// @file
/// The ring of pinned slots: who gets which slot, and what happens when none comes back.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <optional>

#include "07_streams/pinned_ring.hpp"
#include "07_streams/tests/test_support.hpp"
#include "common/testing/gemm_checks.hpp"

using namespace lesson07;
using Catch::Matchers::ContainsSubstring;
using ladder::testing::skip_unless_runnable;
using Ring = PinnedRing<int>;

namespace {

constexpr std::chrono::milliseconds kShort{50};

void skip_without_device() { skip_unless_runnable(*levels().front().kernel.lesson); }

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
