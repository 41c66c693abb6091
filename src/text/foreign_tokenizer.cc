// Formats by their first bytes, and by the names that publishers give them.
#include "text/foreign_tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& file, const std::string& format) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  throw Error(ErrorCode::kUnsupported,
              file.string() + ": is " + format +
                  "; tokenizer.json is needed: take it from the model's publisher, or write it with Python's "
                  "transformers: AutoTokenizer.from_pretrained(\"" +
                  folder.string() + "\").save_pretrained(\"" + folder.string() + "\")");
}

constexpr const char* kSentencePiece = "a SentencePiece model";
constexpr const char* kTiktoken = "a tiktoken vocabulary";

// A message ModelProto, whose field 1 is the first piece: its length, its field 1 (a text), its field 2 (a
// float).
bool is_sentence_piece(std::string_view content) {
  if (content.size() < 5 || content[0] != '\n' || content[2] != '\n') return false;
  const size_t piece = static_cast<uint8_t>(content[1]), text = static_cast<uint8_t>(content[3]);
  return text + 2 < piece && 4 + text < content.size() && content[4 + text] == '\x15';
}

// Lines of a token in base64 and its rank: "IQ== 0".
bool is_tiktoken(std::string_view content) {
  constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
  const std::string_view line = content.substr(0, std::min(content.find('\n'), size_t{1000}));
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space % 4 != 0) return false;
  const std::string_view rank = line.substr(space + 1);
  return line.find_first_not_of(kBase64) == space && !rank.empty() &&
         rank.find_first_not_of("0123456789\r") == std::string_view::npos;
}

}  // namespace

void refuse_foreign_tokenizer(std::string_view content, const fs::path& file) {
  if (content.starts_with("GGUF")) refuse(file, "a GGUF file");
  if (is_sentence_piece(content)) refuse(file, kSentencePiece);
  if (is_tiktoken(content)) refuse(file, kTiktoken);
  if (content.starts_with("[PAD]")) refuse(file, "a WordPiece vocabulary");
}

void throw_no_tokenizer(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::error_code ignored;
  for (const auto& [name, format] : {std::pair{"tokenizer.model", kSentencePiece},
                                     {"spiece.model", kSentencePiece},
                                     {"tiktoken.model", kTiktoken},
                                     {"tekken.json", "a Tekken vocabulary"},
                                     {"merges.txt", "an older form of a BPE model"},
                                     {"vocab.txt", "a WordPiece vocabulary"}}) {
    if (fs::exists(folder / name, ignored)) refuse(folder / name, format);
  }
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".tiktoken") refuse(entry.path(), kTiktoken);
    if (entry.path().extension() == ".gguf") refuse(entry.path(), "a GGUF file");
  }
  throw Error(ErrorCode::kNotFound, file.string() + ": there is no such file");
}

}  // namespace sluice
