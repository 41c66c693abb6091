// The clock, with Python's two differences from C's strftime.
#include "text/jinja/clock.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "base/error.h"

namespace sluice::jinja {
namespace {

std::tm fixed_time(const char* text) {
  std::tm time{};
  int used = 0;
  const int fields = std::sscanf(text, "%4d-%2d-%2d%*1[T ]%2d:%2d:%2d%n", &time.tm_year, &time.tm_mon,
                                 &time.tm_mday, &time.tm_hour, &time.tm_min, &time.tm_sec, &used);
  const auto positive = [](int field) { return static_cast<unsigned>(std::max(field, 0)); };
  const std::chrono::year_month_day date{std::chrono::year(time.tm_year),
                                         std::chrono::month(positive(time.tm_mon)),
                                         std::chrono::day(positive(time.tm_mday))};
  const bool in_range = time.tm_year >= 1900 && date.ok() && time.tm_hour >= 0 && time.tm_hour < 24 &&
                        time.tm_min >= 0 && time.tm_min < 60 && time.tm_sec >= 0 && time.tm_sec <= 60;
  if (fields != 6 || !in_range || text[used] != '\0') {
    throw Error(ErrorCode::kInvalidArgument,
                "SLUICE_CLOCK is '" + std::string(text) + "'; it must be a time such as 2026-11-29T12:00:00");
  }
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  time.tm_isdst = -1;
  std::mktime(&time);  // fills in the day of the week and of the year
  return time;
}

std::tm now() {
  if (const char* fixed = std::getenv("SLUICE_CLOCK"); fixed != nullptr && *fixed != '\0')
    return fixed_time(fixed);
  const std::time_t seconds = std::time(nullptr);
  std::tm time{};
  ::localtime_r(&seconds, &time);
  return time;
}

// Python's times here have no zone and whole seconds: %z and %Z are empty, %f is six zeros.
std::string without_zone(const std::string& format) {
  std::string plain;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      plain += format[i];
      continue;
    }
    const char letter = format[++i];
    if (letter == 'f') {
      plain += "000000";
    } else if (letter != 'z' && letter != 'Z') {
      plain += '%';
      plain += letter;
    }
  }
  return plain;
}

}  // namespace

std::string format_now(const std::string& format) {
  const std::tm time = now();
  // The mark tells an empty result from a buffer that is too small. No conversion writes 64 times its own
  // length without a field width, and a width is cut off by the last size.
  const std::string marked = without_zone(format) + "|";
  for (size_t size = 256 + marked.size() * 64; size < (size_t{1} << 24); size *= 4) {
    std::vector<char> buffer(size);
    const size_t written = std::strftime(buffer.data(), size, marked.c_str(), &time);
    if (written > 0) return std::string(buffer.data(), written - 1);
  }
  throw Error(ErrorCode::kUnsupported, "strftime_now: the formatted time is too long");
}

}  // namespace sluice::jinja
