// What a checkpoint's configuration says about quantisation, to refuse by name what nothing here can read.
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/config.h"

namespace sluice {

/// `quantization_config` of config.json, or ModelOpt's separate hf_quant_config.json.
struct Quantization {
  std::string method;  // "modelopt", "awq", "fp8"; empty: none given
  std::string algo;    // "NVFP4"; empty: none given
  std::string file;    // where it was said, for messages
  bool present() const { return !method.empty() || !algo.empty(); }
};

/// Throws Error kBadFile for fields of a wrong type.
Quantization read_quantization(const Config& config, const std::filesystem::path& folder);

/// Throws Error kUnsupported, with method, algorithm and the list of what is supported, unless weights of
/// this quantisation can be read.
void check_supported(const Quantization& quantization);

/// "BF16, F16, F32, and NVFP4 as ModelOpt writes it": for messages.
extern const char* const kSupportedFormats;

}  // namespace sluice
