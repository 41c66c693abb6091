// The places where checkpoints state their quantisation, and what of it can be read.
#include "checkpoint/quantization.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "checkpoint/weight_format.h"

namespace sluice {
namespace {

// Of ModelOpt. How it would quantise activations does not matter: they stay as they are here.
constexpr std::string_view kModelOptAlgos[] = {
    "NVFP4", "W4A16_NVFP4", "FP8", "FP8_BLOCK", "FP8_PB_WO", "FP8_PER_CHANNEL_PER_TOKEN", "MXFP4"};
constexpr std::string_view kCompressedFormats[] = {"nvfp4-pack-quantized", "mxfp4-pack-quantized",
                                                   "float-quantized", "mixed-precision", "dense"};

std::string list_of(std::span<const std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return list;
}

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string block_refusal(const std::vector<int64_t>& block) {
  if (block.empty() || block == std::vector<int64_t>{kFp8BlockSize, kFp8BlockSize}) return "";
  std::string sizes;
  for (const int64_t size : block) sizes += (sizes.empty() ? "" : " x ") + std::to_string(size);
  return "in blocks of " + sizes + " instead of 128 x 128";
}

// quantized_layers: {"model.layers.0.mlp.experts": {"quant_algo": "NVFP4"}, ...}.
void read_model_opt(const Config& given, Quantization& result) {
  result.algo = given.string_or({"quant_algo"}, "");
  std::set<std::string> algos;
  if (result.algo == "MIXED_PRECISION") {
    const Config layers = given.object({"quantized_layers"});
    for (const std::string& name : layers.keys()) {
      const Config layer = layers.object({name});
      if (layer.has({"quant_algo"})) algos.insert(layer.string({"quant_algo"}));
    }
    for (const std::string& algo : algos) {
      result.algo += (result.algo.ends_with("MIXED_PRECISION") ? ": " : ", ") + algo;
    }
  } else {
    algos.insert(result.algo);
  }
  for (const std::string& algo : algos) {
    if (is_one_of(algo, kModelOptAlgos)) continue;
    result.refusal = "algorithm '" + algo + "' (ModelOpt's known ones are: " + list_of(kModelOptAlgos) +
                     ", and MIXED_PRECISION of these)";
  }
}

void read_compressed_tensors(const Config& given, Quantization& result) {
  std::vector<std::string> formats;
  if (given.has({"format"})) formats.push_back(given.string({"format"}));
  const Config groups = given.object({"config_groups"});
  for (const std::string& name : groups.keys()) {
    const Config group = groups.object({name});
    if (group.has({"format"})) formats.push_back(group.string({"format"}));
    const std::string refusal = block_refusal(group.object({"weights"}).integers({"block_structure"}));
    if (!refusal.empty()) result.refusal = refusal;
  }
  for (const std::string& format : formats) {
    if (result.algo.find(format) == std::string::npos)
      result.algo += (result.algo.empty() ? "" : ", ") + format;
    if (is_one_of(format, kCompressedFormats)) continue;
    result.refusal = "format '" + format + "'" + (format == "pack-quantized" ? " (int4)" : "") +
                     " (the known ones are: " + list_of(kCompressedFormats) + ")";
  }
}

void read_fp8(const Config& given, Quantization& result) {
  result.refusal = block_refusal(given.integers({"weight_block_size"}));
  const std::string kind = given.string_or({"fmt"}, "e4m3");
  if (kind != "e4m3" && kind != "float8_e4m3fn") {
    result.refusal = "numbers of type '" + kind + "' (the known one is: e4m3)";
  }
}

Quantization read(const Config& given, std::string file) {
  Quantization result;
  result.file = std::move(file);
  result.method = given.string_or({"quant_method"}, "");
  if (result.method.empty() && given.has({"quant_algo"})) result.method = "modelopt";
  if (result.method.starts_with("modelopt")) {
    read_model_opt(given, result);
  } else if (result.method == "compressed-tensors") {
    read_compressed_tensors(given, result);
  } else if (result.method == "fp8") {
    read_fp8(given, result);
  } else if (result.method != "mxfp4") {
    result.algo = given.string_or({"quant_algo"}, "");
    if (!result.present()) result.method = "of an unnamed method";
    result.refusal = "an unknown method (the known ones are: modelopt, compressed-tensors, fp8, mxfp4)";
  }
  return result;
}

}  // namespace

const char* const kSupportedFormats =
    "BF16, F16, F32, FP8 (e4m3 with a scale for the matrix, a row, or a block of 128 x 128), NVFP4 "
    "(ModelOpt's "
    "and compressed-tensors') and MXFP4";

Quantization read_quantization(const Config& config, const std::filesystem::path& folder) {
  for (const Config& place : {config, config.object({"text_config"})}) {
    if (place.has({"quantization_config", "compression_config"})) {
      return read(place.object({"quantization_config", "compression_config"}), config.file());
    }
  }
  const std::filesystem::path separate = folder / "hf_quant_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(separate, ignored)) return {};
  Quantization result;
  result.file = separate.string();
  result.method = "modelopt";  // the only tool that writes this file
  read_model_opt(Config::read(separate).object({"quantization"}), result);
  return result;
}

void check_supported(const Quantization& quantization) {
  if (quantization.refusal.empty()) return;
  throw Error(ErrorCode::kUnsupported, quantization.file + ": the weights are quantised with '" +
                                           quantization.method + "', " + quantization.refusal +
                                           ", which is not supported. Use the model's original checkpoint or "
                                           "one in a supported format: " +
                                           kSupportedFormats);
}

}  // namespace sluice
