// Ids to text as they come: the decoder stage, one token at a time.
#include "text/tokenizer_impl.h"

namespace sluice {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : tokenizer_(&tokenizer), skip_special_(skip_special) {}

std::string StreamDecoder::push(TokenId id) {
  std::string text;
  tokenizer_->impl_->decode(id, skip_special_, state_, text);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  tokenizer_->impl_->decoder.finish(state_, text);
  return text;
}

}  // namespace sluice
