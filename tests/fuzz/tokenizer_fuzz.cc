// tokenizer.json: a tokenizer that loads can encode any text, and decodes its own ids.
#include "text/tokenizer.h"

#include "base/error.h"
#include "fuzz/target.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto tokenizer = sluice::Tokenizer::parse(text_of(data, size), "tokenizer.json");
    // Its own file is a text that has its tokens.
    for (const std::string_view text : {std::string_view("It's 1234 caf\u00e9s,\r\n  \u4e2d\u6587 \xff<end>"),
                                        text_of(data, size).substr(0, 4096)}) {
      try {
        const std::vector<sluice::TokenId> ids = tokenizer.encode(text);
        SLUICE_CHECK(sluice::is_valid_utf8(tokenizer.decode(ids)));
        for (const sluice::TokenId id : ids) SLUICE_CHECK(id >= 0 && id < tokenizer.vocab_size());
      } catch (const sluice::Error&) {
      }
    }
  } catch (const sluice::Error&) {
  }
  return 0;
}
