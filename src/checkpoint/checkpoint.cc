// Opening a checkpoint folder: configuration files, index, shards.
#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <map>
#include <system_error>

#include "base/error.h"
#include "checkpoint/foreign_files.h"
#include "checkpoint/json.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
namespace dom = simdjson::dom;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr size_t kMaxIndexBytes = 200'000'000;

// Whatever else keeps us from seeing a file is reported by the call that opens it.
bool present(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

using NamesByShard = std::map<std::string, std::vector<std::string>>;

// The index's weight_map, turned around: shard -> names of its tensors.
NamesByShard read_index(const fs::path& index) {
  const std::string file = index.string();
  const auto document = internal::parse_json_object(read_text_file(index, kMaxIndexBytes), file);
  dom::object weight_map;
  if (document->root["weight_map"].get(weight_map) != simdjson::SUCCESS) {
    throw Error(ErrorCode::kBadFile, file + ": weight_map is missing or not an object");
  }
  NamesByShard shards;
  for (const auto& field : weight_map) {
    std::string_view shard;
    // Only plain names: a downloaded index must not make us open files elsewhere.
    if (field.value.get(shard) != simdjson::SUCCESS || shard.empty() || shard == "." || shard == ".." ||
        shard.find('/') != std::string_view::npos || shard.find('\0') != std::string_view::npos) {
      throw Error(ErrorCode::kBadFile, file + ": weight_map." + std::string(field.key) +
                                           " is not the name of a file in the same folder");
    }
    shards[std::string(shard)].emplace_back(field.key);
  }
  if (shards.empty()) throw Error(ErrorCode::kBadFile, file + ": weight_map names no tensor");
  return shards;
}

SafetensorsFile open_shard(const fs::path& folder, const std::string& shard) {
  const fs::path path = folder / shard;
  if (!present(path)) {
    throw Error(ErrorCode::kNotFound, path.string() + ": this shard is missing, but " + kIndexFile +
                                          " names it: download it again");
  }
  return SafetensorsFile::open(path);
}

}  // namespace

void check_model_folder(const fs::path& folder) {
  if (!present(folder)) throw Error(ErrorCode::kNotFound, folder.string() + ": no such folder");
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    if (const std::string foreign = describe_foreign_weights(folder); !foreign.empty()) {
      throw Error(ErrorCode::kUnsupported, folder.string() + ": " + foreign);
    }
    throw Error(ErrorCode::kInvalidArgument,
                folder.string() + ": not a folder; give the folder that holds config.json");
  }
}

Checkpoint Checkpoint::open(const fs::path& folder) {
  check_model_folder(folder);
  const bool weights = present(folder / kSingleFile) || present(folder / kIndexFile);
  if (const std::string foreign = weights ? "" : describe_foreign_weights(folder); !foreign.empty()) {
    throw Error(ErrorCode::kUnsupported, folder.string() + ": " + foreign);
  }
  Checkpoint result;
  result.folder_ = folder;
  result.config_ = Config::read(folder / "config.json");
  const fs::path generation = folder / "generation_config.json";
  if (present(generation)) result.generation_config_ = Config::read(generation);
  result.quantization_ = read_quantization(result.config_, folder);

  if (present(folder / kSingleFile)) {
    result.files_.push_back(SafetensorsFile::open(folder / kSingleFile));
    for (const Tensor& tensor : result.files_.back().tensors()) result.sorted_.push_back(&tensor);
  } else if (present(folder / kIndexFile)) {
    for (const auto& [shard, names] : read_index(folder / kIndexFile)) {
      result.files_.push_back(open_shard(folder, shard));
      for (const std::string& name : names) {
        const Tensor* tensor = result.files_.back().find(name);
        if (tensor == nullptr) {
          throw Error(ErrorCode::kBadFile, (folder / kIndexFile).string() + ": says that tensor '" + name +
                                               "' is in " + shard +
                                               ", which does not hold it: download both again");
        }
        result.sorted_.push_back(tensor);
      }
    }
  } else {
    throw Error(ErrorCode::kNotFound, folder.string() + ": holds neither " + kSingleFile + " nor " +
                                          kIndexFile + "; only checkpoints in safetensors files are read");
  }
  std::sort(result.sorted_.begin(), result.sorted_.end(),
            [](const Tensor* a, const Tensor* b) { return a->name < b->name; });
  return result;
}

Checkpoint Checkpoint::in_memory(const std::string& place, Config config, std::vector<Tensor> tensors,
                                 std::shared_ptr<const void> memory) {
  Checkpoint result;
  result.folder_ = place;
  result.config_ = std::move(config);
  result.made_ = std::move(tensors);
  result.memory_ = std::move(memory);
  for (const Tensor& tensor : result.made_) result.sorted_.push_back(&tensor);
  std::sort(result.sorted_.begin(), result.sorted_.end(),
            [](const Tensor* a, const Tensor* b) { return a->name < b->name; });
  return result;
}

const Tensor* Checkpoint::find(const std::string& name) const {
  const auto place =
      std::lower_bound(sorted_.begin(), sorted_.end(), name,
                       [](const Tensor* tensor, const std::string& n) { return tensor->name < n; });
  return place != sorted_.end() && (*place)->name == name ? *place : nullptr;
}

const Tensor& Checkpoint::get(const std::string& name) const {
  if (const Tensor* tensor = find(name)) return *tensor;
  throw Error(ErrorCode::kNotFound, place() + ": there is no tensor '" + name +
                                        "', which config.json asks for: download the model again, or see "
                                        "whether config.json belongs to it");
}

std::string Checkpoint::place() const {
  if (files_.size() == 1 && !sorted_.empty()) return sorted_[0]->file;
  return folder_.string() + " (" + std::to_string(files_.size()) + " files)";
}

const Tensor& Checkpoint::get(const std::string& name, std::span<const int64_t> shape) const {
  const Tensor& tensor = get(name);
  if (!std::equal(tensor.shape.begin(), tensor.shape.end(), shape.begin(), shape.end())) {
    throw Error(ErrorCode::kBadFile, tensor.file + ": tensor '" + name + "' has shape " +
                                         format_shape(tensor.shape) + ", but config.json asks for " +
                                         format_shape(shape));
  }
  return tensor;
}

uint64_t Checkpoint::total_bytes() const {
  uint64_t bytes = 0;
  for (const Tensor* tensor : sorted_) bytes += tensor->bytes.size();
  return bytes;
}

}  // namespace sluice
