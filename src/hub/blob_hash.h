// The hashes by which the hub names content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace sluice::hub {

/// Takes content piece by piece.
class BlobHash {
 public:
  enum class Kind {
    kSha256,   // of large files
    kGitBlob,  // of small ones: SHA-1 over "blob SIZE\0" and the content, as git names it
  };
  BlobHash(Kind kind, uint64_t size);
  BlobHash(BlobHash&&) noexcept;
  BlobHash& operator=(BlobHash&&) noexcept;
  ~BlobHash();

  void add(std::span<const std::byte> bytes);
  /// Small letters of base 16; nothing can be added afterwards.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::hub
