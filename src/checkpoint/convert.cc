// Running a conversion plan into a folder that appears when it is complete.
#include "checkpoint/convert.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "checkpoint/convert_plan.h"
#include "checkpoint/nvfp4_quantize.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr uint64_t kSpareBytes =
    64'000'000;  // headers, index, tokenizer: far less, but a disk should not end full

// `out` without a trailing slash, absolute, so that its parent and name are plain.
fs::path normalised(const fs::path& out) {
  const fs::path path = fs::absolute(out).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

// The folder that is written to; removed unless it was renamed.
class PartialFolder {
 public:
  explicit PartialFolder(const fs::path& out) : out_(out), path_(out) {
    path_ += ".partial";
    if (fs::exists(out_) && !(fs::is_directory(out_) && fs::is_empty(out_))) {
      throw Error(ErrorCode::kInvalidArgument,
                  out_.string() + ": exists already; choose another folder or remove it");
    }
    if (fs::exists(path_)) {
      throw Error(
          ErrorCode::kInvalidArgument,
          path_.string() + ": an interrupted conversion left it, or one is running; remove it and try again");
    }
    std::error_code error;
    fs::create_directories(path_, error);
    if (error) throw Error(ErrorCode::kIo, path_.string() + ": cannot create the folder: " + error.message());
  }
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;
  ~PartialFolder() {
    std::error_code ignored;  // a destructor has nobody to tell
    if (!finished_) fs::remove_all(path_, ignored);
  }

  const fs::path& path() const { return path_; }
  void finish() {
    std::error_code error;
    fs::rename(path_, out_, error);
    if (error)
      throw Error(ErrorCode::kIo, out_.string() + ": cannot rename the finished folder: " + error.message());
    finished_ = true;
  }

 private:
  fs::path out_, path_;
  bool finished_ = false;
};

void check_room(const fs::path& folder, uint64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error)
    throw Error(ErrorCode::kIo, folder.string() + ": cannot read the free space: " + error.message());
  if (space.available < bytes + kSpareBytes) {
    throw Error(ErrorCode::kIo, folder.string() + ": the converted checkpoint needs " +
                                    format_bytes(bytes + kSpareBytes) + ", but " +
                                    format_bytes(space.available) + " are free");
  }
}

// Modules that stay as they are, in the patterns that readers of ModelOpt checkpoints expect; dense
// projections that no pattern covers are named one by one.
ordered_json ignored_modules(const Checkpoint& checkpoint) {
  constexpr std::array kParts = {"self_attn",     "linear_attn",  "mlp.gate.",
                                 "shared_expert", "embed_tokens", "lm_head"};
  ordered_json names = {"lm_head", "*self_attn*", "*linear_attn*", "*mlp.gate", "*shared_expert*"};
  for (const Tensor* tensor : checkpoint.tensors()) {
    if (is_expert_weight(tensor->name) || tensor->shape.size() != 2 || !tensor->name.ends_with(".weight"))
      continue;
    const bool covered = std::any_of(kParts.begin(), kParts.end(), [&](const char* part) {
      return tensor->name.find(part) != std::string::npos;
    });
    if (!covered)
      names.push_back(tensor->name.substr(0, tensor->name.size() - std::string_view(".weight").size()));
  }
  return names;
}

