// Hashes a checkpoint's inventory.
#include "checkpoint/fingerprint.h"

#include "base/file.h"
#include "base/hash.h"

namespace sluice {

uint64_t fingerprint(const Checkpoint& checkpoint) {
  uint64_t hash = fnv1a(read_text_file(checkpoint.folder() / "config.json"));
  for (const Tensor* tensor : checkpoint.tensors()) {
    hash = fnv1a(tensor->name, hash);
    hash = fnv1a(name_of(tensor->dtype), hash);
    hash = fnv1a(format_shape(tensor->shape), hash);
  }
  return hash;
}

}  // namespace sluice
