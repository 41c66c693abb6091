// Ctrl-C while `run` read a long prompt did nothing until the first token, and the exit code was 0.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "apps/program.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "issues/small_model.h"

namespace sluice::testing {
namespace {

/// Whether the process catches SIGINT by now.
bool catches_interrupts(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigCgt:")) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (SIGINT - 1) & 1) != 0;
  }
  return false;
}

/// Starts the program, sends SIGINT once it catches that, and expects exit code 130.
void interrupt(const Arguments& arguments, const std::string& errors) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(126);
    if (std::freopen(errors.c_str(), "w", stderr) == nullptr) ::_exit(126);
    execute_program(arguments, {});
  }
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(child, &status, WNOHANG)) == 0 && !catches_interrupts(child))
    std::this_thread::yield();
  ASSERT_EQ(ended, 0) << "it ended by itself: " << read_text_file(errors);
  ::kill(child, SIGINT);
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_THAT(read_text_file(errors), ::testing::HasSubstr("sluice: stopped by Ctrl-C"));
}

TEST(InterruptedPrompt, EndsARecordingWithCode130AndLeavesNoBrokenTrace) {
  const TemporaryFolder folder;
  std::string ids = "[1";
  for (int i = 0; i < 3000; ++i) ids += ", " + std::to_string(300 + i % 50);
  write_file_atomically(folder / "ids", "[" + ids + "]]");
  const std::string trace = folder / "trace";
  // A decode step a token: when the signal comes there may or may not be a step.
  interrupt({"trace", "record", "--model", demo_model(), "--ids", folder / "ids", "--decode-from", "0",
             "--max-tokens", "1000", "--ignore-end", "--out", trace},
            folder / "errors");
  if (std::filesystem::exists(trace)) {
    EXPECT_EQ(run_program({"trace", "replay", trace, "--slots", "64"}).exit_code, 0);
  }
  EXPECT_FALSE(std::filesystem::exists(trace + ".partial"));
}

TEST(InterruptedPrompt, EndsTheRunWithCode130) {
  const TemporaryFolder folder;
  std::string prompt;
  for (int i = 0; i < 3000; ++i) prompt += " the";
  write_file_atomically(folder / "prompt", prompt);
  const std::string errors = folder / "errors";
  interrupt({"run", "--model", demo_model(), "--prompt-file", folder / "prompt", "--ignore-end",
             "--temperature", "0", "--max-tokens", "1000"},
            errors);
  EXPECT_THAT(read_text_file(errors), ::testing::EndsWith("sluice: stopped by Ctrl-C\n"));
}

TEST(InterruptedPrompt, WritesTheReportAllTheSame) {
  const TemporaryFolder folder;
  std::string prompt;
  for (int i = 0; i < 3000; ++i) prompt += " the";
  write_file_atomically(folder / "prompt", prompt);
  const std::string report = folder / "report", residency = folder / "residency", errors = folder / "errors";
  interrupt({"run", "--model", demo_model(), "--prompt-file", folder / "prompt", "--expert-slots", "25%",
             "--report", report, "--residency", residency, "--ignore-end", "--max-tokens", "1000"},
            errors);
  EXPECT_TRUE(std::filesystem::exists(report));
  EXPECT_TRUE(std::filesystem::exists(residency));
  EXPECT_THAT(read_text_file(errors), ::testing::HasSubstr("experts: 128 slots"));
  // A single step of all ids: none is there yet when the signal comes.
  std::string ids = "[1";
  for (int i = 0; i < 3000; ++i) ids += ", " + std::to_string(300 + i % 50);
  write_file_atomically(folder / "ids", ids + "]");
  const std::string recorded = folder / "recorded";
  interrupt({"trace", "record", "--model", demo_model(), "--ids", folder / "ids", "--expert-slots", "25%",
             "--report", recorded, "--ignore-end", "--max-tokens", "1000", "--out", folder / "trace"},
            errors);
  EXPECT_TRUE(std::filesystem::exists(recorded));
}

TEST(InterruptedPrompt, LeavesTheSessionAsIfItHadNotBegun) {
  SmallModel model;
  Runtime runtime(*model.device, *model.model, ExpertSettings());
  Session session(runtime, {.capacity_tokens = 64, .chunk_tokens = 2});
  const std::vector<int32_t> prompt = {9, 8, 7, 6, 5};
  int calls = 0;
  session.between_layers([&] {
    if (++calls == 4) throw Error(ErrorCode::kCancelled, "stopped");
  });
  expect_error(ErrorCode::kCancelled, {"stopped"}, [&] { session.prefill(prompt); });
  session.between_layers(nullptr);
  EXPECT_EQ(session.ids(), (std::vector<int32_t>{9, 8})) << "the chunk that was complete";
  EXPECT_EQ(values(session.prefill(prompt)), model.logits(prompt));
}

}  // namespace
}  // namespace sluice::testing
