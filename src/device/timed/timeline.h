// What ran when.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace sluice {

/// One operation on a stream.
struct TimelineSpan {
  std::string name, stream;
  double start_us = 0, end_us = 0;
};

/// Writes the spans as a Chrome trace (chrome://tracing, Perfetto), one row a stream. Throws Error kIo.
void write_chrome_trace(std::span<const TimelineSpan> spans, const std::filesystem::path& path);

}  // namespace sluice
