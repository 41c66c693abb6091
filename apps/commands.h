// The commands of the program. Each function adds one subcommand; its callback does the work and throws
// Error.
#pragma once

namespace CLI {
class App;
}

namespace sluice::apps {

void add_run(CLI::App& program);
void add_chat(CLI::App& program);
void add_eval(CLI::App& program);
void add_tokenize(CLI::App& program);
void add_render(CLI::App& program);
void add_inspect(CLI::App& program);
void add_convert(CLI::App& program);

}  // namespace sluice::apps
