// Planning the files of a converted checkpoint.
#include "checkpoint/convert_plan.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <tuple>

#include "base/error.h"

namespace sluice {
namespace {

bool drop_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

bool ends_with_one_of(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return text.ends_with(end); });
}

bool is_plain_matrix(const Tensor& tensor) {
  const DType type = tensor.dtype;
  return (type == DType::kBf16 || type == DType::kF16 || type == DType::kF32) && tensor.shape.size() == 2;
}

void check_quantisable(const Tensor& tensor, WeightFormat format) {
  const int64_t multiple = column_multiple(format);
  if (is_plain_matrix(tensor) && tensor.shape[1] % multiple == 0) return;
  throw Error(ErrorCode::kUnsupported,
              tensor.file + ": tensor '" + tensor.name + "' is " + std::string(name_of(tensor.dtype)) + " " +
                  format_shape(tensor.shape) + "; to become " + std::string(name_of(format)) +
                  " it must be BF16, F16 or F32 with two dimensions" +
                  (multiple > 1 ? ", the last a multiple of " + std::to_string(multiple) : ""));
}

std::vector<TensorSpec> outputs_of(const Tensor& tensor, bool quantise, WeightFormat format) {
  if (!quantise) return {TensorSpec{tensor.name, tensor.dtype, tensor.shape}};
  const int64_t n = tensor.shape[0], k = tensor.shape[1];
  if (format == WeightFormat::kFp8Block) {
    const auto blocks = [](int64_t size) { return (size + kFp8BlockSize - 1) / kFp8BlockSize; };
    return {TensorSpec{tensor.name, DType::kF8E4m3, {n, k}},
            TensorSpec{tensor.name + "_scale_inv", DType::kF32, {blocks(n), blocks(k)}}};
  }
  return {TensorSpec{tensor.name, DType::kU8, {n, k / 2}},
          TensorSpec{tensor.name + "_scale", DType::kF8E4m3, {n, k / kNvfp4Group}},
          TensorSpec{tensor.name + "_scale_2", DType::kF32, {}}};
}

// Larger elements first, then by name: every tensor is aligned to its element, as the reference writes files.
void sort_specs(ConvertShard& shard) {
  std::vector<size_t> order(shard.specs.size()), place(shard.specs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const TensorSpec &x = shard.specs[a], &y = shard.specs[b];
    return std::tuple(size_of(y.dtype), std::string_view(x.name)) <
           std::tuple(size_of(x.dtype), std::string_view(y.name));
  });
  std::vector<TensorSpec> sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(std::move(shard.specs[order[i]]));
  }
  shard.specs = std::move(sorted);
  for (ConvertJob& job : shard.jobs) {
    for (size_t& output : job.outputs) output = place[output];
  }
}

void name_shards(std::vector<ConvertShard>& shards) {
  if (shards.size() == 1) {
    shards[0].file = "model.safetensors";
    return;
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    std::array<char, 64> name;
    std::snprintf(name.data(), name.size(), "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    shards[i].file = name.data();
  }
}

}  // namespace

bool is_expert_weight(std::string_view name) {
  const auto drop_one_of = [&](std::initializer_list<std::string_view> ends) {
    return std::any_of(ends.begin(), ends.end(),
                       [&](std::string_view end) { return drop_suffix(name, end); });
  };
  const bool mixtral = drop_one_of({".w1.weight", ".w2.weight", ".w3.weight"});
  if (!mixtral && !drop_one_of({".gate_proj.weight", ".up_proj.weight", ".down_proj.weight"})) return false;
  const std::string_view all = name;
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name.size() < all.size() && name.ends_with(mixtral ? ".block_sparse_moe.experts." : ".mlp.experts.");
}

bool is_dense_projection(std::string_view name) {
  for (const std::string_view part : {"visual", "vision", ".experts."}) {
    if (name.find(part) != std::string_view::npos) return false;
  }
  if (name.find("layers.") == std::string_view::npos || !drop_suffix(name, ".weight")) return false;
  if (name.find(".linear_attn.") != std::string_view::npos) {
    return ends_with_one_of(name, {".in_proj_qkv", ".in_proj_z", ".out_proj"});
  }
  return ends_with_one_of(
      name, {".q_proj", ".k_proj", ".v_proj", ".o_proj", ".q_a_proj", ".q_b_proj", ".kv_a_proj_with_mqa",
             ".kv_b_proj", ".gate_proj", ".up_proj", ".down_proj"});
}

bool is_quantised(const Tensor& tensor, WeightFormat format) {
  if (is_expert_weight(tensor.name)) return true;
  return format == WeightFormat::kFp8Block && is_dense_projection(tensor.name) && is_plain_matrix(tensor);
}

uint64_t ConvertShard::bytes() const {
  return std::accumulate(specs.begin(), specs.end(), uint64_t{0},
                         [](uint64_t sum, const TensorSpec& spec) { return sum + spec.bytes(); });
}

uint64_t ConvertShard::source_bytes() const {
  return std::accumulate(jobs.begin(), jobs.end(), uint64_t{0},
                         [](uint64_t sum, const ConvertJob& job) { return sum + job.source->bytes.size(); });
}

std::vector<ConvertShard> plan_conversion(const Checkpoint& checkpoint, WeightFormat format,
                                          uint64_t max_shard_bytes) {
  std::vector<ConvertShard> shards;
  uint64_t shard_bytes = 0;
  for (const Tensor* tensor : checkpoint.tensors()) {
    const bool quantise = is_quantised(*tensor, format);
    if (quantise) check_quantisable(*tensor, format);
    const std::vector<TensorSpec> outputs = outputs_of(*tensor, quantise, format);
    uint64_t bytes = 0;
    for (const TensorSpec& spec : outputs) bytes += spec.bytes();
    if (shards.empty() || (shard_bytes > 0 && shard_bytes + bytes > max_shard_bytes)) {
      shards.emplace_back();
      shard_bytes = 0;
    }
    ConvertShard& shard = shards.back();
    ConvertJob& job = shard.jobs.emplace_back(ConvertJob{tensor, quantise, {}});
    for (const TensorSpec& spec : outputs) {
      job.outputs.push_back(shard.specs.size());
      shard.specs.push_back(spec);
    }
    shard_bytes += bytes;
  }
  for (ConvertShard& shard : shards) sort_specs(shard);
  name_shards(shards);
  return shards;
}

}  // namespace sluice
