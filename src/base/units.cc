// Byte counts for people.
#include "base/units.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <utility>

namespace sluice {

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " B";
  constexpr std::array kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000.0;
  size_t unit = 0;
  while (value >= 999.995 && unit + 1 < kUnits.size()) value /= 1000.0, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %s", value, kUnits[unit]);
  return text;
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1},     {"B", 1},     {"kB", 1e3},     {"KB", 1e3},        {"MB", 1e6},
      {"GB", 1e9}, {"TB", 1e12}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value >= 0)) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, factor] : kUnits) {
    if (unit == name && value * factor < 1.8e19) return static_cast<uint64_t>(value * factor);
  }
  return std::nullopt;
}

}  // namespace sluice
