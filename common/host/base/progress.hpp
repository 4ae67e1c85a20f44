/// @file
/// Says on a terminal what takes so long.
#pragma once
#include <string>

namespace ladder {

/// One line on stderr that is overwritten by the next and removed at the end. Silent where stderr is not a
/// terminal.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Replaces the line.
  void show(const std::string& text);
  /// Before anything is printed elsewhere.
  void clear();

 private:
  bool visible_;
  bool shown_ = false;
};

}  // namespace ladder
