// The Trace Event Format's complete events.
#include "device/timed/timeline.h"

#include <cstdio>
#include <fstream>
#include <map>

#include "base/error.h"

namespace sluice {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      result += escape;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string microseconds(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

}  // namespace

void write_chrome_trace(std::span<const TimelineSpan> spans, const std::filesystem::path& path) {
  std::ofstream file(path);
  std::map<std::string, int> rows;  // of the streams, in the order of their first span
  file << "{\"traceEvents\":[";
  const char* separator = "\n";
  for (const TimelineSpan& span : spans) {
    const auto [row, added] = rows.emplace(span.stream, static_cast<int>(rows.size()));
    const std::string place = ",\"pid\":0,\"tid\":" + std::to_string(row->second);
    if (added) {
      file << separator << R"({"ph":"M","name":"thread_name")" << place
           << ",\"args\":{\"name\":" << quoted(span.stream) << "}}";
      separator = ",\n";
    }
    file << separator << R"({"ph":"X","name":)" << quoted(span.name) << place
         << ",\"ts\":" << microseconds(span.start_us)
         << ",\"dur\":" << microseconds(span.end_us - span.start_us) << "}";
    separator = ",\n";
  }
  file << "\n]}\n";
  file.close();
  if (!file) throw Error(ErrorCode::kIo, path.string() + ": cannot write the trace");
}

}  // namespace sluice
