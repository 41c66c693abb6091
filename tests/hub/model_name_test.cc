// Names of models and the cache that holds them.
#include "hub/model_name.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "hub/cache.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";

TEST(ModelName, HasTwoPartsAndMaybeARevision) {
  const auto plain = hub::parse_model_name("Qwen/Qwen3-30B-A3B");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->repo, "Qwen/Qwen3-30B-A3B");
  EXPECT_EQ(plain->revision, "");
  EXPECT_EQ(plain->revision_or_main(), "main");
  const auto branch = hub::parse_model_name("a.b_c/d-1@refs/pr/7");
  ASSERT_TRUE(branch);
  EXPECT_EQ(branch->repo, "a.b_c/d-1");
  EXPECT_EQ(branch->revision, "refs/pr/7");
  EXPECT_EQ(branch->text(), "a.b_c/d-1@refs/pr/7");
  EXPECT_TRUE(hub::parse_model_name("a/b@" + kCommit));
}

TEST(ModelName, IsNoPath) {
  for (const std::string text : {"",
                                 "a",
                                 "/",
                                 "a/",
                                 "/b",
                                 "a/b/c",
                                 "../b",
                                 "a/..",
                                 "./b",
                                 "a/.",
                                 "a//b",
                                 "a--b/c",
                                 "a/b c",
                                 "a/b\n",
                                 "-a/b",
                                 "a/b-",
                                 "a/b@",
                                 "a/b@../c",
                                 "a/b@x/../../y",
                                 "a/b@/etc",
                                 "a/b@c//d",
                                 "a/b@.",
                                 "a/b@c/",
                                 "a/b@c/.d",
                                 "a/b@c d",
                                 "a/b@c@d",
                                 "a\\b/c",
                                 "~/b",
                                 "https://x/y"}) {
    EXPECT_FALSE(hub::parse_model_name(text)) << text;
  }
  EXPECT_TRUE(hub::parse_model_name("a/" + std::string(96, 'b')));
  EXPECT_FALSE(hub::parse_model_name("a/" + std::string(97, 'b')));
}

/// The variables that say where the cache is, set for one test.
class HubCache : public ::testing::Test {
 protected:
  HubCache() {
    for (const char* name : kNames) {
      const char* value = std::getenv(name);
      before_.push_back(value == nullptr ? "" : value);
      ::unsetenv(name);
    }
    ::setenv("HOME", "/home/x", 1);
  }
  ~HubCache() override {
    for (size_t i = 0; i < before_.size(); ++i) {
      before_[i].empty() ? ::unsetenv(kNames[i]) : ::setenv(kNames[i], before_[i].c_str(), 1);
    }
  }

  static constexpr const char* kNames[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                           "XDG_CACHE_HOME", "HOME"};
  std::vector<std::string> before_;
};

TEST_F(HubCache, IsWhereTheMostExactVariableSays) {
  EXPECT_EQ(hub::cache_folder(), "/home/x/.cache/huggingface/hub");
  ::setenv("XDG_CACHE_HOME", "/c", 1);
  EXPECT_EQ(hub::cache_folder(), "/c/huggingface/hub");
  ::setenv("HF_HOME", "~/hf", 1);
  EXPECT_EQ(hub::cache_folder(), "/home/x/hf/hub");
  ::setenv("HF_HUB_CACHE", "/models", 1);
  EXPECT_EQ(hub::cache_folder(), "/models");
  ::setenv("HF_HUB_CACHE", "", 1);
  EXPECT_EQ(hub::cache_folder(), "/home/x/hf/hub");
}

TEST_F(HubCache, FindsTheSnapshotOfABranchATagOrACommit) {
  const TemporaryFolder cache;
  const fs::path repo = cache / "models--org--name";
  const fs::path snapshot = repo / "snapshots" / kCommit;
  const auto find = [&](const std::string& text) {
    return hub::find_snapshot(cache.path(), *hub::parse_model_name(text));
  };
  EXPECT_FALSE(find("org/name"));
  fs::create_directories(snapshot);
  EXPECT_FALSE(find("org/name"));  // no ref says that it is main
  EXPECT_EQ(find("org/name@" + kCommit), snapshot);
  fs::create_directories(repo / "refs/refs/pr");
  write_file_atomically(repo / "refs/main", kCommit);
  write_file_atomically(repo / "refs/v1.0", kCommit + "\n");
  write_file_atomically(repo / "refs/refs/pr/7", kCommit);
  for (const char* name : {"org/name", "org/name@main", "org/name@v1.0", "org/name@refs/pr/7"}) {
    EXPECT_EQ(find(name), snapshot) << name;
  }
  for (const char* name : {"org/name@v2", "org/other", "name/org", "org/name@refs"}) {
    EXPECT_FALSE(find(name)) << name;
  }
  fs::remove(snapshot);
  EXPECT_FALSE(find("org/name"));
}

TEST_F(HubCache, DistrustsARefThatIsNoCommit) {
  const TemporaryFolder cache;
  const fs::path repo = cache / "models--org--name";
  fs::create_directories(repo / "refs");
  for (const std::string content : {"", "main", "../../../etc", "0123456789ABCDEF0123456789abcdef01234567"}) {
    write_file_atomically(repo / "refs/main", content);
    testing::expect_error(ErrorCode::kBadFile, {"refs/main", "no commit"}, [&] {
      (void)hub::find_snapshot(cache.path(), *hub::parse_model_name("org/name"));
    });
  }
}

}  // namespace
}  // namespace sluice
