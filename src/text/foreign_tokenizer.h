// Recognises tokenizers in other formats, to say what to use in their place.
#pragma once

#include <filesystem>
#include <string_view>

namespace sluice {

/// Throws Error kUnsupported if `content` of `file` is a tokenizer, or a model, in a format other than
/// tokenizer.json: SentencePiece, tiktoken, GGUF, WordPiece's vocab.txt.
void refuse_foreign_tokenizer(std::string_view content, const std::filesystem::path& file);

/// `file` is a tokenizer.json that is not there. Throws Error kUnsupported if its folder has a tokenizer in
/// another format, else kNotFound.
[[noreturn]] void throw_no_tokenizer(const std::filesystem::path& file);

}  // namespace sluice
