// What a tokenizer.json says, as plain values: the stages of the tokenizer are built from these.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/tokenizer.h"

namespace sluice {

struct AddedTokenSpec {
  TokenId id = 0;
  std::string content;
  bool single_word = false;  // only between characters that are no part of a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space behind it
  bool normalized = false;   // found in normalised text, else before normalisation
  bool special = false;
};

/// A literal text or a regular expression in Oniguruma's syntax.
struct PatternSpec {
  std::string text;
  bool is_regex = false;
};

struct NfcSpec {};
struct ReplaceSpec {
  PatternSpec pattern;
  std::string content;
};
struct PrependSpec {
  std::string content;
};
using NormalizerStepSpec = std::variant<NfcSpec, ReplaceSpec, PrependSpec>;

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
struct SplitSpec {
  PatternSpec pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
};
/// A space before each piece that has none (GPT-2's add_prefix_space).
struct SpacePrefixSpec {};
enum class PrependScheme { kNever, kFirst, kAlways };
/// Spaces become `replacement`; which pieces get one in front depends on `prepend`.
struct MetaspaceSpec {
  std::string replacement;  // one character
  PrependScheme prepend = PrependScheme::kAlways;
};
using PreTokenizerStepSpec = std::variant<SplitSpec, SpacePrefixSpec, MetaspaceSpec>;

struct DecoderSpec {
  bool byte_level = false;  // tokens are in the byte alphabet; nothing else applies
  std::vector<std::pair<std::string, std::string>> replaces;  // literal, inside each token
  bool drop_in_first =
      false;  // the pattern of replaces[0] is dropped, not replaced, in the first token (Metaspace)
  bool byte_fallback = false;  // "<0x0A>" is a byte
  std::string strip_content;   // one character ...
  int64_t strip_at_start = 0;  // ... dropped up to this many times at the start of the text
};

/// Views point into `TokenizerSpec::text_owner`.
struct BpeSpec {
  std::vector<std::pair<std::string_view, TokenId>> vocabulary;
  std::vector<std::pair<std::string_view, std::string_view>> merges;
  std::string unknown_token;  // empty: none
  bool fuse_unknown = false;  // a run of unknown characters is one token
  bool byte_fallback = false;
  bool ignore_merges = false;  // a piece that is a token stays whole
};

struct TokenizerSpec {
  std::string file;  // for messages
  std::vector<AddedTokenSpec> added_tokens;
  std::vector<NormalizerStepSpec> normalizer;
  std::vector<PreTokenizerStepSpec> pre_tokenizer;
  bool byte_level = false;  // pieces are encoded byte by byte in the byte alphabet
  BpeSpec model;
  DecoderSpec decoder;
  std::shared_ptr<const void> text_owner;
};

// Bounds what a broken file can make us allocate: 60 MB. The largest vocabularies have about a million ids.
inline constexpr TokenId kMaxTokenId = (1 << 21) - 1;

/// Reads and checks a tokenizer.json. Throws Error kNotFound, kBadFile or kUnsupported, one line that names
/// the file and the part of it.
TokenizerSpec read_tokenizer_spec(const std::filesystem::path& file);
/// As above, from text; `file` is for messages.
TokenizerSpec parse_tokenizer_spec(std::string_view json, const std::string& file);

}  // namespace sluice