void write_config(const Checkpoint& checkpoint, const fs::path& folder) {
  // Checkpoint::open has parsed this file already, so it is an object.
  auto config = ordered_json::parse(read_text_file(checkpoint.folder() / "config.json"));
  config["quantization_config"] = {
      {"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}, {"ignore", ignored_modules(checkpoint)}};
  write_file_atomically(folder / "config.json", config.dump(2) + "\n");
}

bool is_companion(const fs::path& file) {
  const std::string name = file.filename().string(), extension = file.extension().string();
  if (name == "config.json" || name == "hf_quant_config.json" || name.ends_with(".index.json")) return false;
  return extension == ".json" || extension == ".jinja" || extension == ".model" || extension == ".tiktoken" ||
         name == "merges.txt" || name == "vocab.txt";
}

void copy_companions(const fs::path& from, const fs::path& to) {
  for (const auto& entry : fs::directory_iterator(from)) {
    if (!entry.is_regular_file() || !is_companion(entry.path())) continue;
    write_file_atomically(to / entry.path().filename(), read_text_file(entry.path()));
  }
}

void write_index(const std::vector<ConvertShard>& shards, const fs::path& folder) {
  if (shards.size() == 1) return;
  std::map<std::string_view, std::string_view> weight_map;
  uint64_t bytes = 0;
  for (const ConvertShard& shard : shards) {
    bytes += shard.bytes();
    for (const TensorSpec& spec : shard.specs) weight_map[spec.name] = shard.file;
  }
  const ordered_json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", weight_map}};
  write_file_atomically(folder / "model.safetensors.index.json", index.dump(2) + "\n");
}

void write_quantised(const ConvertJob& job, SafetensorsWriter& writer, ThreadPool& pool) {
  const Tensor& source = *job.source;
  const std::vector<float> values = to_f32(source);
  const auto broken =
      std::find_if_not(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  if (broken != values.end()) {
    throw Error(ErrorCode::kBadFile, source.file + ": tensor '" + source.name + "': element " +
                                         std::to_string(broken - values.begin()) + " is " +
                                         std::to_string(*broken) + "; weights must be finite");
  }
  const auto matrix = nvfp4::quantize(values, source.shape[0], source.shape[1], pool);
  writer.write(job.outputs[0], std::as_bytes(std::span(matrix.codes)));
  writer.write(job.outputs[1], std::as_bytes(std::span(matrix.scales)));
  writer.write(job.outputs[2], std::as_bytes(std::span(&matrix.global, 1)));
}

void write_shard(const ConvertShard& shard, const fs::path& folder, const ConvertOptions& options,
                 ThreadPool& pool, uint64_t total_bytes, ConvertSummary& summary) {
  SafetensorsWriter writer(folder / shard.file, shard.specs, {{"format", "pt"}});
  for (const ConvertJob& job : shard.jobs) {
    if (job.quantise) {
      write_quantised(job, writer, pool);
      ++summary.tensors_quantised;
    } else {
      writer.write(job.outputs[0], job.source->bytes);
      ++summary.tensors_copied;
    }
    summary.bytes_read += job.source->bytes.size();
    if (options.progress) options.progress(summary.bytes_read, total_bytes);
  }
  writer.finish();
  summary.bytes_written += shard.bytes();
  ++summary.shards;
}

Checkpoint open_unquantised(const ConvertOptions& options) {
  if (options.format != WeightFormat::kNvfp4) {
    throw Error(ErrorCode::kUnsupported,
                "cannot convert to " + std::string(name_of(options.format)) + "; experts can become nvfp4");
  }
  Checkpoint checkpoint = Checkpoint::open(options.model);
  if (checkpoint.quantization().present()) {
    throw Error(ErrorCode::kUnsupported, checkpoint.quantization().file +
                                             ": the checkpoint is quantised already, with '" +
                                             checkpoint.quantization().method + "'; convert the original");
  }
  const auto& tensors = checkpoint.tensors();
  if (std::none_of(tensors.begin(), tensors.end(),
                   [](const Tensor* t) { return is_expert_weight(t->name); })) {
    throw Error(
        ErrorCode::kUnsupported,
        options.model.string() +
            ": holds no tensors named '*.mlp.experts.E.{gate,up,down}_proj.weight' or "
            "'*.block_sparse_moe.experts.E.{w1,w2,w3}.weight', the only experts that can be converted");
  }
  return checkpoint;
}

}  // namespace

ConvertSummary convert(const ConvertOptions& options) try {
  const Checkpoint checkpoint = open_unquantised(options);
  const std::vector<ConvertShard> shards = plan_nvfp4(checkpoint, options.max_shard_bytes);
  uint64_t bytes = 0;
  for (const ConvertShard& shard : shards) bytes += shard.bytes();

  PartialFolder folder(normalised(options.out));
  check_room(folder.path(), bytes);
  ThreadPool pool(options.threads);
  ConvertSummary summary;
  for (const ConvertShard& shard : shards) {
    write_shard(shard, folder.path(), options, pool, checkpoint.total_bytes(), summary);
  }
  write_index(shards, folder.path());
  copy_companions(options.model, folder.path());
  write_config(checkpoint, folder.path());
  folder.finish();
  return summary;
} catch (const fs::filesystem_error& error) {
  throw Error(ErrorCode::kIo, error.path1().string() + ": " + error.code().message());
}

}  // namespace sluice
