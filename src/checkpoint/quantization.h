// What a checkpoint's configuration says about quantisation, to refuse by name what nothing here can read.
//
// Lists of modules that are left alone (`ignore`, `modules_to_not_convert`, `exclude_modules`, with wildcards
// or "re:" expressions) are not needed to read a checkpoint: the tensors of a module say what it is stored in
// (checkpoint/stored_matrix.h), and tools disagree about what such a list means for modules that an earlier
// tool had quantised.
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/config.h"

namespace sluice {

/// `quantization_config` of config.json (also inside text_config), or ModelOpt's separate
/// hf_quant_config.json.
struct Quantization {
  std::string method;   // "modelopt", "awq", "fp8"; empty: none given
  std::string algo;     // "NVFP4", "MIXED_PRECISION: FP8, NVFP4", "nvfp4-pack-quantized"; empty: none given
  std::string file;     // where it was said, for messages
  std::string refusal;  // why no weights of it can be read; empty: they can
  bool present() const { return !method.empty() || !algo.empty(); }
};

/// Throws Error kBadFile for fields of a wrong type.
Quantization read_quantization(const Config& config, const std::filesystem::path& folder);

/// Throws Error kUnsupported, with method, algorithm and the list of what is supported, unless weights of
/// this quantisation can be read.
void check_supported(const Quantization& quantization);

/// "BF16, F16, F32, ...": for messages.
extern const char* const kSupportedFormats;

}  // namespace sluice
