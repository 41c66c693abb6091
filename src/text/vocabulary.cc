// An open-addressed table over one arena of texts.
#include "text/vocabulary.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"

namespace sluice {
namespace {

uint32_t hash_of(std::string_view text) {
  return static_cast<uint32_t>(XXH3_64bits(text.data(), text.size()));
}

}  // namespace

Vocabulary::Vocabulary(size_t tokens, size_t text_bytes) : slots_(std::bit_ceil(2 * tokens + 2)) {
  arena_.reserve(text_bytes);
  by_id_.reserve(tokens);
}

size_t Vocabulary::slot_of(std::string_view text, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t index = hash & mask;
  while (slots_[index].id != kNoToken) {
    if (slots_[index].hash == hash && equals(slots_[index].text, text)) break;
    index = (index + 1) & mask;
  }
  return index;
}

void Vocabulary::grow() {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  for (const Slot& slot : old) {
    if (slot.id != kNoToken) slots_[slot_of(text(slot.id), slot.hash)] = slot;
  }
}

bool Vocabulary::add(std::string_view text, TokenId id) {
  SLUICE_CHECK(id >= 0 && arena_.size() + text.size() < kUnused);
  if (2 * (used_ + 1) > slots_.size()) grow();
  const uint32_t hash = hash_of(text);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.id != kNoToken || has(id)) return false;
  const Text entry{static_cast<uint32_t>(arena_.size()), static_cast<uint32_t>(text.size())};
  arena_ += text;
  if (id >= end_id()) by_id_.resize(static_cast<size_t>(id) + 1);
  by_id_[static_cast<size_t>(id)] = entry;
  slot = {hash, id, entry};
  ++used_;
  return true;
}

void Vocabulary::prefetch(std::string_view text) const {
  __builtin_prefetch(&slots_[hash_of(text) & (slots_.size() - 1)], 1);
}

TokenId Vocabulary::find(std::string_view text) const { return slots_[slot_of(text, hash_of(text))].id; }

void Vocabulary::find_all(std::span<const std::string_view> texts, std::span<TokenId> ids) const {
  constexpr size_t kBatch = 64;
  uint32_t hashes[kBatch];
  const size_t mask = slots_.size() - 1;
  for (size_t begin = 0; begin < texts.size(); begin += kBatch) {
    const size_t count = std::min(kBatch, texts.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      hashes[i] = hash_of(texts[begin + i]);
      __builtin_prefetch(&slots_[hashes[i] & mask]);
    }
    for (size_t i = 0; i < count; ++i) {
      __builtin_prefetch(arena_.data() + slots_[hashes[i] & mask].text.offset);
    }
    for (size_t i = 0; i < count; ++i) ids[begin + i] = slots_[slot_of(texts[begin + i], hashes[i])].id;
  }
}

std::string_view Vocabulary::text(TokenId id) const {
  SLUICE_CHECK(has(id));
  const Text entry = by_id_[static_cast<size_t>(id)];
  return std::string_view(arena_).substr(entry.offset, entry.length);
}

}  // namespace sluice
