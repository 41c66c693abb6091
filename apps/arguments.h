// Command-line arguments, without the parser's header: it takes 20 s to compile, and only arguments.cc
// includes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sluice::apps {

/// The whole numbers that an option's list holds, each from `low` to `high`. Throws UsageError that names the
/// option and the first that is none.
std::vector<int64_t> parse_numbers(const std::string& option, const std::vector<std::string>& texts,
                                   int64_t low, int64_t high);

/// An option or flag that was added; the methods refine it. Numbers are decimal and refused where their type
/// cannot hold them; a value is never empty, except where it is an optional text. A view, valid as long as
/// the program's parser.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}
  Argument required();
  Argument type(const std::string& name);  // what stands for the value in the help: FILE, DIR
  Argument range(int64_t low, int64_t high);
  Argument at_least(double low);
  Argument one_of(const std::vector<std::string>& values);
  /// `check` returns what is wrong with a value, or nothing. `type` says in the help what values there are.
  Argument check(std::function<std::string(const std::string&)> check, const std::string& type = "");
  /// `parse` throws Error for a value that is wrong.
  Argument accepted_by(std::function<void(const std::string&)> parse);
  Argument excludes(Argument other);
  Argument needs(Argument other);
  Argument group(const std::string& title);  // an empty title hides it from the help
  Argument advanced();                       // shown by --help-advanced alone, with its default
  Argument show_default();
  Argument separated_by(char delimiter);  // "a,b,c" for a list

 private:
  CLI::Option* option_;
};

/// A command of the program. A view, valid as long as the program's parser.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command subcommand(const std::string& name, const std::string& help);
  void require_subcommand();  // one of those added; a name that is none of them is refused with the list

  Argument option(const std::string& name, std::string& value, const std::string& help);
  Argument option(const std::string& name, std::filesystem::path& value, const std::string& help);
  Argument option(const std::string& name, int& value, const std::string& help);
  Argument option(const std::string& name, int64_t& value, const std::string& help);
  Argument option(const std::string& name, double& value, const std::string& help);
  Argument option(const std::string& name, std::optional<std::string>& value, const std::string& help);
  Argument option(const std::string& name, std::optional<int64_t>& value, const std::string& help);
  Argument option(const std::string& name, std::optional<uint64_t>& value, const std::string& help);
  Argument option(const std::string& name, std::optional<double>& value, const std::string& help);
  Argument option(const std::string& name, std::vector<std::string>& value, const std::string& help);
  Argument flag(const std::string& name, bool& value, const std::string& help);
  /// Takes back options that would have no effect in this command.
  void remove(const std::vector<std::string>& names);

  void footer(const std::string& text);
  /// What the command does once its arguments are parsed.
  void action(std::function<void()> body);

 private:
  CLI::App* app_;
};

/// Parses the arguments of the program and runs the chosen command, or prints the help or the version. `add`
/// adds the commands. Throws UsageError; what a command throws passes through.
void run_program(int argc, char** argv, const std::string& description, const std::string& footer,
                 const std::function<std::string()>& version, const std::function<void(Command&)>& add);

}  // namespace sluice::apps
