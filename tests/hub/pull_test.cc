// Pulls from a hub on this machine: what lands in the cache, what is gone on from, and what goes wrong.
#include "hub/pull.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "hub/cache.h"
#include "hub/fake_hub.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using testing::expect_error;
using testing::FakeHub;
using ::testing::HasSubstr;
using testing::HttpRequest;
using testing::HttpResponse;
using testing::HttpServer;
using testing::kFakeCommit;
using ::testing::Not;
using testing::part_of;
using testing::TemporaryFolder;

class Pull : public ::testing::Test {
 protected:
  hub::PullOptions options(const std::string& name = "org/name") const {
    hub::PullOptions given;
    given.name = *hub::parse_model_name(name);
    given.cache = cache_.path();
    given.access.endpoint = hub_.address();
    given.download.first_pause = std::chrono::milliseconds(1);
    return given;
  }
  hub::PullSummary pull() const { return hub::pull(options()); }
  void refuses(ErrorCode code, const std::vector<std::string>& parts) const {
    refuses(code, parts, options());
  }
  void refuses(ErrorCode code, const std::vector<std::string>& parts, const hub::PullOptions& given) const {
    expect_error(code, parts, [&] { hub::pull(given); });
    EXPECT_FALSE(hub::find_snapshot(cache_.path(), given.name));
  }
  fs::path incomplete(const std::string& name) const {
    return (repo_ / "blobs" / hub_.blob_of(name)) += ".incomplete";
  }

  TemporaryFolder cache_;
  const fs::path repo_ = cache_ / "models--org--name";
  FakeHub hub_;
};

TEST_F(Pull, WritesTheCacheAsOtherProgramsReadIt) {
  const hub::PullSummary summary = pull();
  EXPECT_EQ(summary.snapshot, repo_ / "snapshots" / kFakeCommit);
  EXPECT_EQ(hub::find_snapshot(cache_.path(), *hub::parse_model_name("org/name")), summary.snapshot);
  EXPECT_EQ(read_text_file(repo_ / "refs/main"), kFakeCommit);
  uint64_t bytes = 0;
  for (const char* name :
       {"config.json", "model.safetensors", "tokenizer.json", "README.md", "sub folder/extra#1.json"}) {
    const fs::path link = summary.snapshot / name;
    EXPECT_EQ(read_text_file(link), hub_.files[name]) << name;
    EXPECT_TRUE(fs::is_symlink(link));
    const std::string up = std::string(name).find('/') == std::string::npos ? "../../" : "../../../";
    EXPECT_EQ(fs::read_symlink(link), up + "blobs/" + hub_.blob_of(name));
    bytes += hub_.files[name].size();
  }
  EXPECT_EQ(summary.fetched_bytes, bytes);
  EXPECT_FALSE(fs::exists(summary.snapshot / "model.gguf"));
  EXPECT_FALSE(fs::exists(summary.snapshot / "original"));
  for (const auto& entry : fs::directory_iterator(repo_ / "blobs"))
    EXPECT_NE(entry.path().extension(), ".incomplete") << entry.path();
}

TEST_F(Pull, FetchesNothingThatIsThere) {
  pull();
  hub_.files["config.json"] = "{\"a\": 2}";
  const hub::PullSummary again = pull();
  EXPECT_EQ(again.fetched_bytes, hub_.files["config.json"].size());
  EXPECT_EQ(read_text_file(again.snapshot / "config.json"), "{\"a\": 2}");
  EXPECT_EQ(hub_.requests_of("model.safetensors").size(), 1u);
}

TEST_F(Pull, TakesARevisionByNameOrCommit) {
  hub::pull(options("org/name@v1/a"));
  EXPECT_EQ(hub_.requests_of("").front().path, "/api/models/org/name/revision/v1%2Fa?blobs=true");
  EXPECT_EQ(read_text_file(repo_ / "refs/v1/a"), kFakeCommit);
  hub::pull(options("org/name@" + kFakeCommit));
  EXPECT_FALSE(fs::exists(repo_ / "refs" / kFakeCommit));
  const std::string other(40, 'e');
  refuses(ErrorCode::kBadFile, {"answers with commit"}, options("org/name@" + other));
}

TEST_F(Pull, GoesOnWhereATransferBrokeOff) {
  int attempts = 0;
  hub_.instead["model.safetensors"] = [&](const HttpRequest& request) {
    HttpResponse response = part_of(hub_.files["model.safetensors"], request);
    if (++attempts <= 3) response.cut_after = 70'000;
    return response;
  };
  const hub::PullSummary summary = pull();
  EXPECT_EQ(read_text_file(summary.snapshot / "model.safetensors"), hub_.files["model.safetensors"]);
  const auto requests = hub_.requests_of("model.safetensors");
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_EQ(requests[0].headers.count("range"), 0u);
  EXPECT_EQ(requests[3].headers.at("range"), "bytes=210000-");
}

