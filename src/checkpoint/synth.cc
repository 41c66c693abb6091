// Random weights: one block of noise for each type of number, and tensors that are windows of it.
#include "checkpoint/synth.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/scalar.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "checkpoint/safetensors_writer.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxShardBytes = 5'000'000'000;
constexpr size_t kSlack = size_t{64} << 20;  // so far apart do windows of one block begin, at most
constexpr size_t kPeriod =
    (size_t{16} << 20) - 4096;  // noise repeats after so many bytes, at no expert's size

/// What a tensor's numbers are.
enum class Noise { kWeights, kOnes, kE4m3, kE2m1, kE4m3Scales, kE8m0Scales, kBlockScales, kGlobal };

struct Spec {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  Noise noise;
  uint64_t bytes() const { return TensorSpec{name, dtype, shape}.bytes(); }
};

/// All tensors of a shape, in the order of its layers.
class Specs {
 public:
  explicit Specs(const SynthShape& s) : shape_(s) {
    bf16("model.embed_tokens.weight", {s.vocab_size, s.hidden});
    for (int64_t l = 0; l < s.layers; ++l) layer("model.layers." + std::to_string(l) + ".");
    ones("model.norm.weight", s.hidden);
    bf16("lm_head.weight", {s.vocab_size, s.hidden});
  }
  std::vector<Spec> take() { return std::move(specs_); }

 private:
  void bf16(const std::string& name, std::vector<int64_t> shape) {
    specs_.push_back({name, DType::kBf16, std::move(shape), Noise::kWeights});
  }
  void ones(const std::string& name, int64_t n) { specs_.push_back({name, DType::kBf16, {n}, Noise::kOnes}); }

  void layer(const std::string& name) {
    const SynthShape& s = shape_;
    ones(name + "input_layernorm.weight", s.hidden);
    ones(name + "post_attention_layernorm.weight", s.hidden);
    bf16(name + "self_attn.q_proj.weight", {s.heads * s.head_dim, s.hidden});
    bf16(name + "self_attn.k_proj.weight", {s.kv_heads * s.head_dim, s.hidden});
    bf16(name + "self_attn.v_proj.weight", {s.kv_heads * s.head_dim, s.hidden});
    bf16(name + "self_attn.o_proj.weight", {s.hidden, s.heads * s.head_dim});
    bf16(name + "mlp.gate.weight", {s.experts, s.hidden});
    if (s.shared_intermediate > 0) {
      bf16(name + "mlp.shared_expert.gate_proj.weight", {s.shared_intermediate, s.hidden});
      bf16(name + "mlp.shared_expert.up_proj.weight", {s.shared_intermediate, s.hidden});
      bf16(name + "mlp.shared_expert.down_proj.weight", {s.hidden, s.shared_intermediate});
      bf16(name + "mlp.shared_expert_gate.weight", {1, s.hidden});
    } else {
      ones(name + "self_attn.q_norm.weight", s.head_dim);
      ones(name + "self_attn.k_norm.weight", s.head_dim);
    }
    for (int64_t e = 0; e < s.experts; ++e) {
      const std::string expert = name + "mlp.experts." + std::to_string(e) + ".";
      matrix(expert + "gate_proj", s.intermediate, s.hidden);
      matrix(expert + "up_proj", s.intermediate, s.hidden);
      matrix(expert + "down_proj", s.hidden, s.intermediate);
    }
  }

  void matrix(const std::string& name, int64_t n, int64_t k) {
    const auto blocks = [](int64_t size) { return (size + kFp8BlockSize - 1) / kFp8BlockSize; };
    switch (shape_.format) {
      case WeightFormat::kFp8Block:
        specs_.push_back({name + ".weight", DType::kF8E4m3, {n, k}, Noise::kE4m3});
        specs_.push_back(
            {name + ".weight_scale_inv", DType::kF32, {blocks(n), blocks(k)}, Noise::kBlockScales});
        return;
      case WeightFormat::kNvfp4:
        specs_.push_back({name + ".weight", DType::kU8, {n, k / 2}, Noise::kE2m1});
        specs_.push_back({name + ".weight_scale", DType::kF8E4m3, {n, k / kNvfp4Group}, Noise::kE4m3Scales});
        specs_.push_back({name + ".weight_scale_2", DType::kF32, {}, Noise::kGlobal});
        return;
      case WeightFormat::kMxfp4:
        specs_.push_back({name + ".weight", DType::kU8, {n, k / 2}, Noise::kE2m1});
        specs_.push_back({name + ".weight_scale", DType::kU8, {n, k / kMxfp4Group}, Noise::kE8m0Scales});
        return;
      default:
        return bf16(name + ".weight", {n, k});
    }
  }

