// The only file that sees the argument parser.
#include "apps/arguments.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <limits>

namespace sluice::apps {
namespace {

constexpr const char* kAdvanced = "Advanced: for comparison with other engines";
bool show_advanced = false;  // set once, before the commands are added

/// Leaves the advanced group out of the help unless asked for. (An empty group would take the options' names
/// out of error messages too.)
class HelpText final : public CLI::Formatter {
 public:
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (group == kAdvanced && !show_advanced) return "";
    return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
  }
  std::string make_footer(const CLI::App* app) const override {
    const std::string footer = CLI::Formatter::make_footer(app);
    const auto hidden =
        app->get_options([](const CLI::Option* option) { return option->get_group() == kAdvanced; });
    if (hidden.empty() || show_advanced) return footer;
    return footer + "\n--help-advanced shows " + std::to_string(hidden.size()) +
           " more options, for comparison with other engines.\n";
  }
};

/// The parser itself would wrap, saturate, and take 010 for eight.
template <class Number>
CLI::Option* decimal(CLI::Option* option) {
  const auto normalise = [](std::string& text) -> std::string {
    using Limits = std::numeric_limits<Number>;
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = end == text.data() + text.size() && !text.empty();
    if (whole && error == std::errc::result_out_of_range) {
      return text + " is outside " + std::to_string(Limits::min()) + " ... " + std::to_string(Limits::max());
    }
    if (!whole || error != std::errc()) {
      return "\"" + text + "\" is not a whole number" + (Limits::is_signed ? "" : " from 0 up");
    }
    text = std::to_string(value);
    return {};
  };
  return option->transform(CLI::Validator(normalise, ""));
}

bool has_subcommand(const CLI::App& app, const std::string& name) {
  const auto all = app.get_subcommands({});
  return std::any_of(all.begin(), all.end(), [&](const CLI::App* sub) { return sub->get_name() == name; });
}

/// What is wrong with the names of commands at the beginning of the line, or nothing. (The parser only says
/// that one is required.)
std::string problem_of_commands(const CLI::App& program, const std::vector<std::string>& arguments) {
  const CLI::App* app = &program;
  for (const std::string& name : arguments) {
    const auto known = app->get_subcommands({});
    if (known.empty() || name.starts_with("-")) return {};
    if (!has_subcommand(*app, name)) {
      std::string names;
      for (const CLI::App* sub : known) names += (names.empty() ? "" : ", ") + sub->get_name();
      return "unknown command \"" + name + "\"; " +
             (app == &program ? "the commands are: " : "known here: ") + names;
    }
    app = app->get_subcommand(name);
  }
  return {};
}

}  // namespace

Argument Argument::required() { return Argument(option_->required()); }
Argument Argument::type(const std::string& name) { return Argument(option_->type_name(name)); }
Argument Argument::range(int64_t low, int64_t high) {
  return Argument(option_->check(CLI::Range(low, high)));
}

Argument Argument::at_least(double low) {
  return check(
      [low](std::string& text) {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value)) return "\"" + text + "\" is not a number";
        return value >= low ? std::string() : "must be at least " + CLI::detail::to_string(low);
      },
      "");
}

Argument Argument::one_of(const std::vector<std::string>& values) {
  return Argument(option_->check(CLI::IsMember(values)));
}

Argument Argument::check(std::function<std::string(std::string&)> check, const std::string& name) {
  return Argument(option_->check(CLI::Validator(std::move(check), "", name)));
}

Argument Argument::excludes(Argument other) { return Argument(option_->excludes(other.option_)); }
Argument Argument::needs(Argument other) { return Argument(option_->needs(other.option_)); }
Argument Argument::group(const std::string& title) { return Argument(option_->group(title)); }
Argument Argument::advanced() { return Argument(option_->group(kAdvanced)->capture_default_str()); }
Argument Argument::show_default() { return Argument(option_->capture_default_str()); }
Argument Argument::separated_by(char delimiter) { return Argument(option_->delimiter(delimiter)); }

Command Command::subcommand(const std::string& name, const std::string& help) {
  return Command(app_->add_subcommand(name, help));
}
void Command::require_subcommand() { app_->require_subcommand(1); }

Argument Command::option(const std::string& name, std::string& value, const std::string& help) {
  return Argument(app_->add_option(name, value, help));
}
Argument Command::option(const std::string& name, std::filesystem::path& value, const std::string& help) {
  return Argument(app_->add_option(name, value, help));
}
Argument Command::option(const std::string& name, int& value, const std::string& help) {
  return Argument(decimal<int>(app_->add_option(name, value, help)));
}
Argument Command::option(const std::string& name, int64_t& value, const std::string& help) {
  return Argument(decimal<int64_t>(app_->add_option(name, value, help)));
}
Argument Command::option(const std::string& name, double& value, const std::string& help) {
  return Argument(app_->add_option(name, value, help));
}
Argument Command::option(const std::string& name, std::optional<std::string>& value,
                         const std::string& help) {
  return Argument(app_->add_option(name, value, help));
}
Argument Command::option(const std::string& name, std::optional<int64_t>& value, const std::string& help) {
  return Argument(decimal<int64_t>(app_->add_option(name, value, help)));
}
Argument Command::option(const std::string& name, std::optional<uint64_t>& value, const std::string& help) {
  return Argument(decimal<uint64_t>(app_->add_option(name, value, help)));
}
Argument Command::option(const std::string& name, std::optional<double>& value, const std::string& help) {
  return Argument(app_->add_option(name, value, help));
}
Argument Command::option(const std::string& name, std::vector<std::string>& value, const std::string& help) {
  return Argument(app_->add_option(name, value, help));
}
Argument Command::flag(const std::string& name, bool& value, const std::string& help) {
  return Argument(app_->add_flag(name, value, help));
}

void Command::footer(const std::string& text) { app_->footer(text); }
void Command::action(std::function<void()> body) { app_->callback(std::move(body)); }

int run_program(int argc, char** argv, const std::string& description, const std::string& footer,
                const std::function<std::string()>& version, const std::function<void(Command&)>& add) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    show_advanced = show_advanced || argument == "--help-advanced";
    arguments.push_back(argument == "--help-advanced" ? "--help" : argument);
  }
  CLI::App program(description, "sluice");
  program.formatter(std::make_shared<HelpText>());  // commands inherit it
  program.require_subcommand(1);
  program.footer(footer);
  program.add_flag_callback(
      "--version", [&] { throw CLI::CallForVersion(version(), 0); },
      "Version, commit, backends and SIMD level");
  Command root(&program);
  add(root);
  if (const std::string problem = problem_of_commands(program, arguments); !problem.empty()) {
    std::cerr << "sluice: " << problem << '\n';
    return 2;
  }
  std::reverse(arguments.begin(), arguments.end());  // the parser takes them last to first
  try {
    program.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  }
  return 0;
}

}  // namespace sluice::apps
