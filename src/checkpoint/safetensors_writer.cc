// Headers of safetensors files, and writes at the offsets that they promise.
#include "checkpoint/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace sluice {
namespace {

using nlohmann::ordered_json;

constexpr size_t kHeaderAlignment = 8;

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw Error(ErrorCode::kIo, path.string() + ": cannot " + what + ": " + std::strerror(errno));
}

std::string header_of(std::span<const TensorSpec> specs, const std::map<std::string, std::string>& metadata) {
  ordered_json header = ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  std::string text = header.dump();
  text.pop_back();  // entries are added as text: ordered_json looks for a key by scanning all before it
  for (const TensorSpec& spec : specs) {
    const uint64_t end = offset + spec.bytes();
    ordered_json entry;
    entry["dtype"] = name_of(spec.dtype);
    entry["shape"] = spec.shape;
    entry["data_offsets"] = {offset, end};
    if (text.size() > 1) text += ',';
    text += ordered_json(spec.name).dump() + ":" + entry.dump();
    offset = end;
  }
  text += '}';
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  return text;
}

bool names_differ(std::span<const TensorSpec> specs) {
  std::set<std::string_view> names;
  return std::all_of(specs.begin(), specs.end(), [&](const TensorSpec& spec) {
    return spec.name != "__metadata__" && names.insert(spec.name).second;
  });
}

}  // namespace

uint64_t TensorSpec::bytes() const {
  uint64_t bytes = size_of(dtype);
  for (const int64_t size : shape) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, std::span<const TensorSpec> specs,
                                     const std::map<std::string, std::string>& metadata)
    : path_(std::move(path)), temporary_(path_) {
  SLUICE_CHECK(names_differ(specs));
  temporary_ += ".tmp" + std::to_string(::getpid());
  const std::string header = header_of(specs, metadata);
  const uint64_t length = header.size();
  uint64_t offset = sizeof length + length;
  for (const TensorSpec& spec : specs) {
    ranges_.push_back(Range{offset, spec.bytes()});
    offset += spec.bytes();
  }
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) fail(temporary_, "create");
  try {
    write_at(0, std::as_bytes(std::span(&length, 1)));
    write_at(sizeof length, std::as_bytes(std::span(header)));
  } catch (...) {
    ::close(fd_);
    ::unlink(temporary_.c_str());
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void SafetensorsWriter::write(size_t index, std::span<const std::byte> bytes) {
  SLUICE_CHECK(index < ranges_.size() && bytes.size() == ranges_[index].bytes);
  write_at(ranges_[index].offset, bytes);
  ranges_[index].written = true;
}

void SafetensorsWriter::finish() {
  SLUICE_CHECK(std::all_of(ranges_.begin(), ranges_.end(), [](const Range& range) { return range.written; }));
  if (::fsync(fd_) != 0) fail(temporary_, "write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, "rename the finished file to");
  ::close(std::exchange(fd_, -1));
}

void SafetensorsWriter::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(temporary_, "write");
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<TensorSpec> specs;
  for (const TensorToWrite& tensor : tensors)
    specs.push_back(TensorSpec{tensor.name, tensor.dtype, tensor.shape});
  SafetensorsWriter writer(path, specs, metadata);
  for (size_t i = 0; i < tensors.size(); ++i) writer.write(i, tensors[i].bytes);
  writer.finish();
}

}  // namespace sluice