  const SynthShape& shape_;
  std::vector<Spec> specs_;
};

/// Fills `block` with noise of the kind that `draw(words, out)` makes of four random words, 16 bytes at a
/// time.
template <class Draw>
void fill(std::span<std::byte> block, uint64_t seed, ThreadPool& pool, const Draw& draw) {
  const size_t period = std::min(block.size(), kPeriod);
  pool.parallel_for(static_cast<int64_t>(period / 16), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      draw(philox(seed, {static_cast<uint32_t>(i), 0, 0, 0}), block.data() + 16 * i);
    }
  });
  for (size_t at = period; at < block.size(); at += period) {
    std::memcpy(block.data() + at, block.data(), std::min(period, block.size() - at));
  }
}

template <class T>
T at(const std::array<uint32_t, 4>& words, size_t i) {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(words.data()) + i * sizeof(T), sizeof(T));
  return value;
}

/// Values whose products with inputs of variance 1 have variance 1: uniform with variance 1 / hidden.
class NoiseBlocks {
 public:
  NoiseBlocks(const SynthShape& shape, const std::vector<Spec>& specs, uint64_t seed)
      : seed_(seed), deviation_(1 / std::sqrt(static_cast<double>(shape.hidden))) {
    std::map<Noise, size_t> largest;
    for (const Spec& spec : specs) {
      size_t& bytes = largest[spec.noise];
      bytes = std::max<size_t>(bytes, spec.bytes());
    }
    ThreadPool pool;
    for (const auto& [noise, bytes] : largest) {
      // Small tables are the same everywhere: only weights are worth telling apart.
      const bool windows = noise == Noise::kWeights || noise == Noise::kE4m3 || noise == Noise::kE2m1;
      std::vector<std::byte>& block = blocks_[noise];
      block.resize((bytes + (windows ? std::min(kSlack, 8 * bytes) : 0) + 15) / 16 * 16);
      make(noise, block, pool);
    }
  }

  std::span<const std::byte> window(const Spec& spec) const {
    const std::vector<std::byte>& block = blocks_.at(spec.noise);
    const uint64_t room = (block.size() - spec.bytes()) / 16 + 1;
    const uint64_t place = fnv1a(std::as_bytes(std::span(spec.name))) % room;
    return std::span(block).subspan(16 * place, spec.bytes());
  }

 private:
  void make(Noise noise, std::span<std::byte> block, ThreadPool& pool) const {
    const auto spread = static_cast<float>(deviation_ * std::sqrt(3.0));
    const auto repeat = [&](auto value) {
      for (size_t i = 0; i < block.size(); i += sizeof(value)) std::memcpy(&block[i], &value, sizeof(value));
    };
    const auto uniform_of = [](uint16_t word) { return static_cast<float>(word) / 32767.5f - 1; };
    switch (noise) {
      case Noise::kWeights:
        return fill(block, seed_, pool, [=](const std::array<uint32_t, 4>& words, std::byte* out) {
          for (size_t i = 0; i < 8; ++i) {
            const uint16_t code = f32_to_bf16(spread * uniform_of(at<uint16_t>(words, i)));
            std::memcpy(out + 2 * i, &code, 2);
          }
        });
      case Noise::kE4m3:
        return fill(block, seed_, pool, [=](const std::array<uint32_t, 4>& words, std::byte* out) {
          for (size_t i = 0; i < 16; ++i) {
            const float value = static_cast<float>(at<uint8_t>(words, i)) / 127.5f - 1;
            out[i] = static_cast<std::byte>(f32_to_e4m3(kE4m3Spread * value));
          }
        });
      case Noise::kE2m1:
        return fill(block, seed_, pool, [](const std::array<uint32_t, 4>& words, std::byte* out) {
          std::memcpy(out, words.data(), 16);
        });
      case Noise::kE4m3Scales:  // 1 to 1.875
        return fill(block, seed_, pool, [](const std::array<uint32_t, 4>& words, std::byte* out) {
          for (size_t i = 0; i < 16; ++i) out[i] = static_cast<std::byte>(0x38 | (at<uint8_t>(words, i) & 7));
        });
      case Noise::kOnes:
        return repeat(f32_to_bf16(1));
      case Noise::kE8m0Scales:
        return repeat(static_cast<uint8_t>(127 + std::lround(std::log2(deviation_ / kE2m1Deviation))));
      case Noise::kBlockScales:
        return repeat(spread / kE4m3Spread);
      case Noise::kGlobal:
        return repeat(static_cast<float>(deviation_ / (kE2m1Deviation * kMeanScale)));
    }
  }

