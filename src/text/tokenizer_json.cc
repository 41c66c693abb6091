// tokenizer.json to TokenizerSpec: every field is checked, and what is not known is refused by name.
#include <simdjson.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "text/foreign_tokenizer.h"
#include "text/piece_scanner.h"
#include "text/tokenizer_spec.h"
#include "text/utf8.h"

namespace sluice {
namespace {

using simdjson::dom::element;

/// A value of the file that knows where it is.
class Field {
 public:
  Field(element value, std::string path, const std::string& file)
      : value_(value), path_(std::move(path)), file_(&file) {}

  std::optional<Field> find(std::string_view name) const {
    element child;
    if (!value_.is_object()) bad("expected an object");
    if (value_[name].get(child) != simdjson::SUCCESS || child.is_null()) return std::nullopt;
    return Field(child, path_.empty() ? std::string(name) : path_ + '.' + std::string(name), *file_);
  }
  Field operator[](std::string_view name) const {
    std::optional<Field> field = find(name);
    if (!field) bad("has no field \"" + std::string(name) + '"');
    return *field;
  }
  std::string_view text() const {
    std::string_view text;
    if (value_.get(text) != simdjson::SUCCESS) bad("expected a string");
    return text;
  }
  std::string text_or_empty(std::string_view name) const {
    const std::optional<Field> field = find(name);
    return field ? std::string(field->text()) : std::string();
  }
  bool flag_or(std::string_view name, bool fallback) const {
    const std::optional<Field> field = find(name);
    bool flag = fallback;
    if (field && field->value_.get(flag) != simdjson::SUCCESS) field->bad("expected true or false");
    return flag;
  }
  int64_t integer(int64_t low, int64_t high) const {
    int64_t integer = 0;
    if (value_.get(integer) != simdjson::SUCCESS || integer < low || integer > high) {
      bad("expected an integer from " + std::to_string(low) + " to " + std::to_string(high));
    }
    return integer;
  }
  TokenId token_id() const { return static_cast<TokenId>(integer(0, kMaxTokenId)); }
  simdjson::dom::array array() const {
    simdjson::dom::array array;
    if (value_.get(array) != simdjson::SUCCESS) bad("expected an array");
    return array;
  }
  simdjson::dom::object object() const {
    simdjson::dom::object object;
    if (value_.get(object) != simdjson::SUCCESS) bad("expected an object");
    return object;
  }
  /// Calls visit(Field) for each element.
  template <class Visit>
  void for_each(const Visit& visit) const {
    size_t index = 0;
    for (const element child : array())
      visit(Field(child, path_ + '[' + std::to_string(index++) + ']', *file_));
  }
  bool is_null() const { return value_.is_null(); }
  const element& value() const { return value_; }

  [[noreturn]] void bad(const std::string& what) const { fail(ErrorCode::kBadFile, what); }
  [[noreturn]] void unsupported(const std::string& what) const {
    fail(ErrorCode::kUnsupported, what + " is not supported");
  }

 private:
  [[noreturn]] void fail(ErrorCode code, const std::string& what) const {
    throw Error(code, *file_ + ": " + (path_.empty() ? "the top level" : path_) + ": " + what);
  }

  element value_;
  std::string path_;
  const std::string* file_;
};

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

PatternSpec read_pattern(const Field& field) {
  if (const auto literal = field.find("String")) return {std::string(literal->text()), false};
  if (const auto regex = field.find("Regex")) return {std::string(regex->text()), true};
  field.bad("expected an object with String or Regex");
}

void read_added_tokens(const Field& field, TokenizerSpec& spec) {
  field.for_each([&](const Field& token) {
    spec.added_tokens.push_back({token["id"].token_id(), std::string(token["content"].text()),
                                 token.flag_or("single_word", false), token.flag_or("lstrip", false),
                                 token.flag_or("rstrip", false), token.flag_or("normalized", false),
                                 token.flag_or("special", false)});
  });
}

// How much longer replacements, one behind the other, can make a text: a few dozen that double it would fill
// any memory.
class Growth {
 public:
  void add(const Field& field, const PatternSpec& pattern, size_t content_bytes) {
    const size_t matched = pattern.is_regex ? 1 : std::max(pattern.text.size(), size_t{1});
    times_ *= std::max(content_bytes / matched + (content_bytes % matched != 0), size_t{1});
    if (times_ > kMost) field.unsupported("making a text more than 1000 times as long");
  }

