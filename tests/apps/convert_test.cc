// Conversions that a signal stops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "apps/program.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "checkpoint/make_checkpoint.h"

namespace sluice::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::directory_iterator(folder))
    contents[entry.path().filename().string()] = read_text_file(entry.path());
  return contents;
}

/// A checkpoint that becomes many files.
class StoppedConversion : public ::testing::Test {
 protected:
  StoppedConversion() {
    TensorSet tensors;
    for (int expert = 0; expert < 50; ++expert) {
      const std::string name = "model.layers.0.mlp.experts." + std::to_string(expert) + ".up_proj.weight";
      tensors.add(name, DType::kF32, {256, 512},
                  std::vector<float>(256 * 512, 0.01f * static_cast<float>(expert)));
    }
    tensors.write_checkpoint(model_);
  }
  Arguments conversion(const fs::path& out) const {
    return {"convert",  "--model", model_.string(),    "--out", out.string(),
            "--format", "fp8",     "--max-shard-size", "1MB"};
  }
  int stop_with(int signal, const fs::path& out, std::string& said) const;

  TemporaryFolder folder_;
  const fs::path model_ = folder_ / "model";
};

/// How the program ended that `signal` reached once it had finished a file: exit code, or minus the signal.
/// A conversion that was quicker than the signal is done again.
int StoppedConversion::stop_with(int signal, const fs::path& out, std::string& said) const {
  const fs::path journal = out.string() + ".partial/convert.journal";
  for (;;) {
    const TemporaryFolder streams;
    const pid_t child = ::fork();
    if (child == 0) {
      std::freopen((streams / "err").c_str(), "w", stderr);
      std::freopen("/dev/null", "w", stdout);
      execute_program(conversion(out), {});
    }
    int status = 0;
    pid_t ended = 0;
    std::error_code none_yet;
    const auto head_bytes = [&] { return read_text_file(journal).find('\n') + 1; };
    while ((ended = ::waitpid(child, &status, WNOHANG)) == 0) {
      const auto bytes = fs::file_size(journal, none_yet);
      if (!none_yet && bytes > 0 && bytes > head_bytes()) break;
      std::this_thread::yield();
    }
    ::kill(child, signal);
    if (ended == 0) ::waitpid(child, &status, 0);
    if (fs::exists(out)) {
      fs::remove_all(out);
      continue;
    }
    said = read_text_file(streams / "err");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
}

TEST_F(StoppedConversion, GoesOnAfterCtrlCAndAfterAKillToTheSameBytes) {
  ASSERT_EQ(run_program(conversion(folder_ / "whole")).exit_code, 0);
  const auto whole = contents_of(folder_ / "whole");
  EXPECT_GE(whole.size(), 8u);
  std::string said;
  for (const int signal : {SIGINT, SIGKILL}) {
    SCOPED_TRACE(signal);
    const fs::path out = folder_ / "out";
    EXPECT_EQ(stop_with(signal, out, said), signal == SIGINT ? 130 : -SIGKILL) << said;
    if (signal == SIGINT) {
      EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
      EXPECT_THAT(said, HasSubstr("stopped by Ctrl-C; finished files are kept in " + out.string() +
                                  ".partial: the same command goes on from there"));
    }
    const Outcome rest = run_program(conversion(out));
    EXPECT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_THAT(rest.out, HasSubstr("files were finished before\n"));
    EXPECT_EQ(contents_of(out), whole);
    EXPECT_FALSE(fs::exists(out.string() + ".partial"));
    fs::remove_all(out);
  }
}

TEST_F(StoppedConversion, SizesOfFilesAreChecked) {
  for (const char* size : {"0", "5 apples", "-1"}) {
    Arguments arguments = conversion(folder_ / "out");
    arguments.back() = size;
    expect_wrong_usage(arguments, {"--max-shard-size", size, "such as 5GB"});
  }
}

}  // namespace
}  // namespace sluice::testing
