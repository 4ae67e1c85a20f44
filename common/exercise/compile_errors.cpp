/// @file
/// What a learner needs to see of a compiler's log.
#include "common/exercise/compile_errors.hpp"

#include <algorithm>
#include <fstream>

#include "common/host/base/exit_codes.hpp"
#include "common/host/base/subprocess.hpp"

namespace ladder {
namespace {

constexpr size_t kMaxLines = 8;

struct Place {
  std::string file, line;
};

/// Removes ":12" from the end of `text`. @returns "12"; empty, and nothing is removed, if there is no number
std::string take_number(std::string& text) {
  const size_t colon = text.find_last_not_of("0123456789");
  if (colon == std::string::npos || colon + 1 == text.size() || text[colon] != ':') return "";
  const std::string number = text.substr(colon + 1);
  text.erase(colon);
  return number;
}

/// "FILE:LINE", "FILE:LINE:COLUMN", or "FILE(LINE)" as nvcc has it.
std::optional<Place> place_of(std::string text) {
  if (!text.empty() && text.back() == ')') {
    const size_t open = text.rfind('(');
    if (open == std::string::npos) return {};
    return Place{text.substr(0, open), text.substr(open + 1, text.size() - open - 2)};
  }
  const std::string last = take_number(text), line = take_number(text);
  if (last.empty()) return {};
  return Place{text, line.empty() ? last : line};
}

struct Diagnosis {
  std::string place, text;
};

/// An error's place, and the rest of the line; nothing for other lines.
std::optional<Diagnosis> parse_error(const std::string& line) {
  for (const std::string sign : {": error", ": fatal error", ": undefined reference"})
    if (const size_t end = line.find(sign); end != std::string::npos)
      return Diagnosis{line.substr(0, end), line.substr(end + 2)};
  return {};
}

/// What nvcc says below an error in a template: "... at line 3 of FILE".
std::optional<Place> instantiated_at(const std::string& line) {
  const std::string before = " at line ", between = " of ";
  const size_t at = line.find(before), of = line.find(between, at);
  if (at == std::string::npos || of == std::string::npos) return {};
  const size_t number = at + before.size();
  return Place{line.substr(of + between.size()), line.substr(number, of - number)};
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

class Reader {
 public:
  Reader(const std::filesystem::path& root, const std::filesystem::path& mine)
      : root_((root / "").string()),
        mine_(mine.lexically_relative(root).string()),
        name_(mine.filename().string()) {}

  void read(const std::string& line) {
    if (line.find_first_not_of(" \t") != std::string::npos) all_.push_back(shortened(line));
    if (const size_t end = line.find(":   required from"); end != std::string::npos) {
      const std::optional<Place> place = place_of(line.substr(0, end));
      // The first is the innermost: a kernel's line, and not the launch of the kernel.
      if (place && is_mine(*place) && required_from_.empty()) required_from_ = place->line;
    } else if (line.find(": note: ") != std::string::npos || line.find(": warning: ") != std::string::npos) {
      required_from_.clear();
    }
    if (const std::optional<Place> place = instantiated_at(line); place && last_elsewhere_ && is_mine(*place))
      add_required_from(place->line, *last_elsewhere_);
    const std::optional<Diagnosis> error = parse_error(line);
    if (!error) return;
    last_elsewhere_.reset();
    const std::optional<Place> place = place_of(error->place);
    const std::string text = shortened(error->text);
    const std::string said = "error: #error ";  // by a header, to whoever includes it
    if (text.rfind(said, 0) == 0) {
      add(in_mine_, name_ + ": " + text.substr(said.size()));
    } else if (place && is_mine(*place)) {
      add(in_mine_, name_ + ":" + place->line + ": " + text);
    } else if (!place) {
      add(elsewhere_, shortened(line));
    } else {
      last_elsewhere_ = {shortened(place->file) + ":" + place->line, text};
      add(elsewhere_, last_elsewhere_->place + ": " + text);
      if (!required_from_.empty()) add_required_from(required_from_, *last_elsewhere_);
    }
    required_from_.clear();
  }

  std::vector<std::string> result() const {
    if (!in_mine_.empty()) return first_of(in_mine_);
    if (!elsewhere_.empty()) return first_of(elsewhere_);
    return {all_.end() - static_cast<ptrdiff_t>(std::min(all_.size(), kMaxLines)), all_.end()};
  }

 private:
  /// Some builds name files from the build directory.
  bool is_mine(const Place& place) const {
    return place.file.size() >= mine_.size() &&
           place.file.compare(place.file.size() - mine_.size(), mine_.size(), mine_) == 0;
  }

  std::string shortened(std::string text) const {
    replace_all(text, root_, "");
    replace_all(text, "../", "");
    replace_all(text, mine_, name_);
    return text;
  }

  void add_required_from(const std::string& line, const Diagnosis& error) {
    add(in_mine_, name_ + ":" + line + ": " + error.text + " (in " + error.place + ")");
  }

  /// nvcc finds each error once for each architecture.
  static void add(std::vector<std::string>& errors, const std::string& error) {
    if (std::find(errors.begin(), errors.end(), error) == errors.end()) errors.push_back(error);
  }

  static std::vector<std::string> first_of(const std::vector<std::string>& errors) {
    return {errors.begin(), errors.begin() + static_cast<ptrdiff_t>(std::min(errors.size(), kMaxLines))};
  }

  std::string root_, mine_, name_;
  std::string required_from_;  ///< a line of the learner's file that instantiates what the next error is in
  std::optional<Diagnosis> last_elsewhere_;
  std::vector<std::string> in_mine_, elsewhere_, all_;
};

}  // namespace

std::vector<std::string> first_errors(std::istream& log, const std::filesystem::path& root,
                                      const std::filesystem::path& mine) {
  Reader reader(root, mine);
  for (std::string line; std::getline(log, line);) reader.read(line);
  return reader.result();
}

std::optional<std::vector<std::string>> errors_of_build(const std::string& program,
                                                        const std::filesystem::path& log,
                                                        const std::filesystem::path& root,
                                                        const std::filesystem::path& mine) {
  const SubprocessEnd built = run_subprocess(
      {LADDER_CMAKE, "--build", LADDER_BINARY_DIR, "--target", program}, {.output = log, .errors_too = true});
  if (built.exit_code == kExitOk) return std::nullopt;
  std::ifstream lines(log);
  return first_errors(lines, root, mine);
}

}  // namespace ladder
