// The text that a bench runs token by token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::apps {

class Command;
struct ModelOptions;

struct BenchText {
  std::string file = "-";
  int64_t max_tokens = 0;

  /// Adds --text and --max-tokens, whose default is `most`.
  void add_to(Command& command, int64_t most);
  /// The ids of the text, at most max_tokens. Throws Error; kInvalidArgument for fewer than `least` tokens.
  std::vector<int32_t> read(const ModelOptions& model, size_t least) const;
};

/// Options that mean nothing to a bench: it decodes alone, and its table is the report.
inline const std::vector<std::string> kNotForBenches = {"--report",
                                                        "--residency",
                                                        "--warm-from",
                                                        "--prefill-mode",
                                                        "--prefill-copy-priority",
                                                        "--prefill-invalidate",
                                                        "--prefill-hit",
                                                        "--prefill-ring",
                                                        "--prefill-group"};

/// Throws UsageError: there is nothing to measure.
[[noreturn]] void refuse_without_slots(const std::string& bench);

}  // namespace sluice::apps
