/// @file
/// Runs what main() of a program is made of, and keeps what it prints.
#pragma once
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace ladder::testing {

/// Sends a stream to a string for as long as it lives.
class Capture {
 public:
  explicit Capture(std::ostream& stream) : stream_(stream), old_(stream.rdbuf(text_.rdbuf())) {}
  ~Capture() { stream_.rdbuf(old_); }
  Capture(const Capture&) = delete;
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::ostream& stream_;
  std::streambuf* old_;
};

struct ProgramResult {
  int exit_code;
  std::string out, err;
};

/// Calls main(argc, argv) with these words, of which the first is the program's name.
template <class Main>
ProgramResult run_captured(const Main& main, std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const Capture out(std::cout), err(std::cerr);
  const int exit_code = main(static_cast<int>(words.size()), argv.data());
  return {exit_code, out.text(), err.text()};
}

}  // namespace ladder::testing
