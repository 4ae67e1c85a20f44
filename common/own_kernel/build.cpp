/// @file
/// Makes the program own_kernel of the reader's files: each is preprocessed, rewritten and compiled with the
/// flags of place.cpp, and CMake links the objects.
#include "common/own_kernel/build.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include "common/exercise/compile_errors.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/base/exit_codes.hpp"
#include "common/host/base/subprocess.hpp"
#include "common/host/base/text.hpp"
#include "common/own_kernel/rewrite/rewrite.hpp"

namespace ladder {
namespace fs = std::filesystem;
namespace {

const fs::path kFolder = LADDER_OWN_FOLDER;

/// What to say instead of the compiler's words, where these or the line that they name hold a sign.
const std::vector<std::pair<std::string, std::string>> kAdvice = {
    {"reference to `main'",
     "there is no main(): write one that launches, and returns 0 if the results are right"},
    {"__block_size__", "the CPU device has no __block_size__: use __launch_bounds__"},
};

/// In the reader's terms, without what the rewriter made of them and without files of the CPU device.
std::string in_terms_of_the_file(std::string error) {
  static const std::vector<std::pair<std::regex, std::string>> kWords = {
      {std::regex("(?:fatal error|error): ([^:]*): No such file or directory"),
       "the CPU device has no such header, $1: docs/your_own_kernel.md says what it has, and -I names a "
       "folder"},
      {std::regex("no match for call to .{1,3}\\(ladder::own::Launcher<(.*)>\\) \\((.*)\\).*"),
       "a kernel with the parameters ($1) is launched with ($2)"},
      {std::regex(
           "no matching function for call to .{1,3}ladder::own::Configuration::Configuration\\((.*)\\).*"),
       "($1) stands between <<< and >>>: it must be a grid, a block, perhaps bytes of shared memory, and a "
       "stream"},
      {std::regex("error: static assertion failed: the CPU device"), "the CPU device"},
      {std::regex("ladder_signature_|(?:::)?ladder::own::|ladder_variable_"), ""},
      {std::regex(" \\(in [^()]*common/(?:cpu_device|own_kernel|cuda)/[^()]*\\)"), ""},
      {std::regex("^[^ ]*common/(?:cpu_device|own_kernel|cuda)/[^ ]*: "), ""}};
  for (const auto& [sign, words] : kWords) error = std::regex_replace(error, sign, words);
  return error;
}

/// What the compiler misses.
struct Missing {
  std::string place;  ///< "FILE:12"
  std::string name;
  std::string meant;  ///< a similar name that there is; may be empty
};

/// Of a line of the compiler's: the name that it misses, if that is one of CUDA's.
std::optional<Missing> missing_in(const std::string& line) {
  static const std::string kQuote = "(?:'|\xe2\x80[\x98\x99])";
  static const auto quoted = [](const std::string& text) { return kQuote + text + kQuote; };
  static const std::regex kError("^([^ ].*?:[0-9]+)(?::[0-9]+)?: (?:fatal )?error: (.*)$");
  static const std::regex kIsOfCuda(
      "(?:cuda|cublas|curand|cufft|cusparse|cusolver|cudnn|nvtx|nccl|nvml|nvrtc|npp)[A-Z].*|cu[A-Z].*|"
      "(?:CU|CUDA|CUBLAS|CUBLASLT|CURAND|CUFFT|CUDNN|CUDART|NCCL)_.*|CU[a-z].*|__[a-z].*|"
      "(?:tex|surf)[1-3C].*|(?:cuda|nvcuda|cooperative_groups|cub|thrust|nvtx3)::.*|"
      "(?:cg|wmma|cde|ptx)::.*");
  static const std::regex kUnknown(quoted("([\\w:]+)") +
                                   " (?:was not declared|does not name a|has not been declared).*");
  static const std::regex kUnknownIn(quoted("(\\w+)") + " (?:in namespace|is not a member of) " +
                                     quoted("(?:::)?([\\w:]+)") + ".*");
  static const std::regex kUnavailable(".*?\\b((?!cudaError_t)(?:cuda|tex|surf)\\w+).* is unavailable: .*");
  static const std::regex kMember(quoted("(?:struct |class |union )?([\\w:]+)") + " has no member named " +
                                  quoted("(\\w+)") + ".*");
  static const std::regex kOverload("no matching function for call to " +
                                    quoted("([\\w:]+(?:<.*>)?\\(.*\\))") + ".*");
  static const std::regex kMeant(".*; did you mean " + quoted("([\\w:]+)") + "\\?.*");
  std::smatch error, found;
  if (!std::regex_match(line, error, kError)) return {};
  const std::string place = error[1], text = error[2];
  Missing missing{place, "", ""};
  if (std::regex_match(text, found, kUnknownIn) || std::regex_match(text, found, kMember)) {
    const bool is_member = text.find("has no member") != text.npos;
    missing.name = is_member ? found.str(1) + "::" + found.str(2) : found.str(2) + "::" + found.str(1);
  } else if (std::regex_match(text, found, kUnknown) || std::regex_match(text, found, kUnavailable) ||
             std::regex_match(text, found, kOverload)) {
    missing.name = found[1];
  }
  if (!std::regex_match(missing.name, kIsOfCuda)) return {};
  if (std::regex_match(text, found, kMeant)) missing.meant = found[1];
  return missing;
}

/// Before the compiler's: what nvcc includes by itself.
constexpr const char* kBefore =
    "#include <cuda_runtime.h>\n#include <climits>\n#include <cstring>\n#include <ctime>\n"
    "#include \"" LADDER_SOURCE_DIR "/common/own_kernel/rewrite/support.hpp\"\n";
const fs::path kHeaders = kFolder / "before.hpp";
/// One pass is for the host and the device: most files need the device's branch of `#if __CUDA_ARCH__`.
const std::vector<std::string> kDefinitions = {"LADDER_REWRITES=1",
                                               "__CUDACC__=1",
                                               "__NVCC__=1",
                                               "__CUDA_ARCH__=900",
                                               "__CUDA_ARCH_FEAT_SM90_ALL=1",
                                               "__CUDACC_VER_MAJOR__=13",
                                               "__CUDACC_VER_MINOR__=0"};

/// Writes only where it changes something: then the program is linked again.
void write_changed(const fs::path& file, const std::string& text) {
  if (!fs::exists(file) || text_of(file) != text) std::ofstream(file, std::ios::binary) << text;
}

/// The words of the command that compiles place.cpp, up to its output.
std::vector<std::string> compile_command() {
  const std::string commands = text_of(fs::path(LADDER_BINARY_DIR) / "compile_commands.json");
  const size_t place = commands.find("own_kernel/place.cpp\"");
  const size_t begin = commands.rfind("\"command\": \"", place);
  if (place == commands.npos || begin == commands.npos)
    throw BadInput(std::string(LADDER_BINARY_DIR) +
                   "/compile_commands.json does not say how files are compiled");
  const std::string sign = "\"command\": \"";
  std::string command =
      commands.substr(begin + sign.size(), commands.find("\",\n", begin) - begin - sign.size());
  std::vector<std::string> words;
  for (const std::string& word : split(command, ' ')) {
    if (word == "-o") break;
    if (!word.empty() && word != "-DNDEBUG" && word != "-fpch-preprocess" && word != "-Werror")
      words.push_back(word);
  }
  return words;
}

class Build {
 public:
  explicit Build(const BuildRequest& request) : request_(request), command_(compile_command()) {
    for (const std::string& definition : kDefinitions) command_.push_back("-D" + definition);
    command_.insert(command_.end(), {"-std=gnu++20", "-fpermissive", "-Wno-narrowing", "-fsanitize=bounds"});
    fs::create_directories(kFolder);
    compile_headers();
    for (const fs::path& file : request.files) roots_.insert((file.parent_path() / "").string());
    for (const std::string& folder : request.include_folders) roots_.insert((fs::path(folder) / "").string());
  }

