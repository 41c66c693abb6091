// Reading safetensors: every rule of the format is checked before a tensor exists.
#include "checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "base/units.h"
#include "checkpoint/json.h"

namespace sluice {
namespace {

namespace dom = simdjson::dom;

static_assert(std::endian::native == std::endian::little, "headers and tensors are little endian");

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's limit
constexpr size_t kLengthBytes = 8;
// Ten times what the largest published shards have. Each costs a few hundred bytes, so a header of nothing
// but tensors is refused before it is parsed.
constexpr int64_t kMaxTensors = 300'000;

struct Entry {
  std::string_view name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // into the part after the header
};

// What the checks complain about: the file, and the tensor if one is meant.
[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw Error(ErrorCode::kBadFile, file + ": " + what);
}
[[noreturn]] void fail(const std::string& file, std::string_view tensor, const std::string& what) {
  fail(file, "tensor '" + std::string(tensor) + "': " + what);
}

std::string count(uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

std::string_view header_of(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() < kLengthBytes) {
    fail(file,
         "has " + count(bytes.size()) +
             ", fewer than the 8 of a safetensors header length: the file is truncated: download it again");
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxHeaderBytes) {
    fail(file, "claims a header of " + count(length) + ", the limit is " + count(kMaxHeaderBytes) +
                   ": this is not a safetensors file, or it is damaged: download it again");
  }
  if (length > bytes.size() - kLengthBytes) {
    fail(file, "has a header of " + count(length) + ", but only " + count(bytes.size() - kLengthBytes) +
                   " follow its length: the file is truncated: download it again");
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  if (!header.starts_with('{')) {
    fail(file, "its header does not start with '{': this is not a safetensors file, or it is damaged");
  }
  return header;
}

// An entry has one brace. Stops at the limit, so that no more of the file is read.
void check_number_of_tensors(std::string_view header, const std::string& file) {
  int64_t braces = 0;
  constexpr size_t kPiece = 1 << 16;
  for (; !header.empty(); header.remove_prefix(std::min(header.size(), kPiece))) {
    const std::string_view piece = header.substr(0, kPiece);
    braces += std::count(piece.begin(), piece.end(), '{');
    if (braces <= kMaxTensors + 2) continue;  // the header itself, and its metadata
    fail(file, "its header describes more than " + std::to_string(kMaxTensors) +
                   " tensors, the limit for one file: split it into shards, or download it again");
  }
}

std::map<std::string, std::string> read_metadata(const dom::element& element, const std::string& file) {
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) fail(file, "__metadata__ is not an object");
  std::map<std::string, std::string> metadata;
  for (const auto& field : object) {
    std::string_view text;
    if (field.value.get(text) != simdjson::SUCCESS) {
      fail(file, "__metadata__." + std::string(field.key) + " is not a string");
    }
    metadata.emplace(field.key, text);
  }
  return metadata;
}

// The product of shape and element size, or an error if it does not fit into 63 bits.
uint64_t bytes_of(const Entry& entry, const std::string& file) {
  uint64_t bytes = size_of(entry.dtype);
  for (const int64_t size : entry.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes) || bytes > uint64_t{INT64_MAX}) {
      fail(file, entry.name, "the shape " + format_shape(entry.shape) + " is larger than any file");
    }
  }
  return bytes;
}

Entry read_entry(std::string_view name, const dom::element& element, const std::string& file) {
  Entry entry;
  entry.name = name;
  if (!element.is_object()) fail(file, name, "its entry in the header is not an object");
  std::string_view type;
  if (element["dtype"].get(type) != simdjson::SUCCESS) fail(file, name, "the header gives no dtype");
  const auto dtype = dtype_from_name(type);
  if (!dtype) fail(file, name, "the dtype '" + std::string(type) + "' is not known");
  entry.dtype = *dtype;

  dom::array shape, offsets;
  if (element["shape"].get(shape) != simdjson::SUCCESS) fail(file, name, "the header gives no shape");
  for (const dom::element item : shape) {
    int64_t size = 0;
    if (item.get(size) != simdjson::SUCCESS || size < 0) {
      fail(file, name, "a size in its shape is not a whole number from 0 to 2^63 - 1");
    }
    entry.shape.push_back(size);
  }
  if (element["data_offsets"].get(offsets) != simdjson::SUCCESS || offsets.size() != 2 ||
      offsets.at(0).get(entry.begin) != simdjson::SUCCESS ||
      offsets.at(1).get(entry.end) != simdjson::SUCCESS) {
    fail(file, name, "data_offsets is not a pair of whole numbers");
  }
  if (entry.begin > entry.end) {
    fail(file, name,
         "data_offsets run backwards, from " + std::to_string(entry.begin) + " to " +
             std::to_string(entry.end));
  }
  return entry;
}

