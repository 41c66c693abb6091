// --model and --tokenizer as the name of a model in the cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/program.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "text/small_tokenizer.h"

namespace sluice::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";

/// A cache with one model in it, as other programs write it: links to blobs.
class CachedModel : public ::testing::Test {
 protected:
  CachedModel() {
    fs::create_directories(snapshot_);
    fs::create_directories(repo_ / "blobs");
    fs::create_directories(repo_ / "refs");
    for (const auto& entry : fs::directory_iterator(golden_folder("qwen3_moe")))
      add(entry.path().filename(), read_text_file(entry.path()));
    add("tokenizer.json", SmallTokenizer().json());
    add("chat_template.jinja", "{{ messages[0].content }}!");
    write_file_atomically(repo_ / "refs/main", kCommit);
  }
  void add(const std::string& name, const std::string& content) {
    write_file_atomically(repo_ / "blobs" / ("etag-" + name), content);
    fs::create_symlink("../../blobs/etag-" + name, snapshot_ / name);
  }
  Outcome run(const Arguments& arguments, const std::string& input = "") const {
    return run_program(arguments, input, {"HF_HUB_CACHE=" + (folder_ / "cache").string()});
  }

  TemporaryFolder folder_;
  const fs::path repo_ = folder_ / "cache/models--some-org--Some-Model";
  const fs::path snapshot_ = repo_ / "snapshots" / kCommit;
};

TEST_F(CachedModel, IsFoundByEveryCommandThatTakesAModel) {
  for (const std::string& name : std::vector<std::string>{"some-org/Some-Model", "some-org/Some-Model@main",
                                                          "some-org/Some-Model@" + kCommit}) {
    const Outcome direct = run({"eval", "--model", golden_folder("qwen3_moe"), "--ids", "-"}, "[1, 2, 3]");
    const Outcome cached = run({"eval", "--model", name, "--ids", "-"}, "[1, 2, 3]");
    EXPECT_EQ(cached.exit_code, 0) << cached.err;
    EXPECT_EQ(cached.out, direct.out);
  }
  const std::string model = "some-org/Some-Model";
  const Outcome rendered =
      run({"render", "--model", model, "--messages", "-"}, R"([{"role": "user", "content": "Hi"}])");
  EXPECT_EQ(rendered.out, "Hi!") << rendered.err;
  const Outcome tokenized = run({"tokenize", "--tokenizer", model}, R"(["ab"])");
  EXPECT_EQ(tokenized.exit_code, 0) << tokenized.err;
  const Outcome inspected = run({"inspect", "--model", model});
  EXPECT_THAT(inspected.out, HasSubstr(snapshot_.string())) << inspected.err;
  const Outcome planned = run({"plan", "--model", model});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  const Outcome converted = run({"convert", "--model", model, "--format", "fp8", "--out", folder_ / "out"});
  EXPECT_EQ(converted.exit_code, 0) << converted.err;
  const Outcome measured = run({"run", "--model", model, "--prompt", "ab", "--max-tokens", "2"});
  EXPECT_EQ(measured.exit_code, 0) << measured.err;
}

TEST_F(CachedModel, CommandThatFetchesItIsNamedWhereItIsMissing) {
  for (const char* name : {"some-org/Other", "some-org/Some-Model@v2"}) {
    const Outcome outcome = run({"inspect", "--model", name});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.err, std::string("sluice: ") + name + ": no such folder, and no such model in " +
                               (folder_ / "cache").string() + "; `sluice pull " + name + "` fetches it\n");
  }
  EXPECT_THAT(run({"tokenize", "--tokenizer", "some-org/Other"}, "[]").err, HasSubstr("sluice pull"));
  EXPECT_THAT(run({"inspect", "--model", "not/a/name"}).err, HasSubstr("not/a/name: no such folder\n"));
}

TEST_F(CachedModel, FolderOfThatNameWins) {
  fs::create_directories(folder_ / "some-org/Some-Model");
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  const Outcome outcome = run({"inspect", "--model", "some-org/Some-Model"});
  fs::current_path(before);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("sluice: some-org/Some-Model/config.json"));
}

TEST_F(CachedModel, OutputsMayNotReplaceItsBlobs) {
  const std::string blob = repo_ / "blobs/etag-config.json";
  const std::string before = read_text_file(blob);
  const Outcome outcome =
      run({"eval", "--model", "some-org/Some-Model", "--ids", "-", "--logits", blob}, "[1]");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("would replace a file of --model"));
  EXPECT_EQ(read_text_file(blob), before);
}

}  // namespace
}  // namespace sluice::testing
