/// @file
/// Implementation of the race checker's vector clocks.
#include "common/cpu_device/observe/vector_clock.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace cpu_device {
namespace {

/// Components are padded to a multiple of this, so that the loops over them need no remainder.
constexpr unsigned kStride = 16;

// Counts stay far below 2^31, and most processors compare signed numbers faster. The inner loops have a fixed
// length, for which compilers use vectors.

/// True if a[i] <= b[i] for all i.
bool all_at_most(const uint32_t* a, const uint32_t* b, unsigned count) {
  for (unsigned i = 0; i < count; i += kStride) {
    uint32_t greater = 0;
    for (unsigned j = 0; j < kStride; ++j)
      greater |= static_cast<uint32_t>(static_cast<int32_t>(a[i + j]) > static_cast<int32_t>(b[i + j]));
    if (greater) return false;
  }
  return true;
}

/// a[i] = the larger of a[i] and b[i].
void raise_all(uint32_t* __restrict a, const uint32_t* __restrict b, unsigned count) {
  for (unsigned i = 0; i < count; i += kStride) {
    for (unsigned j = i; j < i + kStride; ++j)
      a[j] = static_cast<int32_t>(a[j]) > static_cast<int32_t>(b[j]) ? a[j] : b[j];
  }
}

/// a[i] = the smaller of a[i] and b[i].
void lower_all(uint32_t* __restrict a, const uint32_t* __restrict b, unsigned count) {
  for (unsigned i = 0; i < count; i += kStride) {
    for (unsigned j = i; j < i + kStride; ++j)
      a[j] = static_cast<int32_t>(a[j]) < static_cast<int32_t>(b[j]) ? a[j] : b[j];
  }
}

}  // namespace

struct VectorClock::Node {
  explicit Node(ClockPool::Storage* storage, unsigned components)
      : storage(storage), counts(new uint32_t[components]()) {}

  uint32_t references = 1;
  ClockPool::Storage* storage;
  std::unique_ptr<uint32_t[]> counts;
};

/// Belongs to the pool and to all living nodes together.
struct ClockPool::Storage {
  unsigned components = 0;  ///< padded
  uint64_t living_nodes = 0;
  bool pool_is_gone = false;
  std::vector<std::unique_ptr<VectorClock::Node>> unused;
  std::unique_ptr<uint32_t[]> zeros;

  VectorClock::Node* take() {
    ++living_nodes;
    if (unused.empty()) return new VectorClock::Node(this, components);
    VectorClock::Node* node = unused.back().release();
    unused.pop_back();
    node->references = 1;
    return node;
  }

  void give_back(VectorClock::Node* node) {
    --living_nodes;
    unused.emplace_back(node);
    delete_if_abandoned();
  }

  void delete_if_abandoned() {
    if (pool_is_gone && living_nodes == 0) delete this;
  }
};

VectorClock::VectorClock(const VectorClock& other) : node_(other.node_) {
  if (node_) ++node_->references;
}

VectorClock::~VectorClock() {
  if (node_ && --node_->references == 0) node_->storage->give_back(node_);
}

ClockPool::ClockPool(unsigned components) : storage_(new Storage) {
  storage_->components = (components + kStride - 1) / kStride * kStride;
  storage_->zeros = std::make_unique<uint32_t[]>(storage_->components);
}

ClockPool::~ClockPool() {
  storage_->pool_is_gone = true;
  storage_->delete_if_abandoned();
}

unsigned ClockPool::components() const { return storage_->components; }

const uint32_t* ClockPool::counts(const VectorClock& clock) const {
  return clock.node_ ? clock.node_->counts.get() : storage_->zeros.get();
}

bool ClockPool::equal(const VectorClock& one, const VectorClock& other) const {
  return one.is(other) ||
         std::memcmp(counts(one), counts(other), storage_->components * sizeof(uint32_t)) == 0;
}

uint32_t* ClockPool::writable(VectorClock& clock) {
  if (!clock.node_ || clock.node_->references > 1) {
    VectorClock copy;
    copy.node_ = storage_->take();
    std::memcpy(copy.node_->counts.get(), counts(clock), storage_->components * sizeof(uint32_t));
    clock = std::move(copy);
  }
  return clock.node_->counts.get();
}

void ClockPool::raise(VectorClock& clock, unsigned component, uint32_t count) {
  if (counts(clock)[component] < count) writable(clock)[component] = count;
}

void ClockPool::lower(VectorClock& clock, unsigned component, uint32_t count) {
  if (counts(clock)[component] > count) writable(clock)[component] = count;
}

void ClockPool::forget_first(VectorClock& clock, unsigned count) {
  if (!clock.is_zero()) std::fill_n(writable(clock), count, 0u);
}

void ClockPool::join(VectorClock& into, const VectorClock& from) {
  if (into.is(from) || from.is_zero()) return;
  const uint32_t* theirs = counts(from);
  // Sharing the larger one makes the next comparison a comparison of pointers.
  if (into.is_zero() || all_at_most(counts(into), theirs, storage_->components)) {
    into = from;
    return;
  }
  if (all_at_most(theirs, counts(into), storage_->components)) return;
  raise_all(writable(into), theirs, storage_->components);
}

void ClockPool::meet(VectorClock& into, const VectorClock& from) {
  if (into.is(from) || into.is_zero()) return;
  if (from.is_zero()) {
    into = from;
    return;
  }
  uint32_t* const ours = writable(into);
  lower_all(ours, counts(from), storage_->components);
}

}  // namespace cpu_device
