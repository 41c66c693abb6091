// Tokens that are looked for in the text itself, before the model sees it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.h"
#include "text/vocabulary.h"

namespace sluice {

/// A part of a text: an added token, or what lies between them (`token` is kNoToken).
struct Section {
  size_t begin, end;
  TokenId token;
};

/// A set of added tokens. Immutable; split may be called from several threads.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedTokenSpec> tokens);

  /// Sets `sections` to the parts of `text` (valid UTF-8), in order and without gaps. The leftmost token
  /// wins, then the longest. Special tokens stay text unless `special`.
  void split(std::string_view text, bool special, std::vector<Section>& sections) const;
  bool is_empty() const { return tokens_.empty(); }

 private:
  // A trie over bytes; children are a linked list, as nearly all nodes have one.
  struct Node {
    uint32_t child = 0, sibling = 0;
    int32_t token = -1;  // index into tokens_
    uint8_t byte = 0;
  };
  void insert(std::string_view content, int32_t token);
  const Node* child_of(const Node& node, uint8_t byte) const;
  const AddedTokenSpec* longest_at(std::string_view text, size_t position) const;
  bool accepts(const AddedTokenSpec& token, std::string_view text, size_t begin, bool special) const;

  std::vector<AddedTokenSpec> tokens_;
  std::vector<Node> nodes_;
  std::array<bool, 256> can_start_{};
};

}  // namespace sluice
