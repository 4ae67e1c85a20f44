/// @file
/// Host memory that the copy engines read and write by themselves, and a ring of slots of it.
#pragma once
#include <cuda_runtime.h>

#include <chrono>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "common/cuda/error.hpp"
#include "common/cuda/guarded.hpp"
#include "common/cuda/unused_memory.hpp"

namespace lesson07 {

/// An array in pinned (page-locked) host memory, not initialised.
template <class T>
class PinnedBuffer {
 public:
  explicit PinnedBuffer(size_t size) : size_(size) {
    CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&data_), size * sizeof(T)));
  }
  ~PinnedBuffer() { cudaFreeHost(data_); }
  PinnedBuffer(PinnedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  PinnedBuffer& operator=(PinnedBuffer&&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

/// What a slot holds for who takes it next: what it held, or nothing of use, so that who reads a slot that
/// was given back is found out.
enum class Recycled {
  as_it_is,  ///< it keeps what was in it
  spoiled    ///< with NaN, which a reader that comes too late finds
};

/// A few slots that serve any number of batches: the host takes one, a host function gives it back when the
/// device is done with it. Pinning memory takes milliseconds; taking a slot takes none.
template <class T>
class PinnedRing {
 public:
  /// A slot that was taken. Goes back to the ring by release(), else with this object.
  class Slot {
   public:
    Slot(PinnedRing& ring, int number) : ring_(ring), number_(number) {}
    ~Slot() { release(); }
    Slot(Slot&& other) noexcept
        : ring_(other.ring_), number_(other.number_), held_(std::exchange(other.held_, false)) {}
    Slot& operator=(Slot&&) = delete;

    /// Also from a host function: no CUDA call inside.
    void release() {
      if (std::exchange(held_, false)) ring_.put_back(number_);
    }
    T* data() const { return ring_.slots_[number_].data(); }
    int number() const { return number_; }

   private:
    PinnedRing& ring_;
    int number_;
    bool held_ = true;
  };

  /// `name` is what a report calls it; every slot holds `elements`.
  PinnedRing(const std::string& name, int slots, size_t elements, Recycled recycled = Recycled::as_it_is)
      : name_(name), recycled_(recycled), free_("a free slot of the " + name + " ring") {
    for (int number = 0; number < slots; ++number) slots_.emplace_back(elements);
    free_.update([&](std::deque<int>& free) {
      for (int number = 0; number < slots; ++number) free.push_back(number);
    });
  }

  /// The slot that has been free for longest. Waits until there is one.
  /// @throws HostWaitTimedOut, naming the ring, after `limit`
  Slot acquire(std::chrono::milliseconds limit) {
    int number = -1;
    const auto take = [&](std::deque<int>& free) {
      number = free.front();
      free.pop_front();
    };
    free_.wait([](const std::deque<int>& free) { return !free.empty(); }, take, limit);
    ladder::note_slot_taken(name_, number, slots_[number].data());
    return Slot(*this, number);
  }

  int slots() const { return static_cast<int>(slots_.size()); }

 private:
  void put_back(int number) {
    PinnedBuffer<T>& slot = slots_[number];
    ladder::note_slot_given_back(slot.data());
    if (recycled_ == Recycled::spoiled) ladder::spoil(slot.data(), slot.size() * sizeof(T));
    free_.update([&](std::deque<int>& free) { free.push_back(number); });
  }

  const std::string name_;
  const Recycled recycled_;
  std::vector<PinnedBuffer<T>> slots_;
  ladder::Guarded<std::deque<int>> free_;
};

}  // namespace lesson07
