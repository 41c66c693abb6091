// A pseudo terminal by forkpty.
#include "apps/terminal.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

namespace sluice::testing {

Terminal::Terminal(const Arguments& arguments, const Arguments& environment) {
  struct winsize size {};
  size.ws_row = 50;
  size.ws_col = 200;
  child_ = ::forkpty(&master_, nullptr, nullptr, &size);
  if (child_ < 0) throw std::runtime_error("cannot open a pseudo terminal");
  if (child_ == 0) execute_program(arguments, environment);
}

Terminal::~Terminal() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  ::close(master_);
}

Terminal::Reading Terminal::read_more() {
  struct pollfd ready {
    master_, POLLIN, 0
  };
  constexpr int kGuardMs = 60'000;  // against a program that hangs; nothing waits for it otherwise
  if (::poll(&ready, 1, kGuardMs) != 1) return kSilence;
  char buffer[1 << 12];
  const ssize_t n = ::read(master_, buffer, sizeof buffer);  // fails once the program has ended
  if (n <= 0) return kEnd;
  screen_.append(buffer, static_cast<size_t>(n));
  return kMore;
}

bool Terminal::wait_for(const std::string& text) {
  size_t found;
  while ((found = screen_.find(text, seen_)) == std::string::npos) {
    if (read_more() == kMore) continue;
    ADD_FAILURE() << "waited for \"" << text << "\", and the screen shows:\n" << screen_;
    return false;
  }
  seen_ = found + text.size();
  return true;
}

void Terminal::type(const std::string& keys) {
  ASSERT_EQ(::write(master_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

int Terminal::wait_for_end() {
  Reading reading;
  while ((reading = read_more()) == kMore) {
  }
  if (reading == kSilence) {
    ADD_FAILURE() << "the program did not end, and the screen shows:\n" << screen_;
    ::kill(child_, SIGKILL);
  }
  int status = 0;
  ::waitpid(child_, &status, 0);
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace sluice::testing
