/// @file
/// Says on a terminal what takes so long.
#include "common/host/base/progress.hpp"

#include <unistd.h>

#include <iostream>

namespace ladder {

Progress::Progress() : visible_(isatty(STDERR_FILENO)) {}

void Progress::show(const std::string& text) {
  if (!visible_) return;
  clear();
  std::cerr << text << std::flush;
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  std::cerr << "\r\x1b[K" << std::flush;  // to the start of the line, and erase it
  shown_ = false;
}

}  // namespace ladder