// Entries sorted by offset must cover [0, data_bytes) without overlap or hole.
void check_ranges(const std::vector<Entry>& entries, uint64_t data_bytes, uint64_t data_start,
                  const std::string& file) {
  uint64_t position = 0;
  for (const Entry& entry : entries) {
    if (const uint64_t expected = bytes_of(entry, file); expected != entry.end - entry.begin) {
      fail(file, entry.name,
           std::string(name_of(entry.dtype)) + " " + format_shape(entry.shape) + " takes " + count(expected) +
               ", but data_offsets hold " + count(entry.end - entry.begin));
    }
    if (entry.begin < position) {
      fail(file, entry.name,
           "its bytes start at " + std::to_string(entry.begin) + ", inside of another tensor's that end at " +
               std::to_string(position));
    }
    if (entry.begin > position) {
      fail(file, entry.name,
           "its bytes start at " + std::to_string(entry.begin) + ", but the bytes from " +
               std::to_string(position) + " on belong to no tensor");
    }
    position = entry.end;
  }
  for (const Entry& entry : entries) {
    if (entry.end <= data_bytes) continue;
    fail(file, entry.name,
         "its bytes end at " + std::to_string(data_start + entry.end) + ", but the file has " +
             std::to_string(data_start + data_bytes) + " of the " + count(data_start + position) +
             " that its header describes: the file is truncated: download it again");
  }
  if (position < data_bytes) {
    fail(file, "has " + count(data_start + data_bytes) + ", its header describes " +
                   count(data_start + position) +
                   ": bytes at the end belong to no tensor: download it again");
  }
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  SafetensorsFile result;
  result.file_ = MappedFile::open(path);
  const std::string file = path.string();
  const std::span<const std::byte> bytes = result.file_.bytes();
  const std::string_view header = header_of(bytes, file);
  check_number_of_tensors(header, file);
  const auto document = internal::parse_json_object(header, file + ": header");

  std::vector<Entry> entries;
  for (const auto& field : dom::object(document->root)) {
    if (field.key == "__metadata__") {
      result.metadata_ = read_metadata(field.value, file);
    } else {
      entries.push_back(read_entry(field.key, field.value, file));
    }
  }
  const auto before = [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  };
  // Writers put them in this order, mostly.
  if (!std::is_sorted(entries.begin(), entries.end(), before))
    std::sort(entries.begin(), entries.end(), before);
  const size_t data_start = kLengthBytes + header.size();
  const std::span<const std::byte> data = bytes.subspan(data_start);
  check_ranges(entries, data.size(), data_start, file);

  result.tensors_.reserve(entries.size());
  for (Entry& entry : entries) {
    result.tensors_.push_back(Tensor{std::string(entry.name), entry.dtype, std::move(entry.shape),
                                     data.subspan(entry.begin, entry.end - entry.begin), file});
  }
  result.by_name_.resize(entries.size());
  std::iota(result.by_name_.begin(), result.by_name_.end(), size_t{0});
  std::sort(result.by_name_.begin(), result.by_name_.end(),
            [&](size_t a, size_t b) { return result.tensors_[a].name < result.tensors_[b].name; });
  return result;
}

const Tensor* SafetensorsFile::find(std::string_view name) const {
  const auto place =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](size_t index, std::string_view n) { return tensors_[index].name < n; });
  return place != by_name_.end() && tensors_[*place].name == name ? &tensors_[*place] : nullptr;
}

}  // namespace sluice