TEST_F(Pull, GoesOnWhereAnEarlierPullWasStopped) {
  const std::string& content = hub_.files["model.safetensors"];
  hub::PullOptions given = options();
  given.download.progress = [](uint64_t done, uint64_t) {
    if (done > 100'000) throw Error(ErrorCode::kCancelled, "stopped");
  };
  hub_.instead["model.safetensors"] = [&](const HttpRequest& request) {
    HttpResponse response = part_of(content, request);
    response.headers.push_back("Content-Length: " + std::to_string(response.body.size()));
    if (request.headers.count("range") > 0) return response;
    response.body.resize(200'000);
    response.hold_open = true;
    return response;
  };
  refuses(ErrorCode::kCancelled, {"stopped"}, given);
  const auto kept = fs::file_size(incomplete("model.safetensors"));
  EXPECT_GT(kept, 100'000u);
  uint64_t first = 0;
  given = options();
  given.download.progress = [&](uint64_t done, uint64_t total) {
    if (first == 0 && total > 0) first = done;
  };
  const hub::PullSummary summary = hub::pull(given);
  EXPECT_LE(summary.fetched_bytes, content.size() - kept + 1000);
  EXPECT_EQ(hub_.requests_of("model.safetensors").back().headers.at("range"),
            "bytes=" + std::to_string(kept) + "-");
  EXPECT_EQ(read_text_file(summary.snapshot / "model.safetensors"), content);
}

TEST_F(Pull, BeginsAnewWhereTheServerKnowsNoRanges) {
  fs::create_directories(repo_ / "blobs");
  write_file_atomically(incomplete("model.safetensors"), hub_.files["model.safetensors"].substr(0, 1000));
  hub_.instead["model.safetensors"] = [&](const HttpRequest&) {
    return HttpResponse{.body = hub_.files["model.safetensors"]};
  };
  const hub::PullSummary summary = pull();
  EXPECT_EQ(read_text_file(summary.snapshot / "model.safetensors"), hub_.files["model.safetensors"]);
}

TEST_F(Pull, BeginsAnewWhereTheServerSendsAnotherPart) {
  fs::create_directories(repo_ / "blobs");
  write_file_atomically(incomplete("model.safetensors"), hub_.files["model.safetensors"].substr(0, 1000));
  hub_.instead["model.safetensors"] = [&](const HttpRequest& request) {
    HttpRequest other = request;
    if (request.headers.count("range") > 0) other.headers["range"] = "bytes=7-";
    return part_of(hub_.files["model.safetensors"], other);
  };
  EXPECT_EQ(read_text_file(pull().snapshot / "model.safetensors"), hub_.files["model.safetensors"]);
}

TEST_F(Pull, GivesUpOnATransferThatNeverGetsFurther) {
  for (const size_t cut : {size_t{0}, size_t{1000}}) {
    hub_.instead["model.safetensors"] = [&, cut](const HttpRequest&) {
      return HttpResponse{.body = hub_.files["model.safetensors"], .cut_after = cut};  // knows no ranges
    };
    hub::PullOptions given = options();
    given.download.attempts = 3;
    refuses(ErrorCode::kIo, {"model.safetensors", "given up after 3 attempts", "pull again"}, given);
  }
}

TEST_F(Pull, TriesAgainWhileTheServerIsBusy) {
  int attempts = 0;
  hub_.instead["config.json"] = [&](const HttpRequest& request) {
    if (++attempts <= 2) return HttpResponse{.status = attempts == 1 ? 503 : 429};
    return part_of(hub_.files["config.json"], request);
  };
  EXPECT_EQ(read_text_file(pull().snapshot / "config.json"), hub_.files["config.json"]);
}

TEST_F(Pull, RemovesAndNamesAFileWithAWrongHash) {
  for (const char* name : {"model.safetensors", "config.json"}) {
    fs::remove_all(repo_);
    hub_.instead = {{name, [&, name](const HttpRequest& request) {
                       std::string content = hub_.files[name];
                       content[1] ^= 1;
                       return part_of(content, request);
                     }}};
    refuses(ErrorCode::kBadFile, {name, "hash", hub_.blob_of(name), "removed"});
    EXPECT_FALSE(fs::exists(incomplete(name)));
    EXPECT_FALSE(fs::exists(repo_ / "blobs" / hub_.blob_of(name)));
  }
  hub_.instead.clear();
  pull();
}

TEST_F(Pull, FollowsRedirectsWithoutTheToken) {
  HttpServer elsewhere(
      [&](const HttpRequest& request) { return part_of(hub_.files["model.safetensors"], request); });
  hub_.instead["model.safetensors"] = [&](const HttpRequest&) {
    return HttpResponse{
        .status = 302,
        .headers = {"Location: " + elsewhere.address() + "/cdn?signature=x", "X-Linked-Etag: \"y\""}};
  };
  hub::PullOptions given = options();
  given.access.token = "hf_secret";
  hub::pull(given);
  ASSERT_EQ(elsewhere.requests().size(), 1u);
  EXPECT_EQ(elsewhere.requests()[0].headers.count("authorization"), 0u);
  EXPECT_EQ(hub_.requests_of("").front().headers.at("authorization"), "Bearer hf_secret");
  EXPECT_EQ(hub_.requests_of("model.safetensors").front().headers.at("authorization"), "Bearer hf_secret");
}

TEST_F(Pull, SendsNoTokenWhereThereIsNone) {
  pull();
  EXPECT_EQ(hub_.requests_of("").front().headers.count("authorization"), 0u);
}

TEST_F(Pull, RefusesRedirectsInCirclesAndToFiles) {
  hub_.instead["config.json"] = [&](const HttpRequest& request) {
    return HttpResponse{.status = 302, .headers = {"Location: " + request.path}};
  };
  refuses(ErrorCode::kIo, {"config.json", "redirects"});
  for (const char* place : {"file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x"}) {
    hub_.instead["config.json"] = [&](const HttpRequest&) {
      return HttpResponse{.status = 302, .headers = {std::string("Location: ") + place}};
    };
    refuses(ErrorCode::kIo, {"config.json", "failed"});
  }
}

TEST_F(Pull, SaysWhatToDoAboutAnswersThatAreErrors) {
  hub::PullOptions with_token = options();
  with_token.access.token = "hf_secret";
  const auto answers = [&](int status, const std::string& code) {
    hub_.instead[""] = [=](const HttpRequest&) {
      return HttpResponse{.status = status, .headers = {"X-Error-Code: " + code}, .body = "<html>"};
    };
  };
  answers(401, "RepoNotFound");
  refuses(ErrorCode::kIo, {"org/name", "no such model, or a gated", "401", "HF_TOKEN"});
  answers(401, "GatedRepo");
  refuses(ErrorCode::kIo, {"org/name", "the model is gated", "accept its terms", "HF_TOKEN"});
  answers(403, "GatedRepo");
  refuses(ErrorCode::kIo, {"org/name", "account of HF_TOKEN", "403", "accept its terms"}, with_token);
  answers(401, "");
  refuses(ErrorCode::kIo, {"org/name", "refuses the token"}, with_token);
  answers(404, "RepoNotFound");
  refuses(ErrorCode::kIo, {"org/name", "does not have it (404)"});
  answers(404, "RevisionNotFound");
  refuses(ErrorCode::kIo, {"org/name@v9", "not this revision"}, options("org/name@v9"));
  answers(500, "");
  refuses(ErrorCode::kIo, {"error 500"});
}

TEST_F(Pull, SaysThatAHubCannotBeReached) {
  hub::PullOptions given = options();
  {
    const HttpServer gone([](const HttpRequest&) { return HttpResponse{}; });
    given.access.endpoint = gone.address();
  }
  refuses(ErrorCode::kIo, {"org/name", given.access.endpoint, "cannot be reached"}, given);
}

TEST_F(Pull, RefusesAFileThatGrowsBeyondItsSize) {
  hub_.instead["config.json"] = [&](const HttpRequest&) {
    return HttpResponse{.body = std::string(64 * 1024, ' '), .endless = true};
  };
  refuses(ErrorCode::kBadFile, {"config.json", "more than the 8 bytes"});
  EXPECT_FALSE(fs::exists(incomplete("config.json")));
}

TEST_F(Pull, RefusesAnEndlessListing) {
  hub_.instead[""] = [&](const HttpRequest&) {
    return HttpResponse{.body = std::string(1 << 20, '['), .endless = true};
  };
  refuses(ErrorCode::kBadFile, {"org/name", "longer than"});
}

TEST_F(Pull, WritesNothingOutsideOfTheCache) {
  for (const std::string name : {"../evil.json", "/etc/evil.json", "a/../../evil.json", "a//b.json",
                                 "./a.json", "a/", "", "a\\b.json", "a\nb.json", "..", "a/./b.json"}) {
    hub_.edit_listing = [&](nlohmann::json& root) { root["siblings"][0]["rfilename"] = name; };
    refuses(ErrorCode::kBadFile, {"org/name", "no path inside"});
  }
  EXPECT_TRUE(fs::is_empty(cache_.path()));
}

TEST_F(Pull, RefusesListingsThatCannotBeTrue) {
  const std::vector<std::pair<const char*, std::function<void(nlohmann::json&)>>> lies = {
      {"no JSON object", [](auto& root) { root = nlohmann::json::array(); }},
      {"names no commit", [](auto& root) { root["sha"] = "../../../../x"; }},
      {"names no commit", [](auto& root) { root.erase("sha"); }},
      {"no siblings", [](auto& root) { root["siblings"] = 7; }},
      {"no object", [](auto& root) { root["siblings"][0] = "config.json"; }},
      {"no hash", [](auto& root) { root["siblings"][0]["blobId"] = "../../../x"; }},
      {"no hash", [](auto& root) { root["siblings"][0].erase("blobId"); }},
      {"no hash",
       [](auto& root) {
         root["siblings"][0]["lfs"] = {{"sha256", std::string(64, 'G')}, {"size", 1}};
       }},
      {"no size", [](auto& root) { root["siblings"][0]["size"] = -1; }},
      {"no size", [](auto& root) { root["siblings"][0]["size"] = "8"; }},
      {"no size", [](auto& root) { root["siblings"][0]["size"] = 1e300; }},
      {"no size", [](auto& root) { root["siblings"][0]["size"] = uint64_t{1} << 63; }},
      {"twice", [](auto& root) { root["siblings"].push_back(root["siblings"][0]); }},
  };
  for (const auto& [why, lie] : lies) {
    hub_.edit_listing = lie;
    refuses(ErrorCode::kBadFile, {"org/name", why});
  }
  hub_.instead[""] = [](const HttpRequest&) { return HttpResponse{.body = std::string(100'000, '[')}; };
  refuses(ErrorCode::kBadFile, {"no JSON object"});
}

TEST_F(Pull, NeedsRoomForAllOfItBeforeItStarts) {
  hub_.edit_listing = [](nlohmann::json& root) {
    for (auto& item : root["siblings"])
      if (item.contains("lfs")) item["lfs"]["size"] = uint64_t{1} << 48;
  };
  refuses(ErrorCode::kIo, {"models--org--name", "need 281", "are free", "HF_HUB_CACHE"});
  EXPECT_TRUE(hub_.requests_of("model.safetensors").empty());
}

TEST_F(Pull, SaysWhatARepositoryWithoutSafetensorsHolds) {
  hub_.files.erase("model.safetensors");
  hub_.files["model.gguf"] = std::string(1000, 'g');
  refuses(ErrorCode::kUnsupported, {"org/name", "no model in safetensors", "model.gguf"});
}

TEST_F(Pull, RefusesWhileAnotherProgramFetchesTheSameFile) {
  bool asked = false;
  hub_.instead["config.json"] = [&](const HttpRequest& request) {
    if (!std::exchange(asked, true)) {
      expect_error(ErrorCode::kIo, {"another program is fetching config.json"}, [&] {
        hub::RemoteFile file{"config.json", 8, hub_.blob_of("config.json"), hub::BlobHash::Kind::kGitBlob};
        hub::download(options().access, repo_, {file}, [](const auto&) { return std::string("/"); }, {});
      });
    }
    return part_of(hub_.files["config.json"], request);
  };
  pull();
  EXPECT_TRUE(asked);
}

TEST_F(Pull, LinksTwoNamesOfOneContentAndEmptyFiles) {
  hub_.files["copy.json"] = hub_.files["config.json"];
  hub_.files["empty.txt"] = "";
  const hub::PullSummary summary = pull();
  EXPECT_EQ(read_text_file(summary.snapshot / "copy.json"), hub_.files["config.json"]);
  EXPECT_EQ(read_text_file(summary.snapshot / "empty.txt"), "");
  EXPECT_EQ(hub_.requests_of("copy.json").size() + hub_.requests_of("config.json").size(), 1u);
}

TEST(BlobHash, IsWhatGitAndSha256sumPrint) {
  EXPECT_EQ(testing::hash_of("abc", hub::BlobHash::Kind::kSha256),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(testing::hash_of("hello\n", hub::BlobHash::Kind::kGitBlob),
            "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(Selection, LeavesOutWhatNothingHereReads) {
  hub::Listing listing;
  for (const char* name :
       {"model-00001-of-00002.safetensors", "model.safetensors.index.json", "consolidated.safetensors",
        "merges.txt", "tokenizer.model", "chat_template.jinja", "inference/config.json", "LICENSE",
        "pytorch_model-1.bin", "original/params.json", "onnx/model.onnx_data", "metal/model.bin",
        "copy/model.safetensors", "a.png", ".gitattributes", "flax_model.msgpack", "tf_model.h5"}) {
    listing.files.push_back({name, 1, "", {}});
  }
  std::vector<std::string> kept;
  for (const auto& file : hub::select_files(listing, "x").files) kept.push_back(file.name);
  EXPECT_EQ(kept, (std::vector<std::string>{"model-00001-of-00002.safetensors",
                                            "model.safetensors.index.json", "merges.txt", "tokenizer.model",
                                            "chat_template.jinja", "inference/config.json", "LICENSE"}));
}

}  // namespace
}  // namespace sluice
