// sluice chat through a pipe, with the demo model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "apps/program.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

Outcome chat(const std::string& input, const Arguments& more = {}, const std::string& max_tokens = "16") {
  Arguments arguments = {"chat", "--model", demo_model(), "--temperature", "0", "--max-tokens", max_tokens};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments, input);
}

Json read_json(const std::string& file) { return Json::parse(read_text_file(file)); }

// The contents of `file`, which /save wrote, by role.
std::vector<std::string> contents(const std::string& file, const std::string& role) {
  std::vector<std::string> list;
  const Json json = read_json(file);
  for (const Json& message : json.at("messages")) {
    if (message.at("role") == role) list.push_back(message.at("content"));
  }
  return list;
}

class Chat : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::string file_ = folder_ / "conversation.json";
  const std::string save_ = "/save " + file_ + "\n";
};

TEST_F(Chat, EachLineIsATurnAndItsAnswerALine) {
  const Outcome outcome = chat("What is a violin?\n\n   \nWhat is a cello?\n" + save_);
  EXPECT_EQ(outcome.exit_code, 0);
  const auto answers = contents(file_, "assistant");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(outcome.out, answers[0] + "\n" + answers[1] + "\n");
  EXPECT_EQ(contents(file_, "user"), (std::vector<std::string>{"What is a violin?", "What is a cello?"}));
  EXPECT_THAT(outcome.err, HasSubstr("saved 4 messages\n"));
}

TEST_F(Chat, AnswersDependOnTheConversation) {
  // The whole conversation at once, by run's way of rendering, must give what chat gave turn by turn from its
  // cache.
  chat("What is a violin?\nWhat is a cello?\n" + save_);
  Json messages = read_json(file_).at("messages");
  ASSERT_EQ(messages.size(), 4u);
  const std::string second = messages[3]["content"];
  messages.erase(3);
  const Outcome rendered =
      run_program({"render", "--model", demo_model(), "--messages", "-"}, messages.dump());
  const Outcome answer = run_program(
      {"run", "--model", demo_model(), "--temperature", "0", "--max-tokens", "16", "--quiet"}, rendered.out);
  EXPECT_EQ(answer.out, second + "\n");
}

TEST_F(Chat, BackslashAndFencesJoinLines) {
  const Outcome outcome = chat("one \\\ntwo\r\n\"\"\"\n/three\n\n  four\\\n\"\"\"\n" + save_);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(contents(file_, "user"), (std::vector<std::string>{"one \ntwo", "/three\n\n  four\\"}));
}

TEST_F(Chat, EndOfInputCompletesAnOpenBlock) {
  const Outcome outcome = chat("\"\"\"\nWhat is\na cello?");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_GT(outcome.out.size(), 1u);
}

TEST_F(Chat, InvalidBytesBecomeReplacementCharacters) {
  EXPECT_EQ(chat("a\xff"
                 "b\n" +
                 save_)
                .exit_code,
            0);
  EXPECT_EQ(contents(file_, "user"), (std::vector<std::string>{"a\uFFFD"
                                                               "b"}));
}

TEST_F(Chat, StatsShowThatATurnCostsItsNewTokensAlone) {
  EXPECT_THAT(chat("/stats\n").out,
              ::testing::AllOf(HasSubstr("0 of 4096 tokens"), HasSubstr("no answer yet")));
  const std::string out = chat("What is a violin?\n/stats\nWhat is a cello?\n/stats\n").out;
  const std::regex pattern("prompt +([0-9]+) tokens, ([0-9]+) of them cached");
  std::vector<std::pair<int, int>> turns;
  for (std::sregex_iterator it(out.begin(), out.end(), pattern), end; it != end; ++it) {
    turns.emplace_back(std::stoi((*it)[1]), std::stoi((*it)[2]));
  }
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[0].second, 0);
  EXPECT_GE(turns[1].second, turns[0].first - 1);  // at least the whole first prompt
  EXPECT_LT(turns[1].second, turns[1].first);
  for (const char* label : {"context ", "first token ", "prefill ", "decode ", "of 512 experts"})
    EXPECT_THAT(out, HasSubstr(label));
}

TEST_F(Chat, SavedConversationIsPrivateAndGoesOnAfterLoading) {
  const std::string again = folder_ / "again.json";
  chat("What is a violin?\n" + save_ + "What is a cello?\n/save " + again + "\n", {"--system", "Be brief."});
  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  const Json expected = read_json(again);
  EXPECT_EQ(contents(again, "system"), (std::vector<std::string>{"Be brief."}));
  const Outcome by_command = chat("/load " + file_ + "\nWhat is a cello?\n/save " + again + "\n");
  EXPECT_EQ(read_json(again), expected);
  EXPECT_THAT(by_command.err, HasSubstr("loaded 3 messages\n"));
  chat("What is a cello?\n/save " + again + "\n", {"--load", file_});
  EXPECT_EQ(read_json(again), expected);
}

TEST_F(Chat, SystemAndResetChangeTheConversation) {
  chat("/system Be brief.\nWhat is red?\n/reset\n/system Be long.\n/reset\n" + save_);
  EXPECT_EQ(read_json(file_), (Json{{"messages", {{{"role", "system"}, {"content", "Be long."}}}}}));
  chat("/system Be brief.\n/system\n" + save_);
  EXPECT_EQ(read_json(file_).at("messages").size(), 0u);
}