  std::vector<std::string> run() {
    fs::remove(build_log());
    std::string objects;
    for (size_t i = 0; i < request_.files.size(); ++i) {
      const fs::path object = object_of(i);
      if (auto errors = compile(i, object); !errors.empty()) return errors;
      objects += "\"" + object.string() + "\"\n";
    }
    // The same names may hold other objects.
    for (size_t i = 0; i < request_.files.size(); ++i)
      objects += "-Wl,--defsym=ladder_part_" + std::to_string(i) + "=" +
                 std::to_string(std::hash<std::string>()(text_of(source_of(i))) >> 8) + "\n";
    write_changed(kFolder / "objects.rsp", objects);
    const fs::path& first = request_.files.front();
    const auto errors = errors_of_build("own_kernel", build_log(), first.parent_path(), first);
    return errors ? explained(*errors, first) : std::vector<std::string>{};
  }

  std::string explain(std::vector<std::string>& errors) {
    std::string text;
    for (size_t i = 0; i < request_.files.size() && errors.empty(); ++i) {
      const std::string source = rewrite(i, errors);
      text += own_part(source, request_.files[i]);
    }
    return text;
  }

 private:
  static fs::path object_of(size_t i) { return kFolder / ("part_" + std::to_string(i) + ".o"); }
  static fs::path source_of(size_t i) { return kFolder / ("part_" + std::to_string(i) + ".ii"); }

