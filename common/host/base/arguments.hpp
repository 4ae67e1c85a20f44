/// @file
/// The command line of a program: what it can be given, what --help says of that, and what was given. It is
/// read by CLI11, which only arguments.cpp includes, because that takes seconds to compile.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ladder {

/// A command line that does not fit the program: an option that it does not have, or that lacks its value.
struct BadArguments : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a program can be given. Options have names like "--json" or "-o,--output"; a name without dashes is
/// that of a word known by its place. In --help `type` stands for the value. What values are written to must
/// live until parse() has returned.
class Arguments {
 public:
  /// @param description what --help begins with
  Arguments(const std::string& description, const std::string& program);

  /// An option with a value, which is kept as it is.
  void add_option(const std::string& name, std::string& value, const std::string& type,
                  const std::string& help);
  /// An option that can be given several times.
  void add_option(const std::string& name, std::vector<std::string>& values, const std::string& type,
                  const std::string& help);
  /// An option whose value is a number.
  void add_option(const std::string& name, double& value, const std::string& type, const std::string& help);
  void add_option(const std::string& name, std::optional<double>& value, const std::string& type,
                  const std::string& help);
  /// An option that one program passes on to another: it is not in --help.
  void add_hidden_option(const std::string& name, std::optional<double>& value);
  /// An option without a value, which makes `value` true, or calls the function.
  void add_flag(const std::string& name, bool& value, const std::string& help);
  void add_flag(const std::string& name, const std::function<void()>& given, const std::string& help);

  /// What was added must be given.
  void require(const std::string& name);
  /// Of the two options, only one may be given.
  void exclude(const std::string& name, const std::string& other);
  /// Who gives `word`, or one like it, which there is not, is asked whether it is `meant`: "--timeline" for
  /// "--trace".
  void suggest(const std::string& word, const std::string& meant);
  /// Who gives the option `name`, which there is not, is told why. Nothing else is said of it, as --help does
  /// not list it.
  void refuse(const std::string& name, const std::string& why);
  /// What --help ends with.
  void set_footer(const std::string& text);
  /// The first word may be this name; then what follows are arguments of the command's own.
  Arguments add_command(const std::string& name, const std::string& help);

  /// Reads argv. @returns false if that was all, as with --help. @throws BadArguments, or
  /// std::invalid_argument for an option that is refused
  bool parse(int argc, const char* const* argv);
  /// After parsing: was the option given?
  bool has(const std::string& name) const;
  /// After parsing: was this command chosen?
  bool chosen() const;

 private:
  explicit Arguments(std::shared_ptr<CLI::App> app);

  std::shared_ptr<CLI::App> app_;
  std::map<std::string, std::string> meanings_;
  std::map<std::string, std::string> refused_;  ///< options, and why
};

}  // namespace ladder
