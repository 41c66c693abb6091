// Files stand for the program's streams: nothing can block, whatever the order of writes.
#include "apps/program.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace sluice::testing {
namespace {

struct CloseFile {
  void operator()(FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<FILE, CloseFile>;

File temporary_file(const std::string& content) {
  File file(std::tmpfile());
  if (!file) throw std::runtime_error("cannot create a temporary file");
  std::fwrite(content.data(), 1, content.size(), file.get());
  std::rewind(file.get());
  return file;
}

std::string content_of(FILE* file) {
  std::rewind(file);
  std::string text;
  char buffer[1 << 12];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, file)) text.append(buffer, n);
  return text;
}

}  // namespace

void execute_program(const Arguments& arguments, const Arguments& environment) {
  for (const std::string& entry : environment) {
    const size_t equals = entry.find('=');
    ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  std::vector<char*> argv;
  std::string name = "sluice";
  argv.push_back(name.data());
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(SLUICE_PROGRAM, argv.data());
  std::fprintf(stderr, "cannot run %s\n", SLUICE_PROGRAM);
  ::_exit(127);
}

namespace {

Outcome run_with(FILE* out, const Arguments& arguments, const std::string& input,
                 const Arguments& environment) {
  const File in = temporary_file(input), err = temporary_file("");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    ::dup2(::fileno(in.get()), STDIN_FILENO);
    ::dup2(::fileno(out), STDOUT_FILENO);
    ::dup2(::fileno(err.get()), STDERR_FILENO);
    execute_program(arguments, environment);
  }
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, "", content_of(err.get()),
          static_cast<int64_t>(usage.ru_maxrss) * 1024};
}

}  // namespace

Outcome run_program(const Arguments& arguments, const std::string& input, const Arguments& environment) {
  const File out = temporary_file("");
  Outcome outcome = run_with(out.get(), arguments, input, environment);
  outcome.out = content_of(out.get());
  return outcome;
}

Outcome run_program_into(const std::filesystem::path& file, const Arguments& arguments,
                         const std::string& input) {
  const File out(std::fopen(file.c_str(), "we"));
  if (!out) throw std::runtime_error("cannot open " + file.string());
  return run_with(out.get(), arguments, input, {});
}

namespace {

Outcome expect_one_line(int exit_code, const Arguments& arguments, const std::vector<std::string>& parts,
                        const std::string& input) {
  SCOPED_TRACE(::testing::PrintToString(arguments));
  Outcome outcome = run_program(arguments, input);
  EXPECT_EQ(outcome.exit_code, exit_code);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_THAT(outcome.err, ::testing::AllOf(::testing::StartsWith("sluice: "), ::testing::EndsWith("\n")));
  for (const std::string& part : parts) EXPECT_THAT(outcome.err, ::testing::HasSubstr(part));
  return outcome;
}

}  // namespace

Outcome expect_refusal(const Arguments& arguments, const std::vector<std::string>& parts,
                       const std::string& input) {
  return expect_one_line(1, arguments, parts, input);
}

void expect_wrong_usage(const Arguments& arguments, const std::vector<std::string>& parts,
                        const std::string& input) {
  expect_one_line(2, arguments, parts, input);
}

}  // namespace sluice::testing
