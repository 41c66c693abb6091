// Files of tensors: whatever is accepted can be read to its last byte.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "fuzz/target.h"

namespace {

// A file without a place in a folder.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    SLUICE_CHECK(descriptor_ >= 0);
    for (size_t done = 0; done < size;) {
      const ssize_t written = ::write(descriptor_, data + done, size - done);
      SLUICE_CHECK(written > 0);
      done += static_cast<size_t>(written);
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile memory(data, size);
  try {
    const auto file = sluice::SafetensorsFile::open(memory.path());
    unsigned sum = 0;
    for (const sluice::Tensor& tensor : file.tensors()) {
      SLUICE_CHECK(file.find(tensor.name) != nullptr && tensor.bytes.size() <= size);
      for (const std::byte b : tensor.bytes) sum += static_cast<unsigned>(b);
    }
    volatile unsigned keep = sum;
    static_cast<void>(keep);
  } catch (const sluice::Error&) {
  }
  return 0;
}
