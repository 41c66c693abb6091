// Device memory whose size changes while its address stays.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace sluice {

/// A range of addresses of which the first bytes() are backed by memory. Made by Device::reserve, sized by
/// Device::resize; freed with the object. Belongs to one thread.
class ReservedMemory {
 public:
  virtual ~ReservedMemory() = default;
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  size_t most_bytes() const { return most_bytes_; }
  const std::string& purpose() const { return purpose_; }
  /// Owns the addresses; a checker may keep them beyond this object.
  const std::shared_ptr<void>& pages() const { return pages_; }

 protected:
  ReservedMemory(std::shared_ptr<void> pages, size_t most_bytes, std::string purpose)
      : data_(pages.get()), most_bytes_(most_bytes), purpose_(std::move(purpose)), pages_(std::move(pages)) {}
  /// Throws Error kOutOfMemory; nothing has changed then. Contents of bytes that come are undefined.
  virtual void back(size_t bytes) = 0;

 private:
  friend class Device;
  void* data_;
  size_t bytes_ = 0, most_bytes_;
  std::string purpose_;
  std::shared_ptr<void> pages_;
};

/// Called when the backed part has changed, with its old and new size.
using ResizeListener = std::function<void(ReservedMemory&, size_t before, size_t after)>;

/// The host backend's form: pages of this process. Pages that go return to the system, unless `keep_pages`: a
/// checker that wants to see who still uses them. Throws Error kOutOfMemory.
std::unique_ptr<ReservedMemory> reserve_mapped(size_t most_bytes, std::string purpose,
                                               ResizeListener listener = {}, bool keep_pages = false);

}  // namespace sluice
