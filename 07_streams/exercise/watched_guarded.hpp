/// @file
/// A Guarded for the check of exercise 07.4.
#pragma once
#include <chrono>
#include <mutex>
#include <string>
#include <utility>

#include "common/cuda/guarded.hpp"

namespace ladder {

/// A Guarded that also returns, without its lock, the value at the last release of the lock, so that a `take`
/// that is called in update() can read it.
template <class T>
class WatchedGuarded {
 public:
  explicit WatchedGuarded(std::string name) : guarded_(std::move(name)) {}

  template <class Change>
  void update(const Change& change) {
    guarded_.update([&](T& value) {
      change(value);
      remember(value);
    });
  }
  template <class Holds, class Then>
  void wait(const Holds& holds, const Then& then, std::chrono::milliseconds limit) {
    const auto then_remember = [&](T& value) {
      then(value);
      remember(value);
    };
    guarded_.wait(holds, then_remember, limit);
  }

  T last() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return last_;
  }

 private:
  void remember(const T& value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    last_ = value;
  }

  Guarded<T> guarded_;
  mutable std::mutex mutex_;
  T last_{};
};

}  // namespace ladder
