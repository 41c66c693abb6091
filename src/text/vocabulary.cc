// An open-addressed table over one arena of texts.
#include "text/vocabulary.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

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

TokenId Vocabulary::find(std::string_view text) const { return slots_[slot_of(text, hash_of(text))].id; }

std::string_view Vocabulary::text(TokenId id) const {
  SLUICE_CHECK(has(id));
  const Text entry = by_id_[static_cast<size_t>(id)];
  return std::string_view(arena_).substr(entry.offset, entry.length);
}

}  // namespace sluice
