// Byte-pair encoding: a piece of text to the ids of its tokens.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/joints.h"
#include "text/merge_table.h"
#include "text/piece_cache.h"
#include "text/tokenizer_spec.h"
#include "text/vocabulary.h"

namespace sluice {

/// Working memory of encode, kept from piece to piece. One for each thread that encodes.
struct BpeScratch {
  struct Node {
    TokenId id;
    uint32_t previous, next;
    uint32_t rank;  // of the pair with `next`
  };
  std::vector<TokenId> symbols;
  std::vector<uint32_t> ranks;
  std::vector<Node> nodes;
  std::vector<uint64_t> heap;
  PieceCache* cache = nullptr;  // of the same model; may be null
};

/// A vocabulary with merges. Immutable but for a memo that never changes a result; encode may be called from
/// several threads.
///
/// In byte-level models the vocabulary is kept in the bytes that its tokens stand for, so that no piece has
/// to be rewritten in the byte alphabet.
class Bpe {
 public:
  /// Throws Error kBadFile (duplicate ids, merges of unknown tokens, an unknown token that is not in the
  /// vocabulary).
  Bpe(const BpeSpec& spec, bool byte_level, const std::string& file);

  /// Appends the ids of `piece` (valid UTF-8). Takes O(n log n) for n bytes.
  /// Throws Error kUnsupported for a character that the vocabulary cannot express.
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& ids) const;

  /// The id of `token` as the file writes it; kNoToken if absent.
  TokenId find(std::string_view token) const;
  bool has(TokenId id) const { return vocabulary_.has(id) || unmapped_.has(id); }
  /// Byte-level: the bytes that `id` stands for. Else: the token as the file writes it.
  std::string_view text(TokenId id) const {
    return vocabulary_.has(id) ? vocabulary_.text(id) : unmapped_.text(id);
  }
  TokenId end_id() const { return std::max(vocabulary_.end_id(), unmapped_.end_id()); }

 private:
  enum Memo : uint8_t { kUnknown, kWhole, kSplits };

  void add_vocabulary(const BpeSpec& spec);
  void add_joints();
  void add_merges(const BpeSpec& spec);
  bool is_stand_in(std::string_view token, TokenId id) const;
  std::string_view append_text(std::string_view token, size_t merge, std::string& bytes) const;
  [[noreturn]] void refuse_merge(size_t merge, std::string_view token) const;
  void find_base_tokens(const BpeSpec& spec);

  void encode_part(std::string_view part, BpeScratch& scratch, std::vector<TokenId>& ids) const;
  void encode_new(std::string_view part, BpeScratch& scratch, std::vector<TokenId>& ids) const;
  void append_symbols(std::string_view piece, std::vector<TokenId>& symbols) const;
  void append_unknown(std::string_view character, std::vector<TokenId>& symbols, bool& after_unknown) const;
  void merge_all(BpeScratch& scratch) const;
  void merge_few(std::vector<TokenId>& symbols, std::vector<uint32_t>& ranks) const;
  void merge_many(BpeScratch& scratch) const;

  std::string file_;
  bool byte_level_;
  Vocabulary vocabulary_;
  Vocabulary
      unmapped_;  // byte-level: tokens with characters outside the byte alphabet, which no text can produce
  MergeTable merges_;
  std::optional<Joints> joints_;  // absent where they do not say all that holds a text together
  TokenId byte_tokens_[256];  // byte-level: tokens of single bytes; byte fallback: "<0x..>"; kNoToken where
                              // there is none
  TokenId unknown_ = kNoToken;
  bool fuse_unknown_, byte_fallback_, ignore_merges_;
  bool merges_stand_ins_ = false;  // some merge joins an unknown token or one of a single byte
  // By id: whether the merges make this token of its own text. Found out when the token is first met.
  std::unique_ptr<std::atomic<uint8_t>[]> memo_;
};

}  // namespace sluice
