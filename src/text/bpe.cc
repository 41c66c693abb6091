// Building a BPE model and encoding with it. Merges follow Sennrich et al. 2016 (arXiv 1508.07909): lowest
// rank first, leftmost first.
#include "text/bpe.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "text/byte_level.h"
#include "text/utf8.h"

namespace sluice {
namespace {

// Up to here scanning all ranks for the lowest beats a heap.
constexpr size_t kFewSymbols = 64;
constexpr uint32_t kEnd = UINT32_MAX;

size_t text_bytes(const BpeSpec& spec) {
  size_t bytes = 0;
  for (const auto& [token, id] : spec.vocabulary) bytes += token.size();
  return bytes;
}

std::string in_quotes(std::string_view token) {
  size_t shown = std::min(token.size(), size_t{60});
  while (shown < token.size() && (static_cast<uint8_t>(token[shown]) & 0xC0u) == 0x80) --shown;
  return '"' + std::string(token.substr(0, shown)) + (shown < token.size() ? "...\"" : "\"");
}

std::string byte_token(int byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[static_cast<size_t>(byte >> 4)] +
         kDigits[static_cast<size_t>(byte & 15)] + '>';
}

}  // namespace

Bpe::Bpe(const BpeSpec& spec, bool byte_level, const std::string& file)
    : file_(file),
      byte_level_(byte_level),
      vocabulary_(spec.vocabulary.size(), text_bytes(spec)),
      merges_(spec.merges.size()),
      fuse_unknown_(spec.fuse_unknown),
      byte_fallback_(spec.byte_fallback),
      ignore_merges_(spec.ignore_merges) {
  add_vocabulary(spec);
  find_base_tokens(spec);
  add_merges(spec);
  add_joints();
  memo_ = std::make_unique<std::atomic<uint8_t>[]>(static_cast<size_t>(end_id()));
}

// In batches, so that the waits for memory overlap.
void Bpe::add_vocabulary(const BpeSpec& spec) {
  constexpr size_t kBatch = 32;
  std::string bytes;
  std::vector<std::pair<std::string_view, bool>> texts(kBatch);  // as kept; and whether in the byte alphabet
  for (size_t begin = 0; begin < spec.vocabulary.size(); begin += kBatch) {
    const std::span tokens =
        std::span(spec.vocabulary).subspan(begin, std::min(kBatch, spec.vocabulary.size() - begin));
    bytes.clear();
    size_t total = 0;
    for (const auto& [token, id] : tokens) total += token.size();
    bytes.reserve(total);  // so that the views stay valid
    for (size_t i = 0; i < tokens.size(); ++i) {
      const size_t old_size = bytes.size();
      const bool mapped = byte_level_ && append_from_alphabet(tokens[i].first, bytes);
      texts[i] = {mapped ? std::string_view(bytes).substr(old_size) : tokens[i].first, mapped};
      vocabulary_.prefetch(texts[i].first);
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto& [token, id] = tokens[i];
      const auto& [text, mapped] = texts[i];
      const bool added = byte_level_ && !mapped ? !vocabulary_.has(id) && unmapped_.add(text, id)
                                                : !unmapped_.has(id) && vocabulary_.add(text, id);
      if (!added) {
        throw Error(ErrorCode::kBadFile, file_ + ": model.vocab: token " + in_quotes(token) + " or its id " +
                                             std::to_string(id) + " is taken");
      }
    }
  }
}

void Bpe::find_base_tokens(const BpeSpec& spec) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string token = byte_level_ ? std::string(1, static_cast<char>(byte)) : byte_token(byte);
    byte_tokens_[byte] = byte_level_ || byte_fallback_ ? vocabulary_.find(token) : kNoToken;
  }
  if (spec.unknown_token.empty()) return;
  unknown_ = find(spec.unknown_token);
  if (unknown_ == kNoToken) {
    throw Error(ErrorCode::kBadFile,
                file_ + ": model.unk_token: " + in_quotes(spec.unknown_token) + " is not in the vocabulary");
  }
}

TokenId Bpe::find(std::string_view token) const {
  std::string bytes;
  if (!byte_level_) return vocabulary_.find(token);
  return append_from_alphabet(token, bytes) ? vocabulary_.find(bytes) : unmapped_.find(token);
}

