// The stages of a tokenizer in order: added tokens, normalisation, pieces, merges; and back.
#include "text/tokenizer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/byte_level.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/token_decoder.h"
#include "text/tokenizer_impl.h"
#include "text/tokenizer_spec.h"
#include "text/utf8.h"

namespace sluice {
namespace {

std::vector<AddedTokenSpec> tokens_where(const TokenizerSpec& spec, bool normalized,
                                         const Normalizer& normalizer) {
  std::vector<AddedTokenSpec> chosen;
  std::string buffer;
  for (AddedTokenSpec token : spec.added_tokens) {
    if (token.normalized != normalized) continue;
    if (normalized) token.content = std::string(normalizer.normalize(token.content, buffer));
    chosen.push_back(std::move(token));
  }
  return chosen;
}

}  // namespace

Tokenizer::Impl::Impl(const TokenizerSpec& spec)
    : file(spec.file),
      normalizer(spec.normalizer, spec.file),
      pre_tokenizer(spec.pre_tokenizer, spec.file),
      bpe(spec.model, spec.byte_level, spec.file),
      added(tokens_where(spec, false, normalizer)),
      added_normalized(tokens_where(spec, true, normalizer)),
      decoder(spec.decoder),
      special(static_cast<size_t>(bpe.end_id())) {
  std::string bytes;
  for (const AddedTokenSpec& token : spec.added_tokens) {
    const TokenId in_model = bpe.find(token.content);
    bytes.clear();
    const bool is_mapped = spec.byte_level && append_from_alphabet(token.content, bytes);
    if ((in_model != kNoToken && in_model != token.id) ||
        !added_ids.emplace(token.content, token.id).second ||
        !added_texts.add(is_mapped ? bytes : token.content, token.id)) {
      throw Error(ErrorCode::kBadFile, file + ": added_tokens: \"" + token.content + "\" or its id " +
                                           std::to_string(token.id) + " is taken");
    }
    const auto index = static_cast<size_t>(token.id);
    if (index >= special.size()) special.resize(index + 1);
    special[index] = token.special;
  }
}

std::string_view Tokenizer::Impl::text_of(TokenId id) const {
  if (added_texts.has(id)) return added_texts.text(id);
  if (bpe.has(id)) return bpe.text(id);
  throw Error(ErrorCode::kInvalidArgument, file + ": no token has the id " + std::to_string(id) +
                                               "; ids go up to " +
                                               std::to_string(static_cast<int64_t>(special.size()) - 1));
}

void Tokenizer::Impl::encode_text(std::string_view text, bool at_start, EncodeScratch& scratch,
                                  std::vector<TokenId>& ids) const {
  pre_tokenizer.split(text, at_start, scratch.pieces);
  for (const std::string_view piece : scratch.pieces.views) bpe.encode(piece, scratch.bpe, ids);
}

void Tokenizer::Impl::encode_section(std::string_view text, bool at_start, bool special_tokens,
                                     EncodeScratch& scratch, std::vector<TokenId>& ids) const {
  const std::string_view normal = normalizer.normalize(text, scratch.normalized);
  if (added_normalized.is_empty()) return encode_text(normal, at_start, scratch, ids);
  added_normalized.split(normal, special_tokens, scratch.inner_sections);
  for (const auto [begin, end, token] : scratch.inner_sections) {
    if (token != kNoToken) {
      ids.push_back(token);
    } else {
      encode_text(normal.substr(begin, end - begin), at_start && begin == 0, scratch, ids);
    }
  }
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::filesystem::path& tokenizer_json) {
  return Tokenizer(std::make_unique<Impl>(read_tokenizer_spec(tokenizer_json)));
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& file) {
  return Tokenizer(std::make_unique<Impl>(parse_tokenizer_spec(json, file)));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    append_repaired(repaired, text, true);
    text = repaired;
  }
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 16);  // prose and code have about four bytes a token
  EncodeScratch scratch;
  const PieceCaches::Lease cache(impl_->piece_caches);
  scratch.bpe.cache = &*cache;
  impl_->added.split(text, options.special_tokens, scratch.sections);
  for (const auto [begin, end, token] : scratch.sections) {
    if (token != kNoToken) {
      ids.push_back(token);
    } else {
      impl_->encode_section(text.substr(begin, end - begin), begin == 0, options.special_tokens, scratch,
                            ids);
    }
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string text;
  DecodeState state;
  for (const TokenId id : ids) impl_->decode(id, skip_special, state, text);
  impl_->decoder.finish(state, text);
  return text;
}

std::string Tokenizer::bytes_of(TokenId id) const { return impl_->decoder.bytes_of(impl_->text_of(id)); }

std::optional<TokenId> Tokenizer::id_of(std::string_view token) const {
  if (const auto found = impl_->added_ids.find(std::string(token)); found != impl_->added_ids.end()) {
    return found->second;
  }
  if (!is_valid_utf8(token)) return std::nullopt;
  const TokenId id = impl_->bpe.find(token);
  return id == kNoToken ? std::nullopt : std::optional(id);
}

bool Tokenizer::is_special(TokenId id) const { return impl_->is_special(id); }

int64_t Tokenizer::vocab_size() const { return static_cast<int64_t>(impl_->special.size()); }

}  // namespace sluice
