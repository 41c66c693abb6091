// Token ids as JSON.
#include "apps/id_sequences.h"

#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    sluice::apps::parse_id_sequences(text_of(data, size), "ids");
  } catch (const sluice::Error&) {
  }
  return 0;
}
