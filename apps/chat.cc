// `sluice chat`: a conversation at a terminal, or line by line from a pipe.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "apps/arguments.h"
#include "apps/chat_session.h"
#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/line_reader.h"
#include "apps/messages.h"
#include "apps/turn_reader.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/printable.h"

namespace sluice::apps {
namespace {

constexpr const char* kCommands =
    "/reset        forget the conversation; the system message stays\n"
    "/system TEXT  set the system message; without TEXT: remove it\n"
    "/save FILE    write the conversation as JSON\n"
    "/load FILE    go on with a conversation that was saved\n"
    "/stats        tokens, rates and experts of the last answer\n"
    "/slots N      set the number of expert slots: a number, a share such as 25%, or all\n"
    "/help         this list\n"
    "/exit         end; so does Ctrl-D\n";

constexpr const char* kKeys =
    "A line that ends with \\ goes on in the next; a line \"\"\" begins and ends a block of lines.\n"
    "Ctrl-C stops an answer or drops a line.\n";

struct ChatOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::optional<std::string> system;
  std::string load;
};

// Not through stdio: Ctrl-C may interrupt a write, and a stream then loses its bytes.
void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      throw Error(ErrorCode::kIo, std::string("cannot write to standard output: ") + std::strerror(errno));
    }
    text.remove_prefix(static_cast<size_t>(n));
  }
}

void notice(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

class Chat {
 public:
  Chat(const ChatOptions& options, Conversation start)
      : options_(options),
        out_(::fileno(options.model.text_stream())),
        session_(options.model, options.sampling) {
    session_.conversation() = std::move(start);
  }

  /// Throws Error where turns were dropped or commands failed and nobody sat at a terminal to see it.
  void run() {
    const bool terminal = ::isatty(STDIN_FILENO) != 0;
    const auto reader = terminal ? make_terminal_reader() : make_plain_reader();
    if (terminal)
      notice("Chatting with " + printable(options_.model.place.name()) +
             ". /help lists the commands, Ctrl-D ends.");
    const InterruptGuard between_turns;  // a late Ctrl-C must not end the program
    bool ended = false;                  // by /exit
    while (!ended) {
      session_.idle();
      const Turn turn = read_turn(*reader);
      if (turn.kind == Turn::kEnd) break;
      if (turn.kind == Turn::kMessage) say(turn.text);
      ended = turn.kind == Turn::kCommand && !obey(turn.text);
    }
    if (terminal && !ended) write_out("\n");
    std::fputs(session_.finish().c_str(), stderr);
    if (!terminal && dropped_ + failed_ > 0) throw Error(ErrorCode::kInvalidArgument, what_was_lost());
  }

 private:
  void write_out(std::string_view text) const { write_all(out_, text); }

  std::string what_was_lost() const {
    std::string text;
    if (dropped_ > 0) text = counted(dropped_, "turn was", "turns were") + " dropped";
    if (failed_ > 0) text += (text.empty() ? "" : ", ") + counted(failed_, "command") + " failed";
    return text;
  }

  void say(const std::string& text) {
    const InterruptGuard interrupt;
    bool begun = false;
    try {
      const FinishReason reason = session_.say(
          text,
          [&](std::string_view piece) {
            begun = true;
            write_out(piece);
          },
          [&] { return interrupt.raised(); });
      write_out("\n");
      if (reason == FinishReason::kCancelled) notice(begun ? "(stopped)" : "(stopped; the turn is dropped)");
      if (reason == FinishReason::kLength) notice("(cut: " + reason_of_cut() + ")");
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kIo) throw;  // nobody reads the answers
      if (begun) write_out("\n");
      ++dropped_;
      print_message(std::string(error.what()) + "; the turn is dropped" +
                    (session_.conversation().empty() ? "" : " (/reset begins a new conversation)"));
    }
  }

  std::string reason_of_cut() const {
    const int64_t most = options_.sampling.max_tokens;
    if (session_.last_turn()->answer_tokens >= most) return "--max-tokens " + std::to_string(most);
    return "the context of " + std::to_string(session_.context_tokens()) +
           " tokens is full; /reset begins a new conversation";
  }

  // Returns false for /exit.
  bool obey(const std::string& line) {
    const size_t blank = line.find_first_of(" \t");
    const std::string command = line.substr(0, blank);
    const size_t start = line.find_first_not_of(" \t", blank);
    const std::string rest =
        blank == std::string::npos || start == std::string::npos ? "" : line.substr(start);
    if (command == "/exit") return false;
    try {
      obey(command, rest);
    } catch (const Error& error) {
      ++failed_;
      print_message(error.what());
    }
    return true;
  }

  void obey(const std::string& command, const std::string& rest) {
    Conversation& conversation = session_.conversation();
    if (command == "/help") {
      write_out(std::string(kCommands) + kKeys);
    } else if (command == "/stats") {
      write_out(session_.stats());
    } else if (command == "/slots") {
      if (rest.empty()) throw Error(ErrorCode::kInvalidArgument, "/slots needs a number, a share or all");
      notice(session_.resize(rest));
    } else if (command == "/reset") {
      const bool has_system = !conversation.empty() && conversation[0].role == "system";
      conversation.resize(has_system ? 1 : 0);
      session_.forget_stats();
      notice("a new conversation");
    } else if (command == "/system") {
      set_system(conversation, rest);
      notice(rest.empty() ? "no system message" : "the system message is set");
    } else if (command == "/save" || command == "/load") {
      if (rest.empty()) throw Error(ErrorCode::kInvalidArgument, command + " needs the name of a file");
      if (command == "/load") {
        conversation = load_conversation(rest);
        session_.forget_stats();
      }
      if (command == "/save") {
        FileUses files;
        files.writes("/save", rest);
        options_.model.check(files);
        save(conversation, rest);
      }
      notice((command == "/load" ? "loaded " : "saved ") + counted(conversation.size(), "message"));
    } else {
      ++failed_;
      print_message("unknown command " + command + "; the commands are:");
      notice(kCommands);
    }
  }

  const ChatOptions& options_;
  const int out_;  // where answers go
  ChatSession session_;
  int dropped_ = 0, failed_ = 0;  // turns that ended with an error, and commands
};

void run_chat(const ChatOptions& options) {
  options.sampling.check();
  FileUses files;
  if (!options.load.empty()) files.reads("--load", options.load);
  options.model.check(files);
  Conversation start;  // read before the model: a bad file shows at once
  if (!options.load.empty()) start = load_conversation(options.load);
  if (options.system && !options.system->empty()) set_system(start, *options.system);
  Chat(options, std::move(start)).run();
}

}  // namespace

void add_chat(Command& program) {
  auto options = std::make_shared<ChatOptions>();
  Command command = program.subcommand("chat", "Talk with a model");
  options->model.add_to(command, true);
  command.option("--system", options->system, "System message");
  command.option("--load", options->load, "Go on with a conversation that /save wrote").type("FILE");
  options->sampling.add_to(command);
  command.footer(std::string("Commands:\n") + kCommands + "\n" + kKeys +
                 "\nWhere standard input is no terminal, each line or block is one turn, answers go to "
                 "standard output, and the\n"
                 "end of input ends the program, with exit code 1 if turns were dropped or commands failed:\n"
                 "\n"
                 "  $ printf 'What is a violin?\\nAnd a cello?\\n' | sluice chat --model MODEL\n"
                 "\n"
                 "Lines typed at a terminal are kept in ~/.local/state/sluice/chat_history (below "
                 "$XDG_STATE_HOME where that is set).");
  command.action([options] { run_chat(*options); });
}

}  // namespace sluice::apps
