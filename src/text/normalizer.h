// Normalisation of text before it is split into pieces.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/regex.h"
#include "text/tokenizer_spec.h"

namespace sluice {

/// Appends the NFC form (UAX 15) of `text`, valid UTF-8, in O(n log n).
void append_nfc(std::string& out, std::string_view text);
/// Whether `text` is known to be in NFC by its characters alone; false may be wrong, true never is.
bool is_surely_nfc(std::string_view text);

/// The steps of a normalizer, in order. Immutable; normalize may be called from several threads.
class Normalizer {
 public:
  /// Throws Error kUnsupported for a regular expression that Regex refuses; messages name `file`.
  Normalizer(const std::vector<NormalizerStepSpec>& steps, const std::string& file);

  /// The normal form of `text` (valid UTF-8): `text` itself where nothing changes, else a view of `buffer`.
  std::string_view normalize(std::string_view text, std::string& buffer) const;
  bool is_empty() const { return steps_.empty(); }

 private:
  struct Replace {
    std::string literal;  // used if there is no regex
    std::vector<Regex> regex;
    std::string content;
  };
  using Step = std::variant<NfcSpec, Replace, PrependSpec>;
  static bool apply(const NfcSpec& step, std::string_view text, std::string& out);
  static bool apply(const Replace& step, std::string_view text, std::string& out);
  static bool apply(const PrependSpec& step, std::string_view text, std::string& out);

  std::vector<Step> steps_;
};

}  // namespace sluice
