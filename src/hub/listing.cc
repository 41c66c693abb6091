// Reads a listing as something that may be hostile.
#include "hub/listing.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "hub/model_name.h"

namespace sluice::hub {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostFiles = 20'000;
constexpr uint64_t kMostBytes = uint64_t{1} << 50;
constexpr size_t kMostOfName = 255;  // of a part, as file systems have it

[[noreturn]] void fail(const std::string& source, const std::string& what) {
  throw Error(ErrorCode::kBadFile, source + ": the hub's list of files " + what);
}

bool is_hash(std::string_view text, size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// Parts between slashes, none of them empty, "." or "..".
bool is_safe_path(std::string_view path) {
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\';
  };
  if (std::any_of(path.begin(), path.end(), is_control)) return false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.size() > kMostOfName) return false;
    begin = end + 1;
  }
  return true;
}

std::string text_of(const Json& object, const char* key) {
  const auto field = object.find(key);
  return field != object.end() && field->is_string() ? field->get<std::string>() : std::string();
}

RemoteFile read_file(const Json& item, const std::string& source) {
  if (!item.is_object()) fail(source, "holds an item that is no object");
  RemoteFile file;
  file.name = text_of(item, "rfilename");
  const std::string shown = '"' + printable(file.name) + '"';
  if (!is_safe_path(file.name)) fail(source, "has a name that is no path inside the repository: " + shown);
  const auto large = item.find("lfs");
  const bool is_large = large != item.end() && large->is_object();
  file.hash_kind = is_large ? BlobHash::Kind::kSha256 : BlobHash::Kind::kGitBlob;
  file.hash = is_large ? text_of(*large, "sha256") : text_of(item, "blobId");
  if (!is_hash(file.hash, is_large ? 64 : 40)) fail(source, "gives no hash of " + shown);
  const Json& sized = is_large && large->contains("size") ? *large : item;
  const auto size = sized.find("size");
  if (size == sized.end() || !size->is_number_unsigned() || size->get<uint64_t>() > kMostBytes) {
    fail(source, "gives no size of " + shown + " that could be true");
  }
  file.size = size->get<uint64_t>();
  return file;
}

bool ends_with_one_of(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return text.ends_with(end); });
}

bool is_safetensors(std::string_view name) { return name.ends_with(".safetensors"); }
bool is_main_weight(std::string_view name) {
  return is_safetensors(name) && name.find('/') == std::string_view::npos;
}

/// Formats that nothing here reads, by the ends of their names.
bool is_useless_format(std::string_view name) {
  return ends_with_one_of(
      name, {".bin",  ".pth",  ".pt",     ".ckpt",      ".gguf",      ".ggml", ".h5",
             ".onnx", ".ot",   ".tflite", ".msgpack",   ".mlmodel",   ".npz",  ".pkl",
             ".zip",  ".tar",  ".gz",     ".onnx_data", ".mlpackage", ".png",  ".jpg",
             ".jpeg", ".webp", ".gif",    ".svg",       ".mp4",       ".pdf",  ".gitattributes"});
}

bool is_useless(std::string_view name, bool has_model_file) {
  constexpr std::array kFolders = {"original/", "onnx/", "openvino/", "gguf/", "metal/", "coreml/"};
  if (std::any_of(kFolders.begin(), kFolders.end(),
                  [&](const char* folder) { return name.starts_with(folder); }))
    return true;
  if (is_useless_format(name) || (is_safetensors(name) && !is_main_weight(name))) return true;
  // The same weights again, in the layout of the publisher's own programs.
  return has_model_file && name.starts_with("consolidated") && is_safetensors(name);
}

uint64_t sum_of(const std::vector<RemoteFile>& files) {
  return std::accumulate(files.begin(), files.end(), uint64_t{0},
                         [](uint64_t sum, const RemoteFile& file) { return sum + file.size; });
}

}  // namespace

Listing parse_listing(std::string_view json, const std::string& source) {
  const Json root = Json::parse(json, nullptr, false);
  if (!root.is_object()) fail(source, "is no JSON object");
  Listing listing;
  listing.commit = text_of(root, "sha");
  if (!is_commit(listing.commit)) fail(source, "names no commit");
  const auto siblings = root.find("siblings");
  if (siblings == root.end() || !siblings->is_array()) fail(source, "has no siblings");
  if (siblings->size() > kMostFiles) fail(source, "has more than " + std::to_string(kMostFiles) + " files");
  std::set<std::string> names;
  for (const Json& item : *siblings) {
    listing.files.push_back(read_file(item, source));
    const std::string& name = listing.files.back().name;
    if (!names.insert(name).second) fail(source, "names \"" + name + "\" twice");
  }
  if (sum_of(listing.files) > kMostBytes) fail(source, "has more bytes than could be true");
  return listing;
}

uint64_t Selection::bytes() const { return sum_of(files); }
uint64_t Selection::skipped_bytes() const { return sum_of(skipped); }

Selection select_files(const Listing& listing, const std::string& source) {
  const auto& files = listing.files;
  const bool has_model_file = std::any_of(files.begin(), files.end(), [](const RemoteFile& file) {
    return file.name.starts_with("model") && is_main_weight(file.name);
  });
  Selection selection;
  for (const RemoteFile& file : files)
    (is_useless(file.name, has_model_file) ? selection.skipped : selection.files).push_back(file);
  const auto& kept = selection.files;
  if (std::any_of(kept.begin(), kept.end(), [](const RemoteFile& f) { return is_main_weight(f.name); }))
    return selection;
  const auto largest = std::max_element(
      files.begin(), files.end(), [](const RemoteFile& a, const RemoteFile& b) { return a.size < b.size; });
  throw Error(ErrorCode::kUnsupported,
              source + ": holds no model in safetensors files" +
                  (largest == files.end() ? "" : " (its largest file is " + printable(largest->name) + ")") +
                  "; look for the original repository of this model");
}

}  // namespace sluice::hub