  static constexpr float kE4m3Spread = 240;
  static constexpr double kE2m1Deviation = 2.926;  // root of the mean square of all codes
  static constexpr double kMeanScale = 1.47;       // likewise of 1, 1.125, ... 1.875

  uint64_t seed_;
  double deviation_;
  std::map<Noise, std::vector<std::byte>> blocks_;
};

void check_shape(const SynthShape& s) {
  const int64_t multiple = column_multiple(s.format);
  for (const int64_t k : {s.hidden, s.intermediate}) {
    if (k % multiple == 0) continue;
    throw Error(ErrorCode::kInvalidArgument, std::string(name_of(s.format)) +
                                                 " needs widths that are multiples of " +
                                                 std::to_string(multiple) + ", not " + std::to_string(k));
  }
  if (s.top_k > s.experts || s.heads % s.kv_heads != 0 || s.head_dim % 2 != 0) {
    throw Error(ErrorCode::kInvalidArgument, "the sizes of the shape '" + s.name + "' contradict each other");
  }
}

std::string config_of(const SynthShape& s) {
  const bool shared = s.shared_intermediate > 0;
  nlohmann::ordered_json config = {
      {"architectures", {shared ? "Qwen2MoeForCausalLM" : "Qwen3MoeForCausalLM"}},
      {"model_type", shared ? "qwen2_moe" : "qwen3_moe"},
      {"hidden_size", s.hidden},
      {"num_hidden_layers", s.layers},
      {"num_attention_heads", s.heads},
      {"num_key_value_heads", s.kv_heads},
      {"head_dim", s.head_dim},
      {"num_experts", s.experts},
      {"num_experts_per_tok", s.top_k},
      {"moe_intermediate_size", s.intermediate},
      {"intermediate_size", s.intermediate},
      {"decoder_sparse_step", 1},
      {"norm_topk_prob", true},
      {"vocab_size", s.vocab_size},
      {"max_position_embeddings", 262144},
      {"rope_theta", 10000000.0},
      {"rms_norm_eps", 1e-6},
      {"hidden_act", "silu"},
      {"attention_bias", false},
      {"tie_word_embeddings", false},
      {"torch_dtype", "bfloat16"}};
  if (shared) {
    config["shared_expert_intermediate_size"] = s.shared_intermediate;
    config["qkv_bias"] = false;
  }
  return config.dump(2) + "\n";
}

/// Consecutive specs that fit into one file.
std::vector<std::span<const Spec>> shards_of(const std::vector<Spec>& specs) {
  std::vector<std::span<const Spec>> shards;
  size_t first = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (i > first && bytes + specs[i].bytes() > kMaxShardBytes) {
      shards.push_back(std::span(specs).subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += specs[i].bytes();
  }
  shards.push_back(std::span(specs).subspan(first));
  return shards;
}

std::string shard_name(size_t index, size_t count) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return name.data();
}

void check_room(const fs::path& folder, uint64_t bytes) {
  const fs::space_info space = fs::space(folder);
  if (space.available >= bytes) return;
  throw Error(ErrorCode::kIo, folder.string() + ": the checkpoint needs " + format_bytes(bytes) + ", but " +
                                  format_bytes(space.available) + " are free");
}

