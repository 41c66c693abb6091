// config.json and its relatives, with each field checked as it is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// A read-only JSON object that knows its file and its path inside it, so that every complaint names both:
/// "config.json: rope_parameters.rope_theta: expected a number, found a string".
///
/// Getters take several spellings of a field (transformers 4 and 5 differ: "num_experts",
/// "num_local_experts"); the first one present and not null wins. Missing required fields throw Error
/// kBadFile that lists all spellings; wrong types and values outside [low, high] throw Error kBadFile with
/// the value and the range.
class Config {
 public:
  using Names = std::initializer_list<std::string_view>;

  Config();  // an empty object
  /// Throws Error kNotFound or kBadFile. The file's top level must be an object.
  static Config read(const std::filesystem::path& file);
  static Config parse(std::string_view json, std::string file_name);

  bool has(Names names) const;  // present and not null
  int64_t integer(Names names, int64_t low, int64_t high) const;
  int64_t integer_or(Names names, int64_t low, int64_t high, int64_t fallback) const;
  double number(Names names, double low, double high) const;
  double number_or(Names names, double low, double high, double fallback) const;
  bool boolean_or(Names names, bool fallback) const;
  std::string string(Names names) const;
  std::string string_or(Names names, std::string fallback) const;
  /// Absent or null: empty. A single integer counts as a list of one (eos_token_id comes in both forms).
  std::vector<int64_t> integers(Names names) const;
  std::vector<std::string> strings(Names names) const;
  /// Absent or null: an empty Config that still names its path.
  Config object(Names names) const;
  std::vector<std::string> keys() const;

  const std::string& file() const { return file_; }

 private:
  struct Value;  // the parsed JSON, shared by nested Configs
  std::shared_ptr<const Value> value_;
  std::string file_, path_;
};

}  // namespace sluice