  bool is_own(const std::string& path, bool is_system) const {
    if (is_system || path.empty() || path[0] == '<') return false;
    const std::string repository = std::string(LADDER_SOURCE_DIR) + "/";
    for (const char* const room :
         {"common/own_kernel/rewrite/", "common/own_kernel/ptx/", "common/cpu_device/"})
      if (path.rfind(repository + room, 0) == 0) return false;
    for (const std::string& root : roots_)
      if (path.rfind(root, 0) == 0) return true;
    return path.rfind(repository, 0) != 0;
  }

  /// What all sources begin with is compiled once, which saves most of the time of a check: g++ leaves a
  /// pragma in the preprocessed source that reads it. Where it does not fit, because a macro of the reader's
  /// is a word in it, the headers are included.
  void compile_headers() const {
    write_changed(kHeaders, kBefore);
#ifndef __clang__
    const fs::path compiled = kHeaders.string() + ".gch", made_by = kHeaders.string() + ".made_by",
                   needs = kHeaders.string() + ".d";
    const std::string how = join(command_, " ");
    if (fs::exists(compiled) && text_of(made_by) == how && is_newer_than_all(compiled, needs)) return;
    fs::remove(compiled);
    for (int i = 0; fs::remove(object_of(i)); ++i) {
    }
    std::vector<std::string> command = command_;
    command.insert(command.end(), {"-MD", "-MF", needs.string(), "-x", "c++-header", kHeaders.string(), "-o",
                                   compiled.string()});
    if (!run_subprocess(command, {.output = build_log(), .errors_too = true}).exit_code)
      write_changed(made_by, how);
#endif
  }

  /// @param needs a Makefile's rule with all files that it was made of
  static bool is_newer_than_all(const fs::path& made, const fs::path& needs) {
    const fs::file_time_type time = fs::last_write_time(made);
    std::istringstream words(text_of(needs));
    for (std::string word; words >> word;) {
      std::error_code error;
      if (word == "\\" || word.back() == ':') continue;
      if (fs::last_write_time(word, error) > time || error) return false;
    }
    return true;
  }

  /// @returns the rewritten source; errors are added
  std::string rewrite(size_t i, std::vector<std::string>& errors) {
    const fs::path& file = request_.files[i];
    const fs::path preprocessed = kFolder / "preprocessed.ii";
    std::vector<std::string> command = command_;
    for (const std::string& definition : request_.definitions) command.push_back("-D" + definition);
    for (const std::string& folder : request_.include_folders) command.push_back("-I" + folder);
    command.insert(command.end(), {"-include", kHeaders.string(), "-fpch-preprocess", "-E", "-x", "c++",
                                   file.string(), "-o", preprocessed.string()});
    if (run_subprocess(command, {.output = build_log(), .errors_too = true}).exit_code) {
      errors = errors_in_log(file);
      return "";
    }
    try {
      return rewritten(text_of(preprocessed),
                       [this](const std::string& path, bool is_system) { return is_own(path, is_system); });
    } catch (const CannotRewrite& error) {
      std::string text = error.what();
      const std::string folder = (file.parent_path() / "").string();
      if (text.rfind(folder, 0) == 0) text.erase(0, folder.size());
      errors.push_back(text);
      return "";
    }
  }

