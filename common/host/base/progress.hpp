/// @file
/// Says what takes so long.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace ladder {

/// On a terminal, one line on stderr that is overwritten by the next and removed at the end. Elsewhere
/// nothing, but where the device says how far it is: a line after 5 s, and now and then.
class Progress {
 public:
  /// @param patience until the first line off a terminal
  explicit Progress(std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Replaces the line.
  void show(const std::string& text);
  /// Before anything is printed elsewhere.
  void clear();

  /// What a device says of the launch that runs now, as "12 of 64 blocks, about 40 s"; null where it cannot.
  static inline std::string (*of_launch)() = nullptr;

 private:
  using Clock = std::chrono::steady_clock;
  void print_now_and_then();
  void erase();

  const bool is_terminal_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;  ///< for what follows
  std::condition_variable changed_;
  bool is_visible_ = false, ends_ = false;
  std::string text_;  ///< empty: nothing takes long
  Clock::time_point since_;
  std::chrono::milliseconds to_next_{0};
  std::thread others_;
};

}  // namespace ladder
