// Hashing with OpenSSL.
#include "hub/blob_hash.h"

#include <openssl/evp.h>

#include <array>
#include <string>

#include "base/error.h"

namespace sluice::hub {

struct BlobHash::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

BlobHash::BlobHash(Kind kind, uint64_t size) : state_(std::make_unique<State>()) {
  const EVP_MD* algorithm = kind == Kind::kSha256 ? EVP_sha256() : EVP_sha1();
  if (state_->context == nullptr || EVP_DigestInit_ex(state_->context, algorithm, nullptr) != 1) {
    throw Error(ErrorCode::kUnsupported, "this system's OpenSSL has no SHA-1 or SHA-256");
  }
  if (kind == Kind::kSha256) return;
  const std::string head = "blob " + std::to_string(size) + '\0';
  add(std::as_bytes(std::span(head)));
}
BlobHash::BlobHash(BlobHash&&) noexcept = default;
BlobHash& BlobHash::operator=(BlobHash&&) noexcept = default;
BlobHash::~BlobHash() = default;

void BlobHash::add(std::span<const std::byte> bytes) {
  SLUICE_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string BlobHash::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  SLUICE_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &length) == 1);
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < length; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace sluice::hub
