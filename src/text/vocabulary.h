// A vocabulary: token texts to ids and back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace sluice {

inline constexpr TokenId kNoToken = -1;

/// Texts and ids, each other's key. Lookups touch two cache lines: the slot and the text.
class Vocabulary {
 public:
  /// Room for `tokens` entries of `text_bytes` bytes in all; more make it grow.
  explicit Vocabulary(size_t tokens = 0, size_t text_bytes = 0);

  /// Returns false, and changes nothing, if the text or the id is taken. `id` >= 0.
  bool add(std::string_view text, TokenId id);
  /// Asks for the memory that an add of `text` will touch first.
  void prefetch(std::string_view text) const;
  TokenId find(std::string_view text) const;  // kNoToken if absent
  /// find for each of `texts`. For large tables this takes a third of the time, as the waits for memory
  /// overlap.
  void find_all(std::span<const std::string_view> texts, std::span<TokenId> ids) const;
  bool has(TokenId id) const {
    return id >= 0 && id < end_id() && by_id_[static_cast<size_t>(id)].length != kUnused;
  }
  std::string_view text(TokenId id) const;  // of an id that it has
  TokenId end_id() const { return static_cast<TokenId>(by_id_.size()); }

 private:
  static constexpr uint32_t kUnused = UINT32_MAX;
  struct Text {
    uint32_t offset = 0, length = kUnused;
  };
  struct Slot {
    uint32_t hash = 0;
    TokenId id = kNoToken;
    Text text;
  };
  void grow();
  size_t slot_of(std::string_view text, uint32_t hash) const;
  bool equals(Text entry, std::string_view text) const {
    return std::string_view(arena_).substr(entry.offset, entry.length) == text;
  }

  std::string arena_;
  std::vector<Text> by_id_;
  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  size_t used_ = 0;
};

}  // namespace sluice
