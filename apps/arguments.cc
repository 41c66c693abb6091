// The argument parser behind its interface; command_line.cc checks the line before it.
#include "apps/arguments.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "apps/command_line.h"
#include "apps/usage_error.h"

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
      return text.front() == '-' ? text + " is too little: at least " + std::to_string(Limits::min())
                                 : text + " is too large: at most " + std::to_string(Limits::max());
    }
    if (!whole || error != std::errc()) {
      return "\"" + text + "\" is not a whole number" + (Limits::is_signed ? "" : " from 0 up");
    }
    text = std::to_string(value);
    return {};
  };
  return option->transform(CLI::Validator(normalise, ""));
}

/// Likewise; and "" would be taken for none given.
CLI::Option* decimal_fraction(CLI::Option* option) {
  return option->check(CLI::Validator(
      [](std::string& text) {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
        return whole ? std::string() : "\"" + text + "\" is not a number";
      },
      ""));
}

/// A check of an option's own limits, which are said rather than those of its type. What is no number is left
/// to the check of that.
CLI::Option* before_the_type(CLI::Option* option, std::function<bool(double)> fits,
                             const std::string& complaint, const std::string& type) {
  const auto check = [fits = std::move(fits), complaint](std::string& text) -> std::string {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = end == text.data() + text.size() && error == std::errc() && std::isfinite(value);
    return is_number && !fits(value) ? text + complaint : std::string();
  };
  return option->transform(
      CLI::Validator(check, type));  // transforms run in front of checks, the last one first
}

CLI::Option* not_empty(CLI::Option* option) {
  return option->check(CLI::Validator(
      [](std::string& text) { return text.empty() ? std::string("the value is empty") : std::string(); },
      ""));
}

/// A list takes one value a mention: further words are no more values of it.
CLI::Option* one_a_mention(CLI::Option* option) { return option->allow_extra_args(false); }

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

}  // namespace

Argument Argument::required() { return Argument(option_->required()); }
Argument Argument::type(const std::string& name) { return Argument(option_->type_name(name)); }
Argument Argument::range(int64_t low, int64_t high) {
  const std::string range = std::to_string(low) + " ... " + std::to_string(high);
  return Argument(before_the_type(
      option_,
      [=](double value) { return value >= static_cast<double>(low) && value <= static_cast<double>(high); },
      " is outside " + range, range));
}

Argument Argument::at_least(double low) {
  return Argument(before_the_type(
      option_, [low](double value) { return value >= low; },
      " is too little: at least " + CLI::detail::to_string(low), ""));
}

Argument Argument::one_of(const std::vector<std::string>& values) {
  return check(
      [values](const std::string& text) {
        const bool known = std::find(values.begin(), values.end(), text) != values.end();
        return known ? std::string() : "\"" + text + "\" is none of " + joined(values, ", ");
      },
      "{" + joined(values, ",") + "}");
}

Argument Argument::check(std::function<std::string(const std::string&)> check, const std::string& type) {
  return Argument(option_->check(
      CLI::Validator([check = std::move(check)](std::string& text) { return check(text); }, type)));
}

Argument Argument::accepted_by(std::function<void(const std::string&)> parse) {
  const std::string name = option_->get_name();
  return check([name, parse = std::move(parse)](const std::string& text) -> std::string {
    try {
      parse(text);
      return {};
    } catch (const Error& error) {
      const std::string message = error.what();
      if (message.starts_with(name)) throw UsageError(message);
      return message;
    }
  });
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
  return Argument(not_empty(app_->add_option(name, value, help)));
}
Argument Command::option(const std::string& name, std::filesystem::path& value, const std::string& help) {
  return Argument(not_empty(app_->add_option(name, value, help)));
}
Argument Command::option(const std::string& name, int& value, const std::string& help) {
  return Argument(decimal<int>(app_->add_option(name, value, help)));
}
Argument Command::option(const std::string& name, int64_t& value, const std::string& help) {
  return Argument(decimal<int64_t>(app_->add_option(name, value, help)));
}
Argument Command::option(const std::string& name, double& value, const std::string& help) {
  return Argument(decimal_fraction(app_->add_option(name, value, help)));
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
  return Argument(decimal_fraction(app_->add_option(name, value, help)));
}
Argument Command::option(const std::string& name, std::vector<std::string>& value, const std::string& help) {
  return Argument(not_empty(one_a_mention(app_->add_option(name, value, help))));
}
Argument Command::flag(const std::string& name, bool& value, const std::string& help) {
  return Argument(app_->add_flag(name, value, help));
}

void Command::remove(const std::vector<std::string>& names) {
  for (const std::string& name : names) app_->remove_option(app_->get_option(name));
}

void Command::footer(const std::string& text) { app_->footer(text); }
void Command::action(std::function<void()> body) { app_->callback(std::move(body)); }

void run_program(int argc, char** argv, const std::string& description, const std::string& footer,
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
  check_command_line(program, arguments);
  std::reverse(arguments.begin(), arguments.end());  // the parser takes them last to first
  try {
    program.parse(std::move(arguments));
  } catch (const CLI::Success& asked) {
    program.exit(asked);
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
}

std::vector<int64_t> parse_numbers(const std::string& option, const std::vector<std::string>& texts,
                                   int64_t low, int64_t high) {
  std::vector<int64_t> numbers;
  for (const std::string& text : texts) {
    int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || end != text.data() + text.size() || n < low || n > high) {
      throw UsageError(option + ": '" + text + "' is no number from " + std::to_string(low) + " to " +
                       std::to_string(high));
    }
    numbers.push_back(n);
  }
  return numbers;
}

}  // namespace sluice::apps
