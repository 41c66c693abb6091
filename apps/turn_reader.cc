// Joins lines to turns.
#include "apps/turn_reader.h"

namespace sluice::apps {
namespace {

constexpr const char* kPrompt = "> ";
constexpr const char* kMorePrompt = ". ";
constexpr std::string_view kFence = "\"\"\"";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Both append the rest of a turn to `text`; false: the user dropped it.
bool read_block(LineReader& reader, std::string& text) {
  for (bool first = true;; first = false) {
    const Line line = reader.read(kMorePrompt);
    if (line.kind == Line::kCancelled) return false;
    if (line.kind == Line::kEnd || trimmed(line.text) == kFence) return true;
    if (!first) text += '\n';
    text += line.text;
  }
}

bool read_continuation(LineReader& reader, std::string& text) {
  while (text.ends_with('\\')) {
    text.back() = '\n';
    const Line line = reader.read(kMorePrompt);
    if (line.kind == Line::kCancelled) return false;
    if (line.kind == Line::kEnd) return true;
    text += line.text;
  }
  return true;
}

}  // namespace

Turn read_turn(LineReader& reader) {
  for (;;) {
    const Line line = reader.read(kPrompt);
    if (line.kind == Line::kEnd) return {};
    if (line.kind == Line::kCancelled) continue;
    if (line.text.starts_with('/') && !line.text.ends_with('\\')) {
      return {Turn::kCommand, std::string(trimmed(line.text))};
    }
    std::string text;
    if (trimmed(line.text) == kFence) {
      if (!read_block(reader, text)) continue;
    } else {
      text = line.text;
      if (!read_continuation(reader, text)) continue;
    }
    if (!trimmed(text).empty()) return {Turn::kMessage, text};
  }
}

}  // namespace sluice::apps