TEST_F(Chat, MistakesInCommandsAreNamedAndTheConversationGoesOn) {
  const Outcome outcome = chat("/juggle now\n/save\n/load " + folder_.path().string() +
                               "/absent\n/save /\nWhat is red?\n" + save_);
  EXPECT_EQ(outcome.exit_code, 1) << "nobody sat at a terminal to see the lines";
  for (const char* part :
       {"unknown command /juggle; the commands are:\n/reset", "/exit", "sluice: 4 commands failed\n",
        "/save needs the name of a file", "/absent: cannot open", "saved 2 messages"}) {
    EXPECT_THAT(outcome.err, HasSubstr(part));
  }
}

TEST_F(Chat, SlotsChangeBetweenTurnsWithoutChangingAnAnswer) {
  const std::string first = "What is a violin?\n", second = "What is a cello?\n", third = "And a drum?\n";
  const Outcome plain = chat(first + second + third);
  const std::string report = folder_ / "report.json";
  const Outcome resized = chat(first + "/slots 40\n" + second + "/slots 3\n/slots all\n/slots 100%\n" + third,
                               {"--expert-slots", "25%", "--audit", "1", "--report", report});
  EXPECT_EQ(resized.out, plain.out);
  EXPECT_THAT(resized.err, HasSubstr("40 expert slots instead of 128\n"));
  EXPECT_THAT(resized.err, HasSubstr("--expert-slots 3: at least 6 are needed"));
  EXPECT_THAT(resized.err, HasSubstr("512 expert slots instead of 40\n"));
  EXPECT_THAT(resized.err, HasSubstr("512 expert slots, as before\n"));
  EXPECT_EQ(resized.exit_code, 1);
  EXPECT_THAT(resized.err, ::testing::EndsWith("sluice: 1 command failed\n"));
  const Json total = read_json(report).at("total");
  EXPECT_EQ(total.at("resizes"), 3);
  EXPECT_EQ(total.at("slots"), 512);
  EXPECT_GT(total.at("idle_filled"), 0);
  EXPECT_THAT(chat("/slots 40\n").err, HasSubstr("start with --expert-slots"));
}

TEST_F(Chat, HelpAndExitWork) {
  const Outcome outcome = chat("/help\n/exit\nWhat is red?\n");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, StartsWith("/reset"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("ed is")));
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Chat, AnswerCutByMaxTokensStaysInTheConversation) {
  const Outcome outcome = chat("What is a violin?\n" + save_, {}, "3");
  EXPECT_THAT(outcome.err, HasSubstr("(cut: --max-tokens 3)\n"));
  const auto answers = contents(file_, "assistant");
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(outcome.out, answers[0] + "\n");
}

TEST_F(Chat, TurnThatDoesNotFitIsDroppedAndTheConversationGoesOn) {
  std::string block = "\"\"\"\n";
  for (int i = 0; i < 100; ++i) block += "and so on\n";
  const Outcome outcome = chat(block + "\"\"\"\nWhat is red?\n" + save_, {"--context", "64"});
  EXPECT_EQ(outcome.exit_code, 1) << "nobody sat at a terminal to see the line";
  EXPECT_THAT(outcome.err, HasSubstr("sluice: 1 turn was dropped\n"));
  EXPECT_THAT(outcome.err,
              ::testing::ContainsRegex(
                  "sluice: prompt is too long: [0-9]+ tokens > 64 maximum; the turn is dropped\n"));
  EXPECT_EQ(contents(file_, "user"), (std::vector<std::string>{"What is red?"}));
}

TEST_F(Chat, AFullContextAndADroppedTurnAdviseToReset) {
  std::string block = "\"\"\"\n";
  for (int i = 0; i < 30; ++i) block += "and so on\n";
  const Outcome outcome = chat("What is red?\n" + block + "\"\"\"\n", {"--context", "64"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the turn is dropped (/reset begins a new conversation)\n"));
}

TEST_F(Chat, StatsBeginAnewAfterReset) {
  const std::string out = chat("What is red?\n/stats\n/reset\n/stats\n").out;
  const size_t last = out.rfind("context ");
  EXPECT_THAT(out.substr(0, last), HasSubstr("first token"));
  EXPECT_THAT(out.substr(last), ::testing::AllOf(HasSubstr(" 0 of 4096 tokens"), HasSubstr("no answer yet")));
}

TEST_F(Chat, PromptOfSeveralChunksGivesTheSameAnswer) {
  const std::string turn = "Tell me what a violin is, and a cello, and a house, and a river, and a bird.\n";
  EXPECT_EQ(chat(turn, {"--chunk", "5"}).out, chat(turn).out);
}

TEST_F(Chat, SamplingFlagsOutOfRangeAreRefusedAtOnce) {
  expect_wrong_usage({"chat", "--model", demo_model(), "--temperature", "-1"}, {"temperature"},
                     "What is red?\n");
}

}  // namespace
}  // namespace sluice::testing