void write_shard(const fs::path& path, std::span<const Spec> specs, const NoiseBlocks& noise,
                 const std::function<void(uint64_t)>& wrote) {
  std::vector<TensorSpec> tensors;
  for (const Spec& spec : specs) tensors.push_back({spec.name, spec.dtype, spec.shape});
  SafetensorsWriter writer(path, tensors, {{"format", "pt"}});
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::span<const std::byte> bytes = noise.window(specs[i]);
    writer.write(i, bytes);
    wrote(bytes.size());
  }
  writer.finish();
}

void write_tensors(const SynthShape& shape, uint64_t seed, const fs::path& folder,
                   const std::function<void(uint64_t, uint64_t)>& progress) {
  const std::vector<Spec> specs = Specs(shape).take();
  const NoiseBlocks noise(shape, specs, seed);
  const std::vector<std::span<const Spec>> shards = shards_of(specs);
  const uint64_t total = synth_bytes(shape);
  uint64_t done = 0;
  nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}},
                                  {"weight_map", nlohmann::json::object()}};
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i, shards.size());
    write_shard(folder / name, shards[i], noise, [&](uint64_t bytes) {
      done += bytes;
      if (progress) progress(done, total);
    });
    for (const Spec& spec : shards[i]) index["weight_map"][spec.name] = name;
  }
  write_file_atomically(folder / "model.safetensors.index.json", index.dump(2) + "\n");
  write_file_atomically(folder / "config.json", config_of(shape));
}

}  // namespace

std::span<const SynthShape> synth_shapes() {
  static const std::vector<SynthShape> shapes = {
      {"tiny", "4 layers of 16 small experts, 4 a token and one shared, to try things out", 4, 128, 512, 4, 2,
       32, 16, 4, 64, 64},
      {"q36", "40 layers of 256 experts, 8 a token and one shared (Qwen3.6-35B-A3B's experts)", 40, 2048,
       248320, 16, 2, 256, 256, 8, 512, 512},
      {"q3-30b", "48 layers of 128 experts, 8 a token (Qwen3-30B-A3B)", 48, 2048, 151936, 32, 4, 128, 128, 8,
       768, 0},
      {"dsv4", "43 layers of 256 experts, 6 a token and one shared (DeepSeek-V4-Flash's experts)", 43, 4096,
       129280, 32, 4, 128, 256, 6, 2048, 2048},
  };
  return shapes;
}

const SynthShape& synth_shape(std::string_view name) {
  std::string names;
  for (const SynthShape& shape : synth_shapes()) {
    if (shape.name == name) return shape;
    names += (names.empty() ? "" : ", ") + shape.name;
  }
  throw Error(ErrorCode::kNotFound, "no shape '" + std::string(name) + "'; known are " + names);
}

uint64_t synth_bytes(const SynthShape& shape) {
  uint64_t bytes = 0;
  for (const Spec& spec : Specs(shape).take()) bytes += spec.bytes();
  return bytes;
}

Checkpoint make_synth(const SynthShape& shape, uint64_t seed) {
  check_shape(shape);
  const std::vector<Spec> specs = Specs(shape).take();
  const auto noise = std::make_shared<NoiseBlocks>(shape, specs, seed);
  const std::string place = "synth " + shape.name;
  std::vector<Tensor> tensors;
  for (const Spec& spec : specs) {
    tensors.push_back({spec.name, spec.dtype, spec.shape, noise->window(spec), place});
  }
  return Checkpoint::in_memory(place, Config::parse(config_of(shape), place + " config.json"),
                               std::move(tensors), noise);
}

void write_synth(const SynthShape& shape, uint64_t seed, const fs::path& folder,
                 const std::function<void(uint64_t, uint64_t)>& progress) try {
  check_shape(shape);
  if (fs::exists(folder)) {
    throw Error(ErrorCode::kInvalidArgument, folder.string() + ": exists already; choose another folder");
  }
  const fs::path partial = folder.string() + ".partial";
  fs::remove_all(partial);
  fs::create_directories(partial);
  try {
    check_room(partial, synth_bytes(shape));
    write_tensors(shape, seed, partial, progress);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(partial, ignored);
    throw;
  }
  fs::rename(partial, folder);
} catch (const fs::filesystem_error& error) {
  throw Error(ErrorCode::kIo, error.path1().string() + ": " + error.code().message());
}

}  // namespace sluice
