/// @file
/// The command line of a program. No other file includes CLI11.
#include "common/host/base/arguments.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "common/host/base/text.hpp"

namespace ladder {
namespace {

/// Help beside an option's name, which takes 30 columns. CLI11 indents its lines.
std::string described(const std::string& help) { return wrapped(help, kTerminalColumns - 30, "\n"); }

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
  } catch (const CLI::ParseError& error) {
    throw BadArguments(error.what());
  }
}

bool Arguments::has(const std::string& name) const { return app_->count(name) > 0; }

bool Arguments::chosen() const { return app_->parsed(); }

}  // namespace ladder
