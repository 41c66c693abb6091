// Splits normalised text into the pieces that the model encodes one by one.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/piece_scanner.h"
#include "text/regex.h"
#include "text/tokenizer_spec.h"

namespace sluice {

/// The pieces of one text, and the memory of those that a step rewrote. Views stay valid until the next
/// split.
struct Pieces {
  std::vector<std::string_view> views;
  std::vector<std::string_view> scratch;
  std::deque<std::string> rewritten;
};

/// The steps of a pre-tokenizer, in order. Immutable; split may be called from several threads.
class PreTokenizer {
 public:
  /// Throws Error kUnsupported for a regular expression that Regex refuses; messages name `file`.
  PreTokenizer(const std::vector<PreTokenizerStepSpec>& steps, const std::string& file);

  /// Sets `pieces` to the pieces of `text` (valid UTF-8), none of them empty. `at_start`: the text begins the
  /// input.
  void split(std::string_view text, bool at_start, Pieces& pieces) const;

 private:
  struct Split {
    std::string literal;  // used if there is no regex
    std::vector<Regex> regex;
    PieceScanner scanner;  // of the regex; may be null
    SplitBehavior behavior;
    bool invert;
    bool find(std::string_view text, size_t from, Regex::Match& match) const;
  };
  using Step = std::variant<Split, SpacePrefixSpec, MetaspaceSpec>;

  static void apply(const Split& step, bool at_start, Pieces& pieces);
  static void apply(const SpacePrefixSpec& step, bool at_start, Pieces& pieces);
  static void apply(const MetaspaceSpec& step, bool at_start, Pieces& pieces);

  std::vector<Step> steps_;
};

}  // namespace sluice
