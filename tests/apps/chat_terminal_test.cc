// sluice chat under a pseudo terminal, with the demo model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "apps/terminal.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCtrlC = "\x03";
constexpr const char* kCtrlD = "\x04";
constexpr const char* kUp = "\x1b[A";

class ChatTerminal : public ::testing::Test {
 protected:
  Arguments chat(const Arguments& more = {}) const {
    Arguments arguments = {"chat", "--model", demo_model(), "--temperature", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  // An answer that does not end by itself.
  Arguments endless_chat() const {
    const auto config = nlohmann::json::parse(read_text_file(demo_model() + "/generation_config.json"));
    return chat({"--max-tokens", "4000", "--logit-bias", config.at("eos_token_id").dump() + "=-1000"});
  }
  Arguments environment() const { return {"TERM=xterm", "LC_ALL=C", "XDG_STATE_HOME=" + state_}; }

  TemporaryFolder folder_;
  const std::string state_ = folder_ / "state/deeper";
};

TEST_F(ChatTerminal, AnswersAtThePromptAndEndsWithCtrlD) {
  Terminal terminal(chat({"--max-tokens", "8"}), environment());
  terminal.wait_for("/help lists the commands");
  terminal.wait_for("> ");
  terminal.type("What is a violin?\r");
  terminal.wait_for("violin?\r\n");
  terminal.wait_for("\r\n> ");
  terminal.type(kCtrlD);
  EXPECT_EQ(terminal.wait_for_end(), 0);
}

TEST_F(ChatTerminal, CtrlCStopsTheAnswerAndTheConversationGoesOn) {
  const std::string saved = folder_ / "saved.json";
  Terminal terminal(endless_chat(), environment());
  terminal.wait_for("> ");
  terminal.type("What is a violin?\r");
  terminal.wait_for("violin?\r\n");
  terminal.wait_for(" ");  // inside the answer
  terminal.type(kCtrlC);
  terminal.wait_for("(stopped)");
  terminal.wait_for("> ");
  terminal.type("What is a cello?\r");
  terminal.wait_for("cello?\r\n");
  terminal.wait_for(" ");
  terminal.type(kCtrlC);
  terminal.wait_for("(stopped)");
  terminal.wait_for("> ");
  terminal.type("/save " + saved + "\r");
  terminal.wait_for("saved 4 messages");
  terminal.wait_for("> ");
  terminal.type("/exit\r");
  EXPECT_EQ(terminal.wait_for_end(), 0);
  const auto json = nlohmann::json::parse(read_text_file(saved));
  for (const auto& message : json.at("messages")) EXPECT_NE(message.at("content"), "");
}

TEST_F(ChatTerminal, CtrlCDropsTheLineAndTheBlock) {
  Terminal terminal(chat(), environment());
  terminal.wait_for("> ");
  terminal.type("/exi");
  terminal.type(kCtrlC);
  terminal.wait_for("> ");
  terminal.type("\"\"\"\r");
  terminal.wait_for(". ");
  terminal.type("/exit\r");
  terminal.wait_for(". ");
  terminal.type(kCtrlC);
  terminal.wait_for("> ");
  terminal.type("/stats\r");
  terminal.wait_for("no answer yet");
  terminal.wait_for("> ");
  terminal.type(kCtrlD);
  EXPECT_EQ(terminal.wait_for_end(), 0);
}

TEST_F(ChatTerminal, LinesAreEditedInWholeCharacters) {
  Terminal terminal(chat(), environment());
  terminal.wait_for("> ");
  terminal.type("/\u00e9\u20ac\x7f\r");  // the euro sign is deleted by one backspace
  terminal.wait_for("unknown command /\u00e9;");
  terminal.wait_for("> ");
  terminal.type(kCtrlD);
  EXPECT_EQ(terminal.wait_for_end(), 0);
}

TEST_F(ChatTerminal, HistoryIsPrivateAndComesBack) {
  const std::string path = state_ + "/sluice/chat_history";
  for (int round = 0; round < 2; ++round) {
    Terminal terminal(chat(), environment());
    terminal.wait_for("> ");
    terminal.type(round == 0 ? "/stats\r" : std::string(kUp) + "\r");
    terminal.wait_for("no answer yet");
    terminal.wait_for("> ");
    terminal.type(kCtrlD);
    EXPECT_EQ(terminal.wait_for_end(), 0);
    EXPECT_THAT(terminal.screen(), Not(HasSubstr("no history is kept")));
  }
  EXPECT_EQ(read_text_file(path), "/stats\n/stats\n");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  ASSERT_EQ(::stat((state_ + "/sluice").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
}

TEST_F(ChatTerminal, HistoryThatHasGrownLongIsCut) {
  std::string lines;
  for (int i = 0; i < 2500; ++i) lines += "/line" + std::to_string(i) + "\n";
  std::filesystem::create_directories(state_ + "/sluice");
  write_file_atomically(state_ + "/sluice/chat_history", lines);
  Terminal terminal(chat(), environment());
  terminal.wait_for("> ");
  terminal.type(kCtrlD);
  EXPECT_EQ(terminal.wait_for_end(), 0);
  const std::string rest = read_text_file(state_ + "/sluice/chat_history");
  EXPECT_EQ(rest, lines.substr(lines.find("/line1500\n")));
}

TEST_F(ChatTerminal, WithoutAPlaceForTheHistoryTheChatWorks) {
  write_file_atomically(folder_ / "file", "");
  for (const auto& [home, part] :
       {std::pair<std::string, std::string>{"HOME=", "HOME is not set"},
        {"HOME=" + (folder_ / "file").string(), "/file: cannot create the folder"}}) {
    Terminal terminal(chat(), {"TERM=xterm", "XDG_STATE_HOME=", home});
    terminal.wait_for("no history is kept: ");
    terminal.wait_for(part);
    terminal.wait_for("> ");
    terminal.type(kCtrlD);
    EXPECT_EQ(terminal.wait_for_end(), 0);
  }
}

}  // namespace
}  // namespace sluice::testing