 private:
  static constexpr size_t kMost = 1000;
  size_t times_ = 1;
};

void read_normalizer(const Field& field, TokenizerSpec& spec, Growth& growth) {
  const std::string_view type = field["type"].text();
  if (type == "Sequence") {
    field["normalizers"].for_each([&](const Field& step) { read_normalizer(step, spec, growth); });
  } else if (type == "NFC") {
    spec.normalizer.emplace_back(NfcSpec{});
  } else if (type == "Replace") {
    ReplaceSpec step{read_pattern(field["pattern"]), std::string(field["content"].text())};
    growth.add(field, step.pattern, step.content.size());
    spec.normalizer.emplace_back(std::move(step));
  } else if (type == "Prepend") {
    spec.normalizer.emplace_back(PrependSpec{std::string(field["prepend"].text())});
  } else {
    field.unsupported("the normalizer " + in_quotes(type));
  }
}

SplitBehavior read_behavior(const Field& field) {
  const std::string_view name = field.text();
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  field.unsupported("the behavior " + in_quotes(name));
}

PrependScheme read_prepend_scheme(const Field& field) {
  const auto scheme = field.find("prepend_scheme");
  // Files of before 2024 have a flag in its place.
  if (!scheme)
    return field.flag_or("add_prefix_space", true) ? PrependScheme::kAlways : PrependScheme::kNever;
  if (scheme->text() == "always") return PrependScheme::kAlways;
  if (scheme->text() == "first") return PrependScheme::kFirst;
  if (scheme->text() == "never") return PrependScheme::kNever;
  scheme->unsupported("the scheme " + in_quotes(scheme->text()));
}

std::string read_character(const Field& field) {
  const std::string_view text = field.text();
  if (text.empty() || utf8_length(text[0]) != text.size()) field.bad("expected one character");
  return std::string(text);
}

void read_byte_level(const Field& field, TokenizerSpec& spec) {
  if (field.flag_or("add_prefix_space", true)) spec.pre_tokenizer.emplace_back(SpacePrefixSpec{});
  if (field.flag_or("use_regex", true)) {
    spec.pre_tokenizer.emplace_back(
        SplitSpec{{std::string(kGpt2Pieces), true}, SplitBehavior::kIsolated, false});
  }
  spec.byte_level = true;
}

void read_metaspace(const Field& field, TokenizerSpec& spec) {
  const std::string replacement = read_character(field["replacement"]);
  spec.pre_tokenizer.emplace_back(MetaspaceSpec{replacement, read_prepend_scheme(field)});
  if (!field.flag_or("split", true)) return;
  spec.pre_tokenizer.emplace_back(SplitSpec{{replacement, false}, SplitBehavior::kMergedWithNext, false});
}

void read_pre_tokenizer(const Field& field, TokenizerSpec& spec) {
  const std::string_view type = field["type"].text();
  if (type == "Sequence") {
    field["pretokenizers"].for_each([&](const Field& step) { read_pre_tokenizer(step, spec); });
    return;
  }
  if (spec.byte_level) field.unsupported("the pre-tokenizer " + in_quotes(type) + " behind ByteLevel");
  if (type == "Split") {
    spec.pre_tokenizer.emplace_back(SplitSpec{
        read_pattern(field["pattern"]), read_behavior(field["behavior"]), field.flag_or("invert", false)});
  } else if (type == "ByteLevel") {
    read_byte_level(field, spec);
  } else if (type == "Digits") {
    const bool one_by_one = field.flag_or("individual_digits", false);
    spec.pre_tokenizer.emplace_back(SplitSpec{
        {"\\p{N}", true}, one_by_one ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, false});
  } else if (type == "Metaspace") {
    read_metaspace(field, spec);
  } else {
    field.unsupported("the pre-tokenizer " + in_quotes(type));
  }
}

// The decoders that TokenDecoder can do, in the order in which it does them.
enum class DecoderStage { kNone, kTokens, kByteFallback, kFuse, kStrip, kByteLevel };

void read_strip(const Field& field, DecoderSpec& decoder) {
  decoder.strip_content = read_character(field["content"]);
  decoder.strip_at_start = field["start"].integer(0, INT32_MAX);
  if (field["stop"].integer(0, INT32_MAX) != 0) field.unsupported("stripping at the end");
}

void read_decoder(const Field& field, DecoderSpec& decoder, DecoderStage& done, Growth& growth) {
  const std::string_view type = field["type"].text();
  const auto enter = [&](DecoderStage stage, bool is_allowed) {
    if (!is_allowed) field.unsupported("the decoder " + in_quotes(type) + " at this place");
    done = stage;
  };
  if (type == "Sequence") {
    field["decoders"].for_each([&](const Field& step) { read_decoder(step, decoder, done, growth); });
  } else if (type == "ByteLevel") {
    enter(DecoderStage::kByteLevel, done == DecoderStage::kNone);
    decoder.byte_level = true;
  } else if (type == "Replace") {
    enter(DecoderStage::kTokens, done <= DecoderStage::kTokens && !decoder.drop_in_first);
    const PatternSpec pattern = read_pattern(field["pattern"]);
    if (pattern.is_regex || pattern.text.empty())
      field.unsupported("a decoder that replaces no literal text");
    growth.add(field, pattern, field["content"].text().size());
    decoder.replaces.emplace_back(pattern.text, field["content"].text());
  } else if (type == "Metaspace") {
    enter(DecoderStage::kTokens, done == DecoderStage::kNone);
    decoder.replaces.emplace_back(read_character(field["replacement"]), " ");
    decoder.drop_in_first = read_prepend_scheme(field) != PrependScheme::kNever;
  } else if (type == "ByteFallback") {
    enter(DecoderStage::kByteFallback, done <= DecoderStage::kTokens);
    decoder.byte_fallback = true;
  } else if (type == "Fuse") {
    enter(DecoderStage::kFuse, done <= DecoderStage::kByteFallback);
  } else if (type == "Strip") {
    enter(DecoderStage::kStrip, done == DecoderStage::kFuse);
    read_strip(field, decoder);
  } else {
    field.unsupported("the decoder " + in_quotes(type));
  }
}

void read_vocabulary(const Field& field, BpeSpec& model) {
  const simdjson::dom::object object = field.object();
  model.vocabulary.reserve(object.size());
  for (const auto& [token, value] : object) {
    int64_t id = 0;
    if (value.get(id) != simdjson::SUCCESS || id < 0 || id > kMaxTokenId) {
      field.bad("token " + in_quotes(token) + ": expected an id from 0 to " + std::to_string(kMaxTokenId));
    }
    model.vocabulary.emplace_back(token, static_cast<TokenId>(id));
  }
}

// A merge is "left right", or since 2024 ["left", "right"].
bool split_merge(const element& merge, std::string_view& left, std::string_view& right) {
  std::string_view line;
  if (merge.get(line) == simdjson::SUCCESS) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) return false;
    left = line.substr(0, space);
    right = line.substr(space + 1);
    return true;
  }
  simdjson::dom::array pair;
  if (merge.get(pair) != simdjson::SUCCESS || pair.size() != 2) return false;
  auto at = pair.begin();
  if ((*at).get(left) != simdjson::SUCCESS) return false;
  return (*++at).get(right) == simdjson::SUCCESS;
}

