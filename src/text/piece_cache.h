// Remembers the ids of short pieces: texts repeat their words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace sluice {

/// A table of fixed size in which a piece overwrites what was at its place. One thread at a time; for one
/// model only.
class PieceCache {
 public:
  static constexpr size_t kMaxBytes = 16;  // of a piece
  static constexpr size_t kMaxIds = 11;    // so that an entry is a cache line

  PieceCache() : entries_(std::make_unique<Entry[]>(kEntries)) {}

  /// Where the ids of a piece are, or go. Valid as long as the cache.
  class Place {
   public:
    bool is_filled() const { return entry_->key == key_; }
    std::span<const TokenId> ids() const { return {entry_->ids, entry_->count}; }
    /// Does nothing for more than kMaxIds.
    void fill(std::span<const TokenId> ids) {
      if (ids.size() > kMaxIds) return;
      entry_->key = key_;
      entry_->count = static_cast<uint8_t>(ids.size());
      std::copy(ids.begin(), ids.end(), entry_->ids);
    }

   private:
    friend class PieceCache;
    struct Key {
      uint64_t head = 0, tail = 0;
      uint8_t bytes = 0;  // 0: an entry that nothing filled
      bool operator==(const Key&) const = default;
    };
    struct Entry {
      Key key;
      uint8_t count = 0;
      TokenId ids[kMaxIds];
    };
    Entry* entry_;
    Key key_;
  };

  /// `piece` has 1 to kMaxBytes bytes.
  Place place_of(std::string_view piece) {
    Place place;
    place.key_ = key_of(piece);
    const uint64_t mixed =
        (place.key_.head ^ place.key_.bytes) * 0x9E3779B97F4A7C15u ^ place.key_.tail * 0xC2B2AE3D27D4EB4Fu;
    place.entry_ = &entries_[(mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15u >> (64 - kLog2Entries)];
    return place;
  }

 private:
  using Key = Place::Key;
  using Entry = Place::Entry;
  static constexpr unsigned kLog2Entries = 13;  // 13 and 14 measured the same, 12 slower
  static constexpr size_t kEntries = size_t{1} << kLog2Entries;

  template <class Word>
  static uint64_t load(const char* bytes) {
    Word word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  }
  // The first and the last bytes, which overlap: with the length they determine the piece.
  static Key key_of(std::string_view piece) {
    const char* begin = piece.data();
    const char* end = begin + piece.size();
    const auto bytes = static_cast<uint8_t>(piece.size());
    if (bytes >= 8) return {load<uint64_t>(begin), load<uint64_t>(end - 8), bytes};
    if (bytes >= 4) return {load<uint32_t>(begin), load<uint32_t>(end - 4), bytes};
    if (bytes >= 2) return {load<uint16_t>(begin), load<uint16_t>(end - 2), bytes};
    return {load<uint8_t>(begin), 0, bytes};
  }

  std::unique_ptr<Entry[]> entries_;
};

/// Caches that wait for the next call. May be used from several threads.
class PieceCaches {
 public:
  PieceCaches() { idle_.reserve(kMostKept); }

  /// A cache for one call; returned at its end.
  class Lease {
   public:
    explicit Lease(PieceCaches& owner) : owner_(owner), cache_(owner.take()) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { owner_.give(std::move(cache_)); }
    PieceCache& operator*() const { return *cache_; }

   private:
    PieceCaches& owner_;
    std::unique_ptr<PieceCache> cache_;
  };

 private:
  static constexpr size_t kMostKept = 16;  // 0.5 MB each

  std::unique_ptr<PieceCache> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<PieceCache>();
    std::unique_ptr<PieceCache> cache = std::move(idle_.back());
    idle_.pop_back();
    return cache;
  }
  void give(std::unique_ptr<PieceCache> cache) noexcept {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < idle_.capacity()) idle_.push_back(std::move(cache));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<PieceCache>> idle_;
};

}  // namespace sluice
