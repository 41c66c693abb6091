// Writes the files beside the tensors.
#include "checkpoint/convert_config.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// Modules with a matrix that is kept as it is.
std::vector<std::string> kept_modules(const Checkpoint& checkpoint, WeightFormat format) {
  constexpr std::string_view kSuffix = ".weight";
  std::vector<std::string> modules;
  for (const Tensor* tensor : checkpoint.tensors()) {
    if (is_quantised(*tensor, format) || tensor->shape.size() != 2 || !tensor->name.ends_with(kSuffix))
      continue;
    modules.push_back(tensor->name.substr(0, tensor->name.size() - kSuffix.size()));
  }
  return modules;
}

// In the patterns that readers of ModelOpt checkpoints expect; dense projections that no pattern covers are
// named one by one.
ordered_json ignored_by_model_opt(const Checkpoint& checkpoint) {
  constexpr std::array kParts = {"self_attn",     "linear_attn",  "mlp.gate.",
                                 "shared_expert", "embed_tokens", "lm_head"};
  ordered_json names = {"lm_head", "*self_attn*", "*linear_attn*", "*mlp.gate", "*shared_expert*"};
  for (const std::string& module : kept_modules(checkpoint, WeightFormat::kNvfp4)) {
    const bool covered = std::any_of(kParts.begin(), kParts.end(), [&](const char* part) {
      return (module + '.').find(part) != std::string::npos;
    });
    if (!covered) names.push_back(module);
  }
  return names;
}

ordered_json model_opt_config(const ordered_json& ignored) {
  const ordered_json weights = {
      {"dynamic", false}, {"num_bits", 4}, {"type", "float"}, {"group_size", kNvfp4Group}};
  const ordered_json group = {{"weights", weights}, {"targets", {"Linear"}}};
  return {{"config_groups", {{"group_0", group}}},
          {"ignore", ignored},
          {"quant_algo", "NVFP4"},
          {"quant_method", "modelopt"}};
}

// The separate file of ModelOpt's older checkpoints, which some readers ask for first.
ordered_json model_opt_separate(const ordered_json& ignored) {
  return {{"quantization",
           {{"quant_algo", "NVFP4"},
            {"kv_cache_quant_algo", nullptr},
            {"group_size", kNvfp4Group},
            {"exclude_modules", ignored}}}};
}

ordered_json fp8_config(const Checkpoint& checkpoint) {
  return {{"activation_scheme", "dynamic"},
          {"fmt", "e4m3"},
          {"modules_to_not_convert", kept_modules(checkpoint, WeightFormat::kFp8Block)},
          {"quant_method", "fp8"},
          {"weight_block_size", {kFp8BlockSize, kFp8BlockSize}}};
}

void write_json(const fs::path& file, const ordered_json& json) {
  write_file_atomically(file, json.dump(2) + "\n");
}

bool is_companion(const fs::path& file) {
  const std::string name = file.filename().string(), extension = file.extension().string();
  if (name == "config.json" || name == "hf_quant_config.json" || name.ends_with(".index.json")) return false;
  return extension == ".json" || extension == ".jinja" || extension == ".model" || extension == ".tiktoken" ||
         name == "merges.txt" || name == "vocab.txt";
}

}  // namespace

void write_converted_config(const Checkpoint& checkpoint, WeightFormat format, const fs::path& folder) {
  // Checkpoint::open has parsed this file already, so it is an object.
  auto config = ordered_json::parse(read_text_file(checkpoint.folder() / "config.json"));
  if (format == WeightFormat::kFp8Block) {
    config["quantization_config"] = fp8_config(checkpoint);
  } else {
    const ordered_json ignored = ignored_by_model_opt(checkpoint);
    config["quantization_config"] = model_opt_config(ignored);
    write_json(folder / "hf_quant_config.json", model_opt_separate(ignored));
  }
  write_json(folder / "config.json", config);
}

void write_index(const std::vector<ConvertShard>& shards, const fs::path& folder) {
  if (shards.size() == 1) return;
  std::map<std::string_view, std::string_view> weight_map;
  uint64_t bytes = 0;
  for (const ConvertShard& shard : shards) {
    bytes += shard.bytes();
    for (const TensorSpec& spec : shard.specs) weight_map[spec.name] = shard.file;
  }
  write_json(folder / "model.safetensors.index.json",
             {{"metadata", {{"total_size", bytes}}}, {"weight_map", weight_map}});
}

void copy_companions(const fs::path& from, const fs::path& to) {
  for (const auto& entry : fs::directory_iterator(from)) {
    if (!entry.is_regular_file() || !is_companion(entry.path())) continue;
    write_file_atomically(to / entry.path().filename(), read_text_file(entry.path()));
  }
}

}  // namespace sluice
