// The list of families. A new family is one folder and one line here.
#include <string>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "models/mixtral/mixtral.h"
#include "models/model.h"
#include "models/olmoe/olmoe.h"
#include "models/qwen2_moe/qwen2_moe.h"
#include "models/qwen3_moe/qwen3_moe.h"

namespace sluice {
namespace {

struct Family {
  const char* model_type;
  const char* architecture;
  std::unique_ptr<Model> (*load)(const Checkpoint&, Device&, const LoadOptions&);
};

constexpr Family kFamilies[] = {
    {"qwen3_moe", "Qwen3MoeForCausalLM", load_qwen3_moe},
    {"qwen2_moe", "Qwen2MoeForCausalLM", load_qwen2_moe},
    {"mixtral", "MixtralForCausalLM", load_mixtral},
    {"olmoe", "OlmoeForCausalLM", load_olmoe},
};

std::string known_families() {
  std::string list;
  for (const Family& family : kFamilies) {
    list += (list.empty() ? "" : ", ") + std::string(family.model_type) + " (" + family.architecture + ")";
  }
  return list;
}

}  // namespace

std::unique_ptr<Model> load_model(const Checkpoint& checkpoint, Device& device, const LoadOptions& options) {
  const Config& config = checkpoint.config();
  const std::string type = config.string_or({"model_type"}, "");
  // A model with parts for images or sound keeps the language model's type one level down.
  std::string text_type = config.object({"text_config"}).string_or({"model_type"}, "");
  if (text_type.ends_with("_text")) text_type.resize(text_type.size() - 5);
  const std::vector<std::string> architectures = config.strings({"architectures"});
  for (const std::string& known : {type, text_type}) {
    for (const Family& family : kFamilies) {
      if (known == family.model_type) return family.load(checkpoint, device, options);
    }
  }
  for (const Family& family : kFamilies) {
    if (type.empty() && !architectures.empty() && architectures[0] == family.architecture) {
      return family.load(checkpoint, device, options);
    }
  }
  const std::string found = !type.empty() ? type : architectures.empty() ? "" : architectures[0];
  throw Error(ErrorCode::kUnsupported, config.file() + ": " +
                                           (found.empty() ? "names neither a model_type nor an architecture"
                                                          : "unknown architecture \"" + found + "\"") +
                                           "; the known ones are: " + known_families());
}

}  // namespace sluice
