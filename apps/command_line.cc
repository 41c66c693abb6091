// Checks a command line word by word, as the parser will read it.
#include "apps/command_line.h"

#include <CLI/CLI.hpp>

#include <map>

#include "apps/usage_error.h"

namespace sluice::apps {
namespace {

const CLI::App* subcommand_of(const CLI::App& app, const std::string& name) {
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (sub->get_name() == name) return sub;
  }
  return nullptr;
}

std::string commands_of(const CLI::App& app) {
  std::string names;
  for (const CLI::App* sub : app.get_subcommands({})) names += (names.empty() ? "" : ", ") + sub->get_name();
  return (app.get_parent() == nullptr ? "the commands are: " : "known here: ") + names;
}

std::string path_of(const CLI::App& app) {
  return (app.get_parent() == nullptr ? "" : path_of(*app.get_parent()) + " ") + app.get_name();
}

class Reader {
 public:
  Reader(const CLI::App& program, const std::vector<std::string>& words) : app_(&program), words_(words) {}

  /// False where the help or the version was asked for: then nothing else matters.
  bool read() {
    for (; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      if (word == "--") {
        for (++at_; at_ < words_.size(); ++at_) read_positional(words_[at_]);
        return true;
      }
      if (!word.starts_with("-") || word == "-") {
        read_positional(word);
      } else if (!read_option(word)) {
        return false;
      }
    }
    return true;
  }

  void check_what_is_given() const {
    if (!app_->get_subcommands({}).empty()) {
      const bool is_root = app_->get_parent() == nullptr;
      throw UsageError((is_root ? "a command is missing" : app_->get_name() + " needs a command") + "; " +
                       commands_of(*app_));
    }
    for (const CLI::Option* option : app_->get_options()) {
      if (option->get_required() && !given(option)) throw UsageError(option->get_name() + " is required");
      if (!given(option)) continue;
      for (const CLI::Option* other : option->get_needs()) {
        if (!given(other)) throw UsageError(option->get_name() + " needs " + other->get_name());
      }
      for (const CLI::Option* other : option->get_excludes()) {
        if (given(other)) {
          throw UsageError(option->get_name() + " and " + other->get_name() + " exclude each other");
        }
      }
    }
  }

 private:
  bool given(const CLI::Option* option) const { return times_.count(option) > 0; }

  void read_positional(const std::string& word) {
    if (!app_->get_subcommands({}).empty()) {
      const CLI::App* sub = subcommand_of(*app_, word);
      if (sub == nullptr) throw UsageError("unknown command \"" + word + "\"; " + commands_of(*app_));
      app_ = sub;
      return;
    }
    for (const CLI::Option* option : app_->get_options()) {
      if (option->get_positional() && !given(option)) return void(++times_[option]);
    }
    throw UsageError("unexpected argument \"" + word + "\"; `" + path_of(*app_) +
                     " --help` lists the options");
  }

  bool read_option(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const CLI::Option* option = app_->get_option_no_throw(name);
    if (option == nullptr) {
      throw UsageError("unknown option " + name + "; `" + path_of(*app_) + " --help` lists the options");
    }
    if (option == app_->get_help_ptr() || name == "--version") return false;
    ++times_[option];
    const bool is_flag = option->get_items_expected_max() == 0;
    if (is_flag) {
      if (equals != std::string::npos) throw UsageError(name + " takes no value");
      return true;
    }
    if (times_[option] > 1 && option->get_items_expected_max() == 1) {
      throw UsageError(name + " is given twice");
    }
    if (equals == word.size() - 1) throw UsageError(name + " needs a value");
    if (equals == std::string::npos) skip_value(name);
    check_list(*option, equals == std::string::npos ? words_[at_] : word.substr(equals + 1));
    return true;
  }

  /// An option's name in the place of a value is a value that was forgotten; NAME=VALUE takes any.
  void skip_value(const std::string& name) {
    ++at_;
    const bool missing = at_ == words_.size() ||
                         (words_[at_].starts_with("--") && app_->get_option_no_throw(words_[at_]) != nullptr);
    if (missing) throw UsageError(name + " needs a value");
  }

  /// The parser itself would drop empty items, and take the next words in the place of a list of nothing
  /// else.
  static void check_list(const CLI::Option& option, const std::string& value) {
    const char delimiter = option.get_delimiter();
    if (delimiter == '\0' || value.empty()) return;
    if (value.front() != delimiter && value.back() != delimiter &&
        value.find(std::string(2, delimiter)) == std::string::npos) {
      return;
    }
    throw UsageError(option.get_name() + " " + value + ": an item of the list is empty");
  }

  const CLI::App* app_;
  const std::vector<std::string>& words_;
  size_t at_ = 0;
  std::map<const CLI::Option*, int> times_;
};

}  // namespace

void check_command_line(const CLI::App& program, const std::vector<std::string>& arguments) {
  Reader reader(program, arguments);
  if (reader.read()) reader.check_what_is_given();
}

}  // namespace sluice::apps
