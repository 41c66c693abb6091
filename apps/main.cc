// The program: one subcommand a job. Exit codes: 0 done, 1 an error of input, files or system, 2 wrong usage,
// 130 stopped by Ctrl-C.
#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>
#include <string>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "base/cpu.h"
#include "base/error.h"
#include "version.h"

namespace {

constexpr int kStoppedByCtrlC = 130;  // what a shell makes of SIGINT

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

// A write that failed in between leaves its mark: by now the buffer may be empty again.
bool standard_output_is_whole() {
  const bool help_is_whole = static_cast<bool>(std::cout.flush());
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && help_is_whole;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe becomes a write error, not a silent death
  try {
    const int code = sluice::apps::run_program(
        argc, argv, "Sluice serves Mixture-of-Experts language models that are bigger than the GPU.",
        "`sluice COMMAND --help` explains a command.\n"
        "Exit codes: 0 done, 1 error, 2 wrong usage, 130 stopped by Ctrl-C.",
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
    const int code = fail(error.what());
    return error.code() == sluice::ErrorCode::kCancelled ? kStoppedByCtrlC : code;
  } catch (const std::bad_alloc&) {
    return fail("out of memory");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
  return standard_output_is_whole() ? 0 : fail("cannot write to standard output");
}
