// Which characters ever stand beside each other inside a token that merges make.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice {

/// A set of pairs of characters. `joins` may say yes for a pair that was never added, and never no for one
/// that was.
///
/// No merge reaches across two characters that no merged token has inside, so a text may be cut between them
/// and its parts encoded one by one, with the same result.
class Joints {
 public:
  Joints() : bits_(size_t{1} << (kBits - 6)) {}

  /// Adds the pairs inside `token`, valid UTF-8.
  void add_token(std::string_view token);
  bool joins(char32_t left, char32_t right) const {
    const size_t bit = bit_of(left, right);
    return (bits_[bit >> 6] >> (bit & 63) & 1) != 0;
  }
  /// The end of the longest part of `text` (valid UTF-8, not empty) that starts at `begin` and has no place
  /// to cut.
  size_t end_of_part(std::string_view text, size_t begin) const;

 private:
  // A vocabulary of 260k tokens has 34k pairs; those of ASCII have places of their own.
  static constexpr unsigned kBits = 20;
  static size_t bit_of(char32_t left, char32_t right) {
    if ((left | right) < 0x80) return left << 7 | right;
    const uint64_t key = static_cast<uint64_t>(left) << 21 | right;
    return ((key * 0x9E3779B97F4A7C15u) >> (64 - kBits)) | size_t{1} << 14;
  }

  std::vector<uint64_t> bits_;
};

}  // namespace sluice
