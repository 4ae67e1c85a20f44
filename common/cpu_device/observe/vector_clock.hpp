/// @file
/// Vector clocks for the race checker: shared, reference-counted and copied when they are changed, because
/// after a barrier all threads know the same.
///
/// Not safe for several OS threads: each checker has a pool of its own.
#pragma once
#include <cstdint>
#include <utility>

namespace cpu_device {

class ClockPool;

/// One count for each agent: how much of what that agent did is known. Null means all zero.
class VectorClock {
 public:
  VectorClock() = default;
  VectorClock(const VectorClock& other);
  VectorClock(VectorClock&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  VectorClock& operator=(VectorClock other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~VectorClock();

  /// The same object, which implies the same counts.
  bool is(const VectorClock& other) const { return node_ == other.node_; }
  bool is_zero() const { return node_ == nullptr; }

 private:
  friend class ClockPool;
  struct Node;
  Node* node_ = nullptr;
};

/// Makes and combines clocks of one number of components. Clocks may outlive their pool.
class ClockPool {
 public:
  explicit ClockPool(unsigned components);
  ~ClockPool();
  ClockPool(const ClockPool&) = delete;
  ClockPool& operator=(const ClockPool&) = delete;

  unsigned components() const;
  /// The counts themselves, valid until `clock` changes.
  const uint32_t* counts(const VectorClock& clock) const;
  bool equal(const VectorClock& one, const VectorClock& other) const;
  /// Raises one component to at least `count`.
  void raise(VectorClock& clock, unsigned component, uint32_t count);
  /// Lowers one component to at most `count`.
  void lower(VectorClock& clock, unsigned component, uint32_t count);
  /// Sets components 0 .. count - 1 to 0.
  void forget_first(VectorClock& clock, unsigned count);
  /// into = component-wise maximum of the two.
  void join(VectorClock& into, const VectorClock& from);
  /// into = component-wise minimum of the two.
  void meet(VectorClock& into, const VectorClock& from);

 private:
  friend class VectorClock;
  struct Storage;
  uint32_t* writable(VectorClock& clock);

  Storage* storage_;
};

}  // namespace cpu_device