void Bpe::add_merges(const BpeSpec& spec) {
  constexpr size_t kBatch = 64;
  constexpr size_t kTexts = 3;  // left, right, and both joined
  std::string bytes;
  std::vector<std::string_view> texts(kTexts * kBatch);
  std::vector<TokenId> ids(kTexts * kBatch);
  for (size_t begin = 0; begin < spec.merges.size(); begin += kBatch) {
    const std::span merges =
        std::span(spec.merges).subspan(begin, std::min(kBatch, spec.merges.size() - begin));
    bytes.clear();
    size_t total = 0;
    for (const auto& [left, right] : merges) total += left.size() + right.size();
    bytes.reserve(total);  // so that the views stay valid
    for (size_t i = 0; i < merges.size(); ++i) {
      const std::string_view left = append_text(merges[i].first, begin + i, bytes);
      const std::string_view right = append_text(merges[i].second, begin + i, bytes);
      texts[kTexts * i] = left;
      texts[kTexts * i + 1] = right;
      texts[kTexts * i + 2] = {left.data(), left.size() + right.size()};
    }
    vocabulary_.find_all(std::span(texts).first(kTexts * merges.size()), ids);
    for (size_t i = 0; i < merges.size(); ++i) {
      const auto& [left, right] = merges[i];
      const TokenId* found = &ids[kTexts * i];
      if (found[0] == kNoToken) refuse_merge(begin + i, left);
      if (found[1] == kNoToken) refuse_merge(begin + i, right);
      if (found[2] == kNoToken) refuse_merge(begin + i, std::string(left) + std::string(right));
      merges_.prefetch(found[0], found[1]);
      merges_stand_ins_ |= is_stand_in(left, found[0]) || is_stand_in(right, found[1]);
    }
    for (size_t i = 0; i < merges.size(); ++i) {
      merges_.add(ids[kTexts * i], ids[kTexts * i + 1], ids[kTexts * i + 2]);
    }
  }
}

// A token whose text is not what it stands for.
bool Bpe::is_stand_in(std::string_view token, TokenId id) const {
  return id == unknown_ || (byte_fallback_ && token.size() == 6 && token.starts_with("<0x"));
}

std::string_view Bpe::append_text(std::string_view token, size_t merge, std::string& bytes) const {
  const size_t old_size = bytes.size();
  if (!byte_level_) {
    bytes += token;
  } else if (!append_from_alphabet(token, bytes)) {
    refuse_merge(merge, token);
  }
  return std::string_view(bytes).substr(old_size);
}

void Bpe::refuse_merge(size_t merge, std::string_view token) const {
  throw Error(ErrorCode::kBadFile, file_ + ": model.merges[" + std::to_string(merge) +
                                       "]: " + in_quotes(token) + " is not in the vocabulary");
}

// Byte-level pieces are words already. Elsewhere a piece may be a whole text.
void Bpe::add_joints() {
  const bool falls_back = byte_fallback_ && std::find(std::begin(byte_tokens_), std::end(byte_tokens_),
                                                      kNoToken) == std::end(byte_tokens_);
  // Unknown characters side by side become one token, and a piece that is a token stays whole: neither is
  // seen in parts.
  if (byte_level_ || ignore_merges_ || merges_stand_ins_ || (fuse_unknown_ && !falls_back)) return;
  Joints joints;
  TokenId last = kNoToken;
  for (uint32_t rank = 0; rank < merges_.size(); ++rank) {
    const TokenId merged = merges_.merged(rank);
    if (merged != last) joints.add_token(vocabulary_.text(merged));
    last = merged;
  }
  joints_ = std::move(joints);
}

void Bpe::encode(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& ids) const {
  if (!joints_) return encode_part(piece, scratch, ids);
  for (size_t begin = 0; begin < piece.size();) {
    const size_t end = joints_->end_of_part(piece, begin);
    encode_part(piece.substr(begin, end - begin), scratch, ids);
    begin = end;
  }
}

void Bpe::encode_part(std::string_view part, BpeScratch& scratch, std::vector<TokenId>& ids) const {
  if (part.empty()) return;
  if (scratch.cache == nullptr || part.size() > PieceCache::kMaxBytes) return encode_new(part, scratch, ids);
  PieceCache::Place place = scratch.cache->place_of(part);
  if (place.is_filled()) {
    ids.insert(ids.end(), place.ids().begin(), place.ids().end());
    return;
  }
  const size_t old_size = ids.size();
  encode_new(part, scratch, ids);
  place.fill(std::span(ids).subspan(old_size));
}

void Bpe::encode_new(std::string_view part, BpeScratch& scratch, std::vector<TokenId>& ids) const {
  const TokenId whole = vocabulary_.find(part);
  std::atomic<uint8_t>* memo = whole == kNoToken ? nullptr : &memo_[static_cast<size_t>(whole)];
  if (memo != nullptr && (ignore_merges_ || memo->load(std::memory_order_relaxed) == kWhole)) {
    ids.push_back(whole);
    return;
  }
  scratch.symbols.clear();
  append_symbols(part, scratch.symbols);
  merge_all(scratch);
  if (memo != nullptr && memo->load(std::memory_order_relaxed) == kUnknown) {
    const bool is_whole = scratch.symbols.size() == 1 && scratch.symbols[0] == whole;
    memo->store(is_whole ? kWhole : kSplits, std::memory_order_relaxed);
  }
  ids.insert(ids.end(), scratch.symbols.begin(), scratch.symbols.end());
}

