// The program: one subcommand a job. Exit codes: 0 done, 1 an error of input, files or system, 2 wrong usage.
#include <csignal>
#include <cstdio>
#include <new>
#include <string>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "base/cpu.h"
#include "base/error.h"
#include "version.h"

namespace {

std::string version_text() {
  return std::string("sluice ") + SLUICE_VERSION + " (commit " + SLUICE_COMMIT +
         ")\nbackends: host\nSIMD: " + std::string(sluice::name_of(sluice::simd_level()));
}

// One line, whatever the message held: scripts read it.
int fail(const std::string& message) {
  std::string line = message;
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  std::fflush(stdout);
  std::fprintf(stderr, "sluice: %s\n", line.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe becomes a write error, not a silent death
  try {
    const int code = sluice::apps::run_program(
        argc, argv, "Sluice serves Mixture-of-Experts language models that are bigger than the GPU.",
        "`sluice COMMAND --help` explains a command. Exit codes: 0 done, 1 error, 2 wrong usage.",
        version_text, [](sluice::apps::Command& program) {
          sluice::apps::add_run(program);
          sluice::apps::add_chat(program);
          sluice::apps::add_eval(program);
          sluice::apps::add_tokenize(program);
          sluice::apps::add_render(program);
          sluice::apps::add_inspect(program);
          sluice::apps::add_convert(program);
          sluice::apps::add_trace(program);
          sluice::apps::add_bench(program);
          sluice::apps::add_plan(program);
        });
    if (code != 0) return code;
  } catch (const sluice::Error& error) {
    return fail(error.what());
  } catch (const std::bad_alloc&) {
    return fail("out of memory");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
  if (std::fflush(stdout) != 0) return fail("cannot write to standard output");
  return 0;
}
