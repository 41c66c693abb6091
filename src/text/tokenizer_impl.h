// The stages of a tokenizer, each usable on its own. Included by tokenizer.cc and stream_decoder.cc.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/piece_cache.h"
#include "text/pre_tokenizer.h"
#include "text/token_decoder.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"
#include "text/vocabulary.h"

namespace sluice {

/// Working memory of one encode call.
struct EncodeScratch {
  std::vector<Section> sections, inner_sections;
  std::string normalized;
  Pieces pieces;
  BpeScratch bpe;
};

struct Tokenizer::Impl {
  explicit Impl(const TokenizerSpec& spec);

  /// Appends the ids of text between added tokens that are found before normalisation.
  void encode_section(std::string_view text, bool at_start, bool special_tokens, EncodeScratch& scratch,
                      std::vector<TokenId>& ids) const;
  /// Appends the ids of normalised text without added tokens.
  void encode_text(std::string_view text, bool at_start, EncodeScratch& scratch,
                   std::vector<TokenId>& ids) const;

  void decode(TokenId id, bool skip_special, DecodeState& state, std::string& out) const {
    if (is_hole(id)) return;
    const std::string_view token = text_of(id);
    if (!(skip_special && is_special(id))) decoder.push(token, state, out);
  }
  /// As TokenDecoder wants it. Throws Error kInvalidArgument for an id outside the vocabulary.
  std::string_view text_of(TokenId id) const;
  /// An id inside the vocabulary that no token has.
  bool is_hole(TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < special.size() && !added_texts.has(id) && !bpe.has(id);
  }
  bool is_special(TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < special.size() && special[static_cast<size_t>(id)] != 0;
  }

  std::string file;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  mutable PieceCaches piece_caches;  // never change a result
  AddedTokens added;                 // found in the text as it comes
  AddedTokens added_normalized;      // found in normalised text
  TokenDecoder decoder;
  std::unordered_map<std::string, TokenId> added_ids;  // by content
  Vocabulary added_texts;                              // as TokenDecoder wants them
  std::vector<uint8_t> special;                        // by id; as long as the vocabulary
};

}  // namespace sluice
