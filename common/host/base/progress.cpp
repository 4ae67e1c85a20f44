/// @file
/// Says what takes so long.
#include "common/host/base/progress.hpp"

#include <unistd.h>

#include <iostream>

namespace ladder {
namespace {

/// When lines follow the first off a terminal.
constexpr std::chrono::seconds kSecondLine(15), kLines(30);

}  // namespace

Progress::Progress(std::chrono::milliseconds patience)
    : is_terminal_(isatty(STDERR_FILENO)), patience_(patience) {
  if (of_launch) others_ = std::thread([this] { print_now_and_then(); });
}

Progress::~Progress() {
  clear();
  if (!others_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  others_.join();
}

void Progress::show(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  text_ = text;
  since_ = Clock::now();
  to_next_ = patience_;
  changed_.notify_all();
  if (!is_terminal_) return;
  erase();
  std::cerr << text << std::flush;
  is_visible_ = true;
}

void Progress::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  text_.clear();
  erase();
}

void Progress::erase() {
  if (is_visible_) std::cerr << "\r\x1b[K" << std::flush;  // to the start of the line, and erase it
  is_visible_ = false;
}

void Progress::print_now_and_then() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ends_) {
    if (text_.empty()) {
      changed_.wait(lock);
      continue;
    }
    changed_.wait_until(lock, since_ + to_next_);
    if (ends_ || text_.empty() || Clock::now() < since_ + to_next_)
      continue;  // cleared or replaced meanwhile
    const std::string of_now = of_launch();
    erase();
    std::cerr << text_ << ", " << to_next_ / std::chrono::seconds(1) << " s"
              << (of_now.empty() ? "" : ": " + of_now) << (is_terminal_ ? "" : "\n") << std::flush;
    is_visible_ = is_terminal_;
    to_next_ = is_terminal_             ? to_next_ + std::chrono::seconds(1)
               : to_next_ < kSecondLine ? kSecondLine
                                        : (to_next_ / kLines + 1) * kLines;
  }
}

}  // namespace ladder
