// Finding added tokens: a trie walked from each byte that may start one.
#include "text/added_tokens.h"

#include <algorithm>

#include "text/utf8.h"

namespace sluice {
namespace {

// The character that ends at `end`, which is not 0.
char32_t code_point_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0u) == 0x80) --begin;
  return next_code_point(text, begin);
}

size_t white_space_start(std::string_view text, size_t end, size_t limit) {
  while (end > limit && is_white_space(code_point_before(text, end))) {
    do {
      --end;
    } while ((static_cast<uint8_t>(text[end]) & 0xC0u) == 0x80);
  }
  return end;
}

size_t white_space_end(std::string_view text, size_t position) {
  for (size_t next = position; next < text.size(); position = next) {
    if (!is_white_space(next_code_point(text, next))) break;
  }
  return position;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedTokenSpec> tokens) : tokens_(std::move(tokens)), nodes_(1) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].content.empty()) continue;
    insert(tokens_[i].content, static_cast<int32_t>(i));
    can_start_[static_cast<uint8_t>(tokens_[i].content[0])] = true;
  }
}

const AddedTokens::Node* AddedTokens::child_of(const Node& node, uint8_t byte) const {
  for (uint32_t i = node.child; i != 0; i = nodes_[i].sibling) {
    if (nodes_[i].byte == byte) return &nodes_[i];
  }
  return nullptr;
}

void AddedTokens::insert(std::string_view content, int32_t token) {
  size_t at = 0;
  for (const char c : content) {
    const auto byte = static_cast<uint8_t>(c);
    if (const Node* child = child_of(nodes_[at], byte)) {
      at = static_cast<size_t>(child - nodes_.data());
      continue;
    }
    const auto added = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({0, nodes_[at].child, -1, byte});
    nodes_[at].child = added;
    at = added;
  }
  nodes_[at].token = token;
}

const AddedTokenSpec* AddedTokens::longest_at(std::string_view text, size_t position) const {
  const AddedTokenSpec* longest = nullptr;
  const Node* node = nodes_.data();
  while (position < text.size()) {
    node = child_of(*node, static_cast<uint8_t>(text[position++]));
    if (node == nullptr) break;
    if (node->token >= 0) longest = &tokens_[static_cast<size_t>(node->token)];
  }
  return longest;
}

bool AddedTokens::accepts(const AddedTokenSpec& token, std::string_view text, size_t begin,
                          bool special) const {
  if (token.special && !special) return false;
  if (!token.single_word) return true;
  size_t end = begin + token.content.size();
  if (begin > 0 && is_word_character(code_point_before(text, begin))) return false;
  return end == text.size() || !is_word_character(next_code_point(text, end));
}

void AddedTokens::split(std::string_view text, bool special, std::vector<Section>& sections) const {
  sections.clear();
  size_t done = 0;
  for (size_t position = 0; position < text.size();) {
    if (!can_start_[static_cast<uint8_t>(text[position])]) {
      ++position;
      continue;
    }
    const AddedTokenSpec* token = longest_at(text, position);
    if (token == nullptr) {
      ++position;
      continue;
    }
    size_t begin = position, end = position + token->content.size();
    position = end;  // a token that is not accepted is stepped over, as the reference does
    if (!accepts(*token, text, begin, special)) continue;
    if (token->lstrip) begin = white_space_start(text, begin, done);
    if (token->rstrip) position = end = white_space_end(text, end);
    if (begin > done) sections.push_back({done, begin, kNoToken});
    sections.push_back({begin, end, token->id});
    done = end;
  }
  if (done < text.size()) sections.push_back({done, text.size(), kNoToken});
}

}  // namespace sluice
