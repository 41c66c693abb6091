// Conversations that `chat` saves and loads.
#include "apps/conversation.h"

#include "base/error.h"
#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    for (const auto& message : sluice::apps::parse_conversation(text_of(data, size), "conversation")) {
      SLUICE_CHECK(!message.role.empty());
    }
  } catch (const sluice::Error&) {
  }
  return 0;
}
