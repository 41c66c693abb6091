// The program: one subcommand a job. Exit codes: 0 done, 1 an error of input, files or system, 2 a command
// line that is wrong in itself, 130 stopped by Ctrl-C.
#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>
#include <string>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/messages.h"
#include "apps/usage_error.h"
#include "base/cpu.h"
#include "base/error.h"
#include "version.h"

namespace {

constexpr int kWrongUsage = 2;
constexpr int kStoppedByCtrlC = 130;  // what a shell makes of SIGINT

std::string backends() {
#if SLUICE_CUDA
  return "host, cuda";
#else
  return "host";
#endif
}

std::string version_text() {
  return std::string("sluice ") + SLUICE_VERSION + " (commit " + SLUICE_COMMIT +
         ")\nbackends: " + backends() + "\nSIMD: " + std::string(sluice::name_of(sluice::simd_level()));
}

int fail(const std::string& message, int code = 1) {
  std::fflush(stdout);
  sluice::apps::print_message(message);
  return code;
}

// A write that failed in between leaves its mark: by now the buffer may be empty again.
bool standard_output_is_whole() {
  const bool help_is_whole = static_cast<bool>(std::cout.flush());
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && help_is_whole;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe becomes a write error, not a silent death;
  std::signal(SIGXFSZ, SIG_IGN);  // so does a file that grows beyond `ulimit -f`
  try {
    sluice::apps::run_program(
        argc, argv, "Sluice serves Mixture-of-Experts language models that are bigger than the GPU.",
        "`sluice COMMAND --help` explains a command.\n"
        "Exit codes: 0 done, 1 error, 2 wrong usage (the command line itself is wrong, whatever the files "
        "and\n"
        "the model are), 130 stopped by Ctrl-C.",
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
          sluice::apps::add_synth(program);
          sluice::apps::add_plan(program);
          sluice::apps::add_pull(program);
        });
  } catch (const sluice::apps::UsageError& error) {
    return fail(error.what(), kWrongUsage);
  } catch (const sluice::Error& error) {
    return fail(error.what(), error.code() == sluice::ErrorCode::kCancelled ? kStoppedByCtrlC : 1);
  } catch (const std::bad_alloc&) {
    return fail("out of memory");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
  return standard_output_is_whole() ? 0 : fail("cannot write to standard output");
}
