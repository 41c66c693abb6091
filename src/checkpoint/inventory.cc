// Sorting tensors into kinds by their names.
#include "checkpoint/inventory.h"

#include <algorithm>
#include <cctype>

#include "checkpoint/fp4.h"
#include "checkpoint/fp8.h"

namespace sluice {
namespace {

bool contains(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// "model.layers.12.mlp..." -> "model.layers.12"; empty where the name has no layer.
std::string_view layer_of(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  const size_t place = name.find(kLayers);
  if (place == std::string_view::npos) return {};
  return name.substr(0, name.find('.', place + kLayers.size()));
}

// The tensors beside a weight that only scale it.
bool is_scale(std::string_view name) {
  return contains(name, {"_scale", "_shape"}) || name.ends_with("bias");
}

std::string format_of(const Checkpoint& checkpoint, const Tensor& tensor) {
  if (tensor.name.ends_with("_blocks")) return std::string(name_of(WeightFormat::kMxfp4));
  for (const std::string_view suffix : {".weight", ".weight_packed"}) {
    if (!tensor.name.ends_with(suffix)) continue;
    const std::string module = tensor.name.substr(0, tensor.name.size() - suffix.size());
    const fp4::Layout layout = fp4::layout_of(checkpoint, module);
    if (layout == fp4::Layout::kMxfp4) return std::string(name_of(WeightFormat::kMxfp4));
    if (layout != fp4::Layout::kNone) return std::string(name_of(WeightFormat::kNvfp4));
    if (fp8::is_stored(checkpoint, module)) {
      const bool blocks = checkpoint.find(module + ".weight_scale_inv") != nullptr;
      return std::string(name_of(blocks ? WeightFormat::kFp8Block : WeightFormat::kFp8Row));
    }
  }
  std::string type(name_of(tensor.dtype));
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
  return type;
}

}  // namespace

std::string_view name_of(TensorKind kind) {
  switch (kind) {
    case TensorKind::kExperts:
      return "experts";
    case TensorKind::kAttention:
      return "attention";
    case TensorKind::kRouter:
      return "router";
    case TensorKind::kMlp:
      return "mlp";
    case TensorKind::kEmbeddings:
      return "embeddings";
    case TensorKind::kNorms:
      return "norms";
    case TensorKind::kOther:
      return "other";
  }
  return "unknown";
}

TensorKind kind_of(std::string_view name) {
  if (contains(name, {"visual.", "vision", "mtp."})) return TensorKind::kOther;
  if (contains(name, {".experts."})) return TensorKind::kExperts;
  if (contains(name, {"shared_expert"})) return TensorKind::kMlp;
  if (contains(name, {".gate.", ".router.", "e_score_correction_bias"})) return TensorKind::kRouter;
  if (contains(name, {"norm.", "norm_", "layernorm"})) return TensorKind::kNorms;
  if (contains(name, {"attn", "attention"})) return TensorKind::kAttention;
  if (contains(name, {"embed", "lm_head"})) return TensorKind::kEmbeddings;
  if (contains(name, {".mlp.", ".ffn.", ".feed_forward."})) return TensorKind::kMlp;
  return TensorKind::kOther;
}

Inventory take_inventory(const Checkpoint& checkpoint) {
  Inventory result;
  std::set<std::string_view> moe_layers;
  for (const Tensor* tensor : checkpoint.tensors()) {
    const TensorKind kind = kind_of(tensor->name);
    for (Inventory::Amount* amount : {&result.total, &result.by_kind[kind], &result.by_type[tensor->dtype]}) {
      ++amount->tensors;
      amount->bytes += tensor->bytes.size();
    }
    if (kind != TensorKind::kExperts) continue;
    moe_layers.insert(layer_of(tensor->name));
    if (!is_scale(tensor->name)) result.expert_formats.insert(format_of(checkpoint, *tensor));
  }
  result.moe_layers = static_cast<int64_t>(moe_layers.size());
  return result;
}

}  // namespace sluice
