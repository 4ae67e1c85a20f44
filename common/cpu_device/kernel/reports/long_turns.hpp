/// @file
/// Names the line of a thread that runs for long without a wait or an exit: perhaps a loop without an end.
///
/// Where the loop neither calls the CPU device nor loads or stores, nobody but a signal can look at it.
#pragma once
#include <atomic>
#include <cstdint>

namespace cpu_device {

/// While it lives, the clusters that this OS thread runs are watched. What is found is a line on stderr,
/// because nobody can know that the loop would not end.
class LongTurnsAreNamed {
 public:
  /// @param kernel its name, which must live as long. @param turns how often a thread was resumed
  LongTurnsAreNamed(const char* kernel, const std::atomic<uint64_t>& turns);
  ~LongTurnsAreNamed();
  LongTurnsAreNamed(const LongTurnsAreNamed&) = delete;
};

}  // namespace cpu_device
