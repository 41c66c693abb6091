// The two places where checkpoints state their quantisation.
#include "checkpoint/quantization.h"

#include <system_error>

#include "base/error.h"

namespace sluice {

const char* const kSupportedFormats = "BF16, F16, F32, and NVFP4 as ModelOpt writes it";

Quantization read_quantization(const Config& config, const std::filesystem::path& folder) {
  Quantization result;
  if (config.has({"quantization_config"})) {
    const Config given = config.object({"quantization_config"});
    result.file = config.file();
    result.method = given.string_or({"quant_method"}, "");
    result.algo = given.string_or({"quant_algo"}, "");
    if (!result.present()) result.method = "of an unnamed method";
    return result;
  }
  const std::filesystem::path separate = folder / "hf_quant_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(separate, ignored)) return result;
  const Config given = Config::read(separate).object({"quantization"});
  result.file = separate.string();
  result.method = "modelopt";  // the only tool that writes this file
  result.algo = given.string_or({"quant_algo"}, "");
  return result;
}

void check_supported(const Quantization& quantization) {
  if (!quantization.present()) return;
  const bool modelopt = quantization.method.starts_with("modelopt") || quantization.method.empty();
  if (modelopt && quantization.algo == "NVFP4") return;
  throw Error(ErrorCode::kUnsupported,
              quantization.file + ": the weights are quantised with '" + quantization.method + "'" +
                  (quantization.algo.empty() ? "" : ", algorithm '" + quantization.algo + "'") +
                  ", which is not supported; supported are " + kSupportedFormats);
}

}  // namespace sluice
