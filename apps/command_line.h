// The shape of a command line: names of commands and options, and how often they stand there.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sluice::apps {

/// Throws UsageError for the first thing that is wrong with `arguments` apart from the values themselves.
/// (The parser would name a missing option before an unknown one, and speak of its own types.)
void check_command_line(const CLI::App& program, const std::vector<std::string>& arguments);

}  // namespace sluice::apps
