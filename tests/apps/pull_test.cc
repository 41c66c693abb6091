// pull as a user meets it: what it prints, and that the model runs afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/program.h"
#include "apps/terminal.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "hub/fake_hub.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PullProgram : public ::testing::Test {
 protected:
  PullProgram() {
    for (const auto& entry : std::filesystem::directory_iterator(golden_folder("qwen3_moe")))
      hub_.files[entry.path().filename().string()] = read_text_file(entry.path());
  }
  Arguments environment() const {
    return {"HF_HUB_CACHE=" + (folder_ / "cache").string(), "HF_ENDPOINT=" + hub_.address() + "/",
            "HF_TOKEN=hf_secret", "no_proxy=127.0.0.1"};
  }
  Outcome run(const Arguments& arguments, const std::string& input = "") const {
    return run_program(arguments, input, environment());
  }

  TemporaryFolder folder_;
  FakeHub hub_;
};

TEST_F(PullProgram, FetchesAModelThatRunsByItsName) {
  const Outcome pulled = run({"pull", "org/name"});
  ASSERT_EQ(pulled.exit_code, 0) << pulled.err;
  EXPECT_EQ(pulled.err, "");
  EXPECT_THAT(pulled.out,
              HasSubstr("not fetched, nothing here reads them: 2 files, 19 B (*.gguf, original/...)\n"));
  EXPECT_THAT(pulled.out,
              HasSubstr("complete in " + (folder_ / "cache/models--org--name/snapshots/").string()));
  EXPECT_THAT(pulled.out, HasSubstr("Next: sluice run --model org/name "));
  const Outcome here = run({"eval", "--model", golden_folder("qwen3_moe"), "--ids", "-"}, "[1, 2, 3]");
  const Outcome there = run({"eval", "--model", "org/name", "--ids", "-"}, "[1, 2, 3]");
  EXPECT_EQ(there.exit_code, 0) << there.err;
  EXPECT_EQ(there.out, here.out);
}

TEST_F(PullProgram, NeverPrintsTheToken) {
  hub_.instead[""] = [](const HttpRequest&) { return HttpResponse{.status = 403}; };
  const Outcome outcome = run({"pull", "org/name"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("HF_TOKEN"));
  EXPECT_THAT(outcome.err + outcome.out, Not(HasSubstr("hf_secret")));
  for (const char* token :
       {"HF_TOKEN=hf_sec ret", "HF_TOKEN=hf_secret\r\nX: y", "HF_TOKEN=hf_secr\xc3\xa9t"}) {
    Arguments bad = environment();
    bad.push_back(token);
    const Outcome refused = run_program({"pull", "org/name"}, "", bad);
    EXPECT_EQ(refused.err, "sluice: HF_TOKEN: holds characters that no token has\n");
  }
}

TEST_F(PullProgram, RefusesNamesThatAreNoneAndEndpointsThatAreNone) {
  for (const char* name : {"name", "../name", "a/b/c", "org/name@", "https://huggingface.co/a/b"})
    expect_wrong_usage({"pull", name}, {name, "ORG/NAME"});
  expect_wrong_usage({"pull"}, {"model"});
  Arguments bad = environment();
  bad.push_back("HF_ENDPOINT=file:///etc");
  EXPECT_THAT(run_program({"pull", "org/name"}, "", bad).err, HasSubstr("HF_ENDPOINT=file:///etc"));
}

TEST_F(PullProgram, CtrlCStopsItAndTheSameCommandGoesOn) {
  bool slow = true;
  hub_.instead["model.safetensors"] = [&](const HttpRequest& request) {
    HttpResponse response = part_of(hub_.files["model.safetensors"], request);
    if (!std::exchange(slow, false)) return response;
    response.headers.push_back("Content-Length: " + std::to_string(response.body.size()));
    response.body.resize(response.body.size() / 2);
    response.hold_open = true;
    return response;
  };
  Terminal terminal({"pull", "org/name"}, environment());
  ASSERT_TRUE(terminal.wait_for("fetching [####"));
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait_for_end(), 130);
  EXPECT_THAT(terminal.screen(), HasSubstr("stopped by Ctrl-C; what has arrived is kept"));
  const Outcome again = run({"pull", "org/name"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(hub_.requests_of("model.safetensors").back().headers.count("range"), 1u);
}

}  // namespace
}  // namespace sluice::testing