void read_merges(const Field& field, BpeSpec& model) {
  for (const element merge : field.array()) {
    std::string_view left, right;
    if (!split_merge(merge, left, right)) {
      field.bad("entry " + std::to_string(model.merges.size()) + ": expected two tokens");
    }
    model.merges.emplace_back(left, right);
  }
}

void read_model(const Field& field, BpeSpec& model) {
  const auto type = field.find("type");
  if (type && type->text() != "BPE") field.unsupported("the model " + in_quotes(type->text()));
  for (const std::string_view name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!field.text_or_empty(name).empty()) field.unsupported(in_quotes(name));
  }
  double dropout = 0;
  if (const auto value = field.find("dropout"); value && (value->value().get(dropout) || dropout != 0)) {
    field.unsupported("\"dropout\"");
  }
  model.unknown_token = field.text_or_empty("unk_token");
  model.fuse_unknown = field.flag_or("fuse_unk", false);
  model.byte_fallback = field.flag_or("byte_fallback", false);
  model.ignore_merges = field.flag_or("ignore_merges", false);
  read_vocabulary(field["vocab"], model);
  read_merges(field["merges"], model);
}

}  // namespace

TokenizerSpec parse_tokenizer_spec(std::string_view json, const std::string& file) {
  auto parser = std::make_shared<simdjson::dom::parser>();
  const simdjson::padded_string padded(json);
  element root;
  if (const auto error = parser->parse(padded).get(root)) {
    throw Error(ErrorCode::kBadFile, file + ": is no JSON: " + simdjson::error_message(error));
  }
  TokenizerSpec spec;
  spec.file = file;
  spec.text_owner = parser;
  const Field top(root, "", spec.file);
  if (const auto tokens = top.find("added_tokens")) read_added_tokens(*tokens, spec);
  Growth normalizer_growth, decoder_growth;
  if (const auto normalizer = top.find("normalizer")) read_normalizer(*normalizer, spec, normalizer_growth);
  if (const auto pre_tokenizer = top.find("pre_tokenizer")) read_pre_tokenizer(*pre_tokenizer, spec);
  read_model(top["model"], spec.model);
  DecoderStage done = DecoderStage::kNone;
  read_decoder(top["decoder"], spec.decoder, done, decoder_growth);
  if (spec.decoder.byte_level != spec.byte_level) {
    top.unsupported("ByteLevel in only one of pre_tokenizer and decoder");
  }
  return spec;
}

TokenizerSpec read_tokenizer_spec(const std::filesystem::path& file) {
  std::error_code ignored;  // open says what is wrong
  if (std::filesystem::status(file, ignored).type() == std::filesystem::file_type::not_found) {
    throw_no_tokenizer(file);
  }
  const MappedFile mapping = MappedFile::open(file);
  const std::span<const std::byte> bytes = mapping.bytes();
  const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  refuse_foreign_tokenizer(content, file);
  return parse_tokenizer_spec(content, file.string());
}

}  // namespace sluice
