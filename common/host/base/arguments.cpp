/// @file
/// The command line of a program. No other file includes CLI11.
#include "common/host/base/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>

#include "common/host/base/text.hpp"

namespace ladder {
namespace {

/// Help beside an option's name, which takes 30 columns. CLI11 indents its lines.
std::string described(const std::string& help) { return wrapped(help, kTerminalColumns - 30, "\n"); }

/// How many letters must be changed, added or left out to make one word of the other.
size_t distance(const std::string& one, const std::string& other) {
  std::vector<size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= one.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= other.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (one[i - 1] != other[j - 1])});
      diagonal = above;
    }
  }
  return row[other.size()];
}

/// The words that the program would have understood there.
void add_words(const CLI::App& app, bool are_options, std::vector<std::string>& words) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!are_options) words.push_back(command->get_name());
    if (command->parsed()) add_words(*command, are_options, words);
  }
  if (!are_options) return;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())  // else it is hidden
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
}

/// Of the words that are left over the one that is wrong: a value may stand behind it.
std::string wrong_word(const CLI::App& app, int argc, const char* const* argv) {
  const std::vector<std::string> left = app.remaining(true);
  const auto is_left = [&](const std::string& word) {
    return std::find(left.begin(), left.end(), word) != left.end();
  };
  std::string wrong = left.empty() ? "" : left.front();
  for (int i = argc; i-- > 1;)
    if (is_left(argv[i])) wrong = argv[i];
  for (int i = argc; i-- > 1;)
    if (argv[i][0] == '-' && is_left(argv[i])) wrong = argv[i];
  return wrong.substr(0, wrong.find('='));
}

/// What is said of a word that the program does not have.
/// @param meanings words that nobody may give, and those that they stand for
std::string not_understood(const CLI::App& app, const std::string& name,
                           const std::map<std::string, std::string>& meanings) {
  const bool is_option = name.rfind('-', 0) == 0;
  std::vector<std::string> words;
  add_words(app, is_option, words);
  for (const auto& [word, meant] : meanings)
    if ((word[0] == '-') == is_option) words.push_back(word);
  std::string closest;
  for (const std::string& word : words) {
    const size_t letters = distance(name, word);
    if (letters <= 2 && letters < word.size() / 2 && (closest.empty() || letters < distance(name, closest)))
      closest = word;
  }
  return name + ": there is no such " + (is_option ? "option" : "word") +
         (closest.empty()
              ? "; --help lists what there is"
              : "; did you mean " + (meanings.count(closest) ? meanings.at(closest) : closest) + "?");
}

}  // namespace

Arguments::Arguments(const std::string& description, const std::string& program)
    : app_(std::make_shared<CLI::App>(description, program)) {}

Arguments::Arguments(std::shared_ptr<CLI::App> app) : app_(std::move(app)) {}

void Arguments::add_option(const std::string& name, std::string& value, const std::string& type,
                           const std::string& help) {
  app_->add_option(name, value, described(help))->type_name(type);
}

void Arguments::add_option(const std::string& name, std::vector<std::string>& values, const std::string& type,
                           const std::string& help) {
  // Without the last call, CLI11 would take the words that follow for values too.
  app_->add_option(name, values, described(help))->type_name(type)->allow_extra_args(false);
}

void Arguments::add_option(const std::string& name, double& value, const std::string& type,
                           const std::string& help) {
  app_->add_option(name, value, described(help))->type_name(type);
}

void Arguments::add_option(const std::string& name, std::optional<double>& value, const std::string& type,
                           const std::string& help) {
  app_->add_option(name, value, described(help))->type_name(type);
}

void Arguments::add_hidden_option(const std::string& name, std::optional<double>& value) {
  app_->add_option(name, value)->group("");
}

void Arguments::add_flag(const std::string& name, bool& value, const std::string& help) {
  app_->add_flag(name, value, described(help));
}

void Arguments::add_flag(const std::string& name, const std::function<void()>& given,
                         const std::string& help) {
  app_->add_flag_callback(name, given, described(help));
}

void Arguments::require(const std::string& name) { app_->get_option(name)->required(); }

void Arguments::exclude(const std::string& name, const std::string& other) {
  app_->get_option(name)->excludes(app_->get_option(other));
}

void Arguments::suggest(const std::string& word, const std::string& meant) { meanings_[word] = meant; }

void Arguments::refuse(const std::string& name, const std::string& why) { refused_[name] = why; }

void Arguments::set_footer(const std::string& text) { app_->footer(text); }

Arguments Arguments::add_command(const std::string& name, const std::string& help) {
  app_->add_subcommand(name, help);
  return Arguments(app_->get_subcommand_ptr(name));
}

bool Arguments::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
    return true;
  } catch (const CLI::Success& help) {
    app_->exit(help, std::cout, std::cerr);
    return false;
  } catch (const CLI::ExtrasError&) {
    const std::string wrong = wrong_word(*app_, argc, argv);
    if (const auto found = refused_.find(wrong); found != refused_.end())
      throw std::invalid_argument(wrong + ": " + found->second);
    throw BadArguments(not_understood(*app_, wrong, meanings_));
  } catch (const CLI::ParseError& error) {
    throw BadArguments(error.what());
  }
}

bool Arguments::has(const std::string& name) const { return app_->count(name) > 0; }

bool Arguments::chosen() const { return app_->parsed(); }

}  // namespace ladder
