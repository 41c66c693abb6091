// NFC by utf8proc's tables, with a fast way past text that is in NFC already.
//
// A character is *settled* if it is its own NFC, has combining class 0, and composes with nothing before it.
// Text of settled characters is in NFC, and normalisation never reaches across the start of a settled
// character.
#include <utf8proc.h>

#include <algorithm>
#include <bitset>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "text/normalizer.h"
#include "text/utf8.h"

namespace sluice {
namespace {

using Code = utf8proc_int32_t;
constexpr auto kDecompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
constexpr size_t kMaxDecomposition = 8;  // the longest canonical decomposition has 4 characters

// Code points up to the end of plane 2; what lies beyond is rare and takes the slow way.
constexpr Code kTableEnd = 0x30000;

size_t decompose(Code code, Code* out) {
  const utf8proc_ssize_t count = utf8proc_decompose_char(code, out, kMaxDecomposition, kDecompose, nullptr);
  SLUICE_CHECK(count > 0 && count <= static_cast<utf8proc_ssize_t>(kMaxDecomposition));
  return static_cast<size_t>(count);
}

bool is_surrogate(Code code) { return code >= 0xD800 && code <= 0xDFFF; }

using Table = std::bitset<static_cast<size_t>(kTableEnd)>;

std::unique_ptr<const Table> make_settled() {
  auto settled = std::make_unique<Table>();
  auto composes_with_previous = std::make_unique<Table>();
  Code parts[kMaxDecomposition];
  for (Code code = 0; code < kTableEnd; ++code) {
    if (is_surrogate(code)) continue;
    const size_t count = decompose(code, parts);
    if (count == 1 && parts[0] != code) continue;
    const Code last = parts[count - 1];
    const bool is_own_nfc =
        count == 1 || (utf8proc_normalize_utf32(parts, static_cast<utf8proc_ssize_t>(count), kCompose) == 1 &&
                       parts[0] == code);
    if (!is_own_nfc) continue;
    // The last part of a decomposition that composes again is what its first part composes with.
    if (count > 1 && last < kTableEnd) composes_with_previous->set(static_cast<size_t>(last));
    if (utf8proc_get_property(code)->combining_class == 0) settled->set(static_cast<size_t>(code));
  }
  *settled &= ~*composes_with_previous;
  return settled;
}

bool is_settled(char32_t code) {
  static const std::unique_ptr<const Table> settled = make_settled();
  return code < static_cast<char32_t>(kTableEnd) && settled->test(code);
}

// utf8proc orders marks by insertion, which takes minutes for a megabyte of them.
void sort_marks(std::vector<Code>& codes) {
  const auto combining_class = [](Code code) { return utf8proc_get_property(code)->combining_class; };
  for (auto begin = codes.begin(); begin != codes.end();) {
    begin = std::find_if(begin, codes.end(), [&](Code code) { return combining_class(code) != 0; });
    const auto end = std::find_if(begin, codes.end(), [&](Code code) { return combining_class(code) == 0; });
    std::stable_sort(begin, end, [&](Code a, Code b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

void append_composed(std::string& out, std::string_view text) {
  std::vector<Code> codes;
  Code parts[kMaxDecomposition];
  for (size_t position = 0; position < text.size();) {
    const size_t count = decompose(static_cast<Code>(next_code_point(text, position)), parts);
    codes.insert(codes.end(), parts, parts + count);
  }
  sort_marks(codes);
  const auto composed =
      utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), kCompose);
  SLUICE_CHECK(composed >= 0);
  for (utf8proc_ssize_t i = 0; i < composed; ++i) {
    append_code_point(out, static_cast<char32_t>(codes[static_cast<size_t>(i)]));
  }
}

size_t skip_ascii(std::string_view text, size_t position) {
  uint64_t word;
  while (position + sizeof word <= text.size()) {
    std::memcpy(&word, text.data() + position, sizeof word);
    if ((word & 0x8080808080808080u) != 0) break;
    position += sizeof word;
  }
  while (position < text.size() && static_cast<uint8_t>(text[position]) < 0x80) ++position;
  return position;
}

// The first character at or behind `position` that is not settled: {its start, the start of the settled one
// before it}.
struct Unsettled {
  size_t at, before;
};
Unsettled find_unsettled(std::string_view text, size_t position) {
  size_t before = position;
  while (position < text.size()) {
    const size_t end_of_ascii = skip_ascii(text, position);
    if (end_of_ascii > position) before = end_of_ascii - 1;
    position = end_of_ascii;
    if (position == text.size()) break;
    const size_t start = position;
    if (!is_settled(next_code_point(text, position))) return {start, before};
    before = start;
  }
  return {text.size(), text.size()};
}

size_t find_settled(std::string_view text, size_t position) {
  while (position < text.size()) {
    const size_t start = position;
    if (is_settled(next_code_point(text, position))) return start;
  }
  return text.size();
}

}  // namespace

bool is_surely_nfc(std::string_view text) { return find_unsettled(text, 0).at == text.size(); }

void append_nfc(std::string& out, std::string_view text) {
  for (size_t done = 0; done < text.size();) {
    const Unsettled unsettled = find_unsettled(text, done);
    out += text.substr(done, unsettled.before - done);
    done = find_settled(text, unsettled.at);
    if (unsettled.before < done) append_composed(out, text.substr(unsettled.before, done - unsettled.before));
  }
}

}  // namespace sluice