void Bpe::append_symbols(std::string_view piece, std::vector<TokenId>& symbols) const {
  bool after_unknown = false;
  for (size_t position = 0; position < piece.size();) {
    const size_t length = byte_level_ ? 1 : utf8_length(piece[position]);
    const std::string_view character = piece.substr(position, length);
    const TokenId id =
        byte_level_ ? byte_tokens_[static_cast<uint8_t>(piece[position])] : vocabulary_.find(character);
    if (id != kNoToken) {
      symbols.push_back(id);
      after_unknown = false;
    } else {
      append_unknown(character, symbols, after_unknown);
    }
    position += length;
  }
}

void Bpe::append_unknown(std::string_view character, std::vector<TokenId>& symbols,
                         bool& after_unknown) const {
  const auto token_of = [&](char byte) { return byte_tokens_[static_cast<uint8_t>(byte)]; };
  if (byte_fallback_ && !byte_level_ && std::all_of(character.begin(), character.end(), [&](char byte) {
        return token_of(byte) != kNoToken;
      })) {
    for (const char byte : character) symbols.push_back(token_of(byte));
    after_unknown = false;
    return;
  }
  if (unknown_ == kNoToken) {
    throw Error(
        ErrorCode::kUnsupported,
        file_ + ": the vocabulary has no token for " +
            (byte_level_ ? "byte " + byte_token(static_cast<uint8_t>(character[0])) : in_quotes(character)) +
            " of the text, and no unknown token");
  }
  if (!(after_unknown && fuse_unknown_)) symbols.push_back(unknown_);
  after_unknown = true;
}

void Bpe::merge_all(BpeScratch& scratch) const {
  if (scratch.symbols.size() <= kFewSymbols) {
    merge_few(scratch.symbols, scratch.ranks);
  } else {
    merge_many(scratch);
  }
}

void Bpe::merge_few(std::vector<TokenId>& symbols, std::vector<uint32_t>& ranks) const {
  if (symbols.size() < 2) return;
  size_t pairs = symbols.size() - 1;
  ranks.resize(pairs);
  for (size_t i = 0; i < pairs; ++i) ranks[i] = merges_.rank(symbols[i], symbols[i + 1]);
  while (pairs > 0) {
    const size_t best = static_cast<size_t>(
        std::min_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(pairs)) - ranks.begin());
    if (ranks[best] == MergeTable::kNone) break;
    symbols[best] = merges_.merged(ranks[best]);
    std::copy(symbols.begin() + static_cast<std::ptrdiff_t>(best + 2),
              symbols.begin() + static_cast<std::ptrdiff_t>(pairs + 1),
              symbols.begin() + static_cast<std::ptrdiff_t>(best + 1));
    std::copy(ranks.begin() + static_cast<std::ptrdiff_t>(best + 1),
              ranks.begin() + static_cast<std::ptrdiff_t>(pairs),
              ranks.begin() + static_cast<std::ptrdiff_t>(best));
    --pairs;
    if (best > 0) ranks[best - 1] = merges_.rank(symbols[best - 1], symbols[best]);
    if (best < pairs) ranks[best] = merges_.rank(symbols[best], symbols[best + 1]);
  }
  symbols.resize(pairs + 1);
}

// A linked list of symbols and a heap of (rank, position). An entry is stale if its position no longer has
// that rank.
void Bpe::merge_many(BpeScratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& nodes = scratch.nodes;
  auto& heap = scratch.heap;
  const auto count = static_cast<uint32_t>(symbols.size());
  nodes.resize(count);
  heap.clear();
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == count;
    const uint32_t rank = is_last ? MergeTable::kNone : merges_.rank(symbols[i], symbols[i + 1]);
    nodes[i] = {symbols[i], i == 0 ? kEnd : i - 1, is_last ? kEnd : i + 1, rank};
    if (rank != MergeTable::kNone) heap.push_back(static_cast<uint64_t>(rank) << 32 | i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());

  const auto update = [&](uint32_t position) {
    auto& node = nodes[position];
    node.rank = node.next == kEnd ? MergeTable::kNone : merges_.rank(node.id, nodes[node.next].id);
    if (node.rank == MergeTable::kNone) return;
    heap.push_back(static_cast<uint64_t>(node.rank) << 32 | position);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto rank = static_cast<uint32_t>(heap.back() >> 32);
    const auto position = static_cast<uint32_t>(heap.back());
    heap.pop_back();
    auto& node = nodes[position];
    if (node.rank != rank) continue;
    auto& absorbed = nodes[node.next];
    node.id = merges_.merged(rank);
    node.next = absorbed.next;
    if (node.next != kEnd) nodes[node.next].previous = position;
    absorbed.rank = MergeTable::kNone;
    update(position);
    if (node.previous != kEnd) update(node.previous);
  }
  symbols.clear();
  for (uint32_t i = 0; i != kEnd; i = nodes[i].next) symbols.push_back(nodes[i].id);
}

}  // namespace sluice