  std::vector<std::string> compile(size_t i, const fs::path& object) {
    std::vector<std::string> errors;
    const std::string source = rewrite(i, errors);
    if (!errors.empty()) return errors;
    if (fs::exists(object) && text_of(source_of(i)) == source) return {};
    fs::remove(object);
    write_changed(source_of(i), source);
    std::vector<std::string> command = command_;
    command.insert(command.end(), {"-fpreprocessed", "-c", "-x", "c++-cpp-output", source_of(i).string(),
                                   "-o", object.string()});
    if (!run_subprocess(command, {.output = build_log(), .errors_too = true}).exit_code) return {};
    return errors_in_log(request_.files[i]);
  }

  /// One line with all names of CUDA's that the compiler does not know in the reader's files; empty if there
  /// are none. Its other errors are mostly of what becomes of lines without them.
  std::string missing_names(const fs::path& file) const {
    constexpr size_t kMost = 4;
    std::string words, meant;
    std::vector<std::string> names;
    for (const std::string& line : split(text_of(build_log()), '\n')) {
      const std::optional<Missing> missing = missing_in(line);
      if (!missing || !is_own(missing->place.substr(0, missing->place.rfind(':')), false) ||
          std::find(names.begin(), names.end(), missing->name) != names.end())
        continue;
      names.push_back(missing->name);
      if (names.size() == 1) {
        const std::string folder = (file.parent_path() / "").string();
        words = missing->place.rfind(folder, 0) == 0 ? missing->place.substr(folder.size()) : missing->place;
        words += ": the CPU device has no ";
      }
      if (names.size() <= kMost) words += (names.size() > 1 ? ", " : "") + missing->name;
      meant = missing->meant;
    }
    if (names.size() == 1 && !meant.empty()) words += ": did you mean " + meant + "?";
    return names.size() > kMost ? words + " and " + std::to_string(names.size() - kMost) + " more" : words;
  }

  std::vector<std::string> errors_in_log(const fs::path& file) const {
    if (const std::string missing = missing_names(file); !missing.empty()) return {missing};
    std::ifstream log(build_log());
    const auto errors = explained(first_errors(log, file.parent_path(), file), file);
    for (const std::string& error : errors)
      if (error.find(": the CPU device has ") != error.npos) return {error};
    return errors.empty() ? std::vector<std::string>{"the compiler fails"} : errors;
  }

  /// The errors, of which each line of the file has one, in words that say what to do where there are any.
  static std::vector<std::string> explained(const std::vector<std::string>& errors, const fs::path& file) {
    const std::vector<std::string> lines = split(text_of(file), '\n');
    const std::string name = file.filename().string();
    std::set<std::string> seen;
    std::vector<std::string> result;
    for (const std::string& said : errors) {
      std::string error = in_terms_of_the_file(said);
      if (error.rfind(name, 0) != 0 && error != said) error = name + ": " + error;
      std::string line, begin = name + ":";
      if (error.rfind(begin, 0) == 0) {
        const size_t number = std::strtoul(error.c_str() + begin.size(), nullptr, 10);
        if (number >= 1) begin += std::to_string(number) + ":";
        if (number >= 1 && number <= lines.size()) line = lines[number - 1];
      }
      for (const auto& [sign, advice] : kAdvice)
        if (error.find(sign) != std::string::npos || line.find(sign) != std::string::npos) {
          error = begin + " " + advice;
          break;
        }
      const bool is_echo = error.rfind("collect2: ", 0) == 0 && !result.empty();
      if (!is_echo && seen.insert(line.empty() ? error : begin).second) result.push_back(error);
    }
    return result;
  }

  /// The lines of `source` that come from the file.
  static std::string own_part(const std::string& source, const fs::path& file) {
    std::string text;
    bool is_in_file = false;
    for (const std::string& line : split(source, '\n')) {
      if (line.rfind("# ", 0) == 0) {
        is_in_file = line.find("\"" + file.string() + "\"") != line.npos;
      } else if (is_in_file) {
        text += line + "\n";
      }
    }
    return text;
  }

  const BuildRequest& request_;
  std::vector<std::string> command_;
  std::set<std::string> roots_;
};

}  // namespace

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

fs::path build_log() { return fs::path(LADDER_BINARY_DIR) / "check.log"; }

std::vector<std::string> build_own_kernel(const BuildRequest& request) { return Build(request).run(); }

std::string explain_build(const BuildRequest& request, std::vector<std::string>& errors) {
  return Build(request).explain(errors);
}

}  // namespace ladder
