// Line editing at a terminal, by libedit.
#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "apps/chat_history.h"
#include "apps/line_reader.h"
#include "base/error.h"
#include "text/utf8.h"

namespace sluice::apps {
namespace {

// libedit reads characters by the locale. Messages and numbers stay those of "C": only LC_CTYPE is set.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

class TerminalReader final : public LineReader {
 public:
  TerminalReader() : saved_(ChatHistory::open()) {
    use_utf8();
    FILE* screen = ::isatty(STDOUT_FILENO) != 0 ? stdout : stderr;
    history_.reset(::history_init());
    edit_.reset(::el_init("sluice", stdin, screen, stderr));
    if (!edit_ || !history_) throw Error(ErrorCode::kIo, "cannot start line editing on this terminal");
    HistEvent event;
    ::history(history_.get(), &event, H_SETSIZE, static_cast<int>(ChatHistory::kMostLines));
    ::history(history_.get(), &event, H_SETUNIQUE, 1);
    for (const std::string& line : saved_.lines()) ::history(history_.get(), &event, H_ENTER, line.c_str());
    configure();
    if (!saved_.problem().empty()) std::fprintf(stderr, "no history is kept: %s\n", saved_.problem().c_str());
  }

  Line read(const std::string& prompt) override {
    prompt_ = prompt;
    cancelled_ = false;
    // Before the prompt shows: libedit shows it first and takes the terminal over afterwards, and a Ctrl-D or
    // Ctrl-C between the two would be the terminal's own end of file or signal.
    ::el_set(edit_.get(), EL_PREP_TERM, 1);
    int count = 0;
    const char* typed = ::el_gets(edit_.get(), &count);
    if (cancelled_) return {Line::kCancelled, ""};
    if (typed == nullptr || count <= 0) {
      if (count < 0)
        throw Error(ErrorCode::kIo, std::string("terminal: cannot read: ") + std::strerror(errno));
      return {Line::kEnd, ""};
    }
    std::string_view bytes(typed, static_cast<size_t>(count));
    while (bytes.ends_with('\n') || bytes.ends_with('\r')) bytes.remove_suffix(1);
    Line line{Line::kText, ""};
    append_repaired(line.text, bytes, true);
    remember(line.text);
    return line;
  }

 private:
  struct EndEdit {
    void operator()(EditLine* edit) const { ::el_end(edit); }
  };
  struct EndHistory {
    void operator()(History* history) const { ::history_end(history); }
  };

  static TerminalReader& self(EditLine* edit) {
    void* data = nullptr;
    ::el_get(edit, EL_CLIENTDATA, &data);
    return *static_cast<TerminalReader*>(data);
  }
  static char* show_prompt(EditLine* edit) { return self(edit).prompt_.data(); }

  // Ctrl-C: what was typed stays on the screen, as in shells, and a pushed end of line ends the reading.
  static unsigned char cancel(EditLine* edit, int) {
    self(edit).cancelled_ = true;
    ::el_push(edit, "\n");
    return CC_NORM;
  }

  // Ctrl-Z, with the terminal given back while the program sleeps.
  static unsigned char suspend(EditLine* edit, int) {
    ::el_set(edit, EL_PREP_TERM, 0);
    std::raise(SIGTSTP);
    ::el_set(edit, EL_PREP_TERM, 1);
    return CC_REDISPLAY;
  }

  void configure() {
    EditLine* edit = edit_.get();
    ::el_set(edit, EL_CLIENTDATA, this);
    ::el_set(edit, EL_PROMPT, &TerminalReader::show_prompt);
    ::el_set(edit, EL_HIST, &::history, history_.get());
    ::el_set(edit, EL_EDITOR, "emacs");
    ::el_set(edit, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    ::el_source(edit, nullptr);
    // While a line is edited Ctrl-C is a key, not a signal: no race with the reading, and none between two
    // prompts.
    ::el_set(edit, EL_SETTY, "-d", "-isig", nullptr);
    // el_set() would make copies of the names that nothing frees.
    ::el_wset(edit, EL_ADDFN, L"sluice-cancel", L"Drop the line", &TerminalReader::cancel);
    ::el_wset(edit, EL_ADDFN, L"sluice-suspend", L"Suspend the program", &TerminalReader::suspend);
    ::el_set(edit, EL_BIND, "^C", "sluice-cancel", nullptr);
    ::el_set(edit, EL_BIND, "^Z", "sluice-suspend", nullptr);
    ::el_set(edit, EL_BIND, "-a", "^C", "sluice-cancel", nullptr);  // vi's command mode
  }

  void remember(const std::string& line) {
    if (line.find_first_not_of(" \t") == std::string::npos) return;
    HistEvent event;
    ::history(history_.get(), &event, H_ENTER, line.c_str());
    saved_.append(line);
  }

  ChatHistory saved_;
  std::unique_ptr<History, EndHistory> history_;  // outlives edit_, which reads it
  std::unique_ptr<EditLine, EndEdit> edit_;
  std::string prompt_;
  bool cancelled_ = false;
};

}  // namespace

std::unique_ptr<LineReader> make_terminal_reader() { return std::make_unique<TerminalReader>(); }

}  // namespace sluice::apps
