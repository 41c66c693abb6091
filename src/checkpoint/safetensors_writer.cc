// Headers of safetensors files, and writes at the offsets that they promise.
#include "checkpoint/safetensors_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace sluice {
namespace {

using nlohmann::ordered_json;

constexpr size_t kHeaderAlignment = 8;

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

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorSpec> specs,
                                     const std::map<std::string, std::string>& metadata)
    : file_(path) {
  SLUICE_CHECK(names_differ(specs));
  const std::string header = header_of(specs, metadata);
  const uint64_t length = header.size();
  uint64_t offset = sizeof length + length;
  for (const TensorSpec& spec : specs) {
    ranges_.push_back(Range{offset, spec.bytes(), 0});
    offset += spec.bytes();
  }
  file_.write_at(0, std::as_bytes(std::span(&length, 1)));
  file_.write_at(sizeof length, std::as_bytes(std::span(header)));
}

void SafetensorsWriter::write(size_t index, std::span<const std::byte> bytes) {
  SLUICE_CHECK(index < ranges_.size());
  Range& range = ranges_[index];
  SLUICE_CHECK(bytes.size() <= range.bytes - range.written);
  file_.write_at(range.offset + range.written, bytes);
  range.written += bytes.size();
}

void SafetensorsWriter::finish() {
  SLUICE_CHECK(std::all_of(ranges_.begin(), ranges_.end(),
                           [](const Range& range) { return range.written == range.bytes; }));
  file_.commit(true);
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
