// Lines of a pipe or a file.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/line_reader.h"
#include "base/error.h"
#include "text/utf8.h"

namespace sluice::apps {
namespace {

class PlainReader final : public LineReader {
 public:
  Line read(const std::string&) override {
    size_t end;
    while ((end = buffer_.find('\n', start_)) == std::string::npos && fill()) {
    }
    if (end == std::string::npos && start_ == buffer_.size()) return {Line::kEnd, ""};
    std::string_view bytes = std::string_view(buffer_).substr(start_, end - start_);
    start_ = end == std::string::npos ? buffer_.size() : end + 1;
    if (bytes.ends_with('\r')) bytes.remove_suffix(1);
    Line line{Line::kText, ""};
    append_repaired(line.text, bytes, true);
    return line;
  }

 private:
  // Reads more bytes; false at the end of input.
  bool fill() {
    buffer_.erase(0, start_);
    start_ = 0;
    char bytes[1 << 12];
    for (;;) {
      const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        throw Error(ErrorCode::kIo, std::string("standard input: cannot read: ") + std::strerror(errno));
      }
      buffer_.append(bytes, static_cast<size_t>(n));
      return n > 0;
    }
  }

  std::string buffer_;
  size_t start_ = 0;  // of the next line
};

}  // namespace

std::unique_ptr<LineReader> make_plain_reader() { return std::make_unique<PlainReader>(); }

}  // namespace sluice::apps
