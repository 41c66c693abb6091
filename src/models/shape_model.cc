// Operations with declared costs in the order of a real layer.
#include "models/shape_model.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/random.h"

namespace sluice {
namespace {

constexpr uint64_t kRouteSeed = 36;

class ShapeModel final : public Model {
 public:
  ShapeModel(Device& device, const ModelShape& shape, const LoadOptions& options)
      : device_(device), shape_(shape), max_rows_(options.max_rows) {
    const RowLayout layout = row_layout(WeightFormat::kNvfp4, shape.hidden, shape.intermediate);
    for (int64_t l = 0; l < shape.layers; ++l) {
      LayerRows& rows = rows_.emplace_back();
      rows.layout = layout;
      rows.experts = shape.experts;
      rows.rows = device.allocate(static_cast<size_t>(shape.experts) * layout.row_bytes, "expert rows",
                                  MemoryKind::kPinned);
      rows.scalars.assign(static_cast<size_t>(shape.experts * kScalarsPerExpert), 1.0f);
      info_.moe_layers.push_back(l);
      info_.expert_bytes += rows.bytes();
    }
    mixers_ = device.allocate(static_cast<size_t>(shape.layers * shape.mixer_parameters), "dense weights");
    const RowLayout shared =
        row_layout(WeightFormat::kNvfp4, shape.hidden, std::max<int64_t>(shape.shared_intermediate, 16));
    shared_bytes_ = shape.shared_intermediate > 0 ? shared.row_bytes : 0;
    shared_ = device.allocate(static_cast<size_t>(shape.layers) * shared_bytes_, "dense weights");
    routers_ = device.allocate_array<float>(shape.layers * shape.experts * shape.hidden, "dense weights");
    head_ = device.allocate(static_cast<size_t>(shape.vocab_size * shape.hidden), "dense weights");
    const auto floats = [&](int64_t width) {
      return device.allocate_array<float>(max_rows_ * width, "workspace");
    };
    h_ = floats(shape.hidden);
    branch_ = floats(shape.hidden);
    wide_ = floats(shape.mixer_parameters / shape.hidden / 2);
    logits_ = floats(shape.experts);
    ids_ = device.allocate_array<int32_t>(max_rows_ * shape.top_k, "workspace");
    weights_ = floats(shape.top_k);
    activations_ = floats(shape.top_k * shape.intermediate);
    outputs_ = floats(shape.top_k * shape.hidden);
    fill_info(options.compute);
  }

  const ModelInfo& info() const override { return info_; }
  int64_t max_rows() const override { return max_rows_; }
  std::span<const LayerRows> expert_rows() const override { return rows_; }
  std::unique_ptr<BatchMemory> make_batch_memory(BatchUse use, int64_t rows) const override {
    return std::make_unique<BatchMemory>(device_, use, rows, shape_.hidden, shape_.head_dim / 2,
                                         shape_.top_k);
  }

  void embed(Stream& stream, Batch& b) override {
    launch(stream, "embedding", {range_of(b.ids(), b.rows)}, {range_of(b.x(), b.rows * shape_.hidden)});
  }

  std::optional<MoeBlock> layer_to_experts(Stream& stream, int64_t l, Batch& b, MoeExecutor&) override {
    const ModelShape& s = shape_;
    const int64_t values = b.rows * s.hidden;
    const ByteRange x = range_of(b.x(), values), branch = range_of(branch_.as<float>(), values);
    float* h = b.moe_x() != nullptr ? b.moe_x() : h_.as<float>();
    const ByteRange input = range_of(h, values);
    launch(stream, "norm", {x}, {input});
    mix(stream, l, b, input, branch);
    launch(stream, "add", {x, branch}, {x});
    launch(stream, "norm", {x}, {input});
    if (shared_bytes_ > 0) {
      launch(stream, "shared expert", {input, part(shared_, l, shared_bytes_)}, {branch},
             6 * values * s.shared_intermediate);
    }
    return route(stream, l, b, h);
  }

  void layer_from_experts(Stream& stream, Batch& b, const MoeBlock& block) override {
    const ByteRange x = range_of(b.x(), b.rows * shape_.hidden);
    launch(stream, "add", {x, range_of(block.y, b.rows * shape_.hidden)}, {x});
  }

  void logits(Stream& stream, const Batch& b, int64_t rows, float* logits) override {
    const float* last = b.x() + (b.rows - rows) * shape_.hidden;
    launch(stream, "head", {range_of(last, rows * shape_.hidden), {head_.data(), head_.bytes()}},
           {range_of(logits, rows * shape_.vocab_size)}, 2 * rows * shape_.hidden * shape_.vocab_size);
  }

 private:
  static void launch(Stream& stream, const char* name, std::initializer_list<ByteRange> reads,
                     std::initializer_list<ByteRange> writes, int64_t flops = 0) {
    stream.launch({.name = name, .reads = reads, .writes = writes, .flops = static_cast<uint64_t>(flops)},
                  [](const HostContext&) {});
  }
  static ByteRange part(const Buffer& buffer, int64_t index, size_t bytes) {
    return {buffer.as<std::byte>() + static_cast<size_t>(index) * bytes, bytes};
  }

  /// Projections in, attention over what is cached (or a recurrence, whose cost is its projections'), and
  /// out.
  void mix(Stream& stream, int64_t l, const Batch& b, ByteRange input, ByteRange branch) {
    const ModelShape& s = shape_;
    const ByteRange weights = part(mixers_, l, static_cast<size_t>(s.mixer_parameters));
    const size_t in = weights.bytes / 4 * 3;
    const ByteRange wide = range_of(wide_.as<float>(), b.rows * (s.mixer_parameters / s.hidden / 2));
    const int64_t flops = 2 * b.rows * s.mixer_parameters;
    launch(stream, "projections in", {input, {weights.begin, in}}, {wide}, flops / 4 * 3);
    if ((l + 1) % s.attention_every == 0) {
      const KvLayer kv = b.cache->layer(l / s.attention_every);
      const int64_t tokens = b.first_position + b.rows;
      const auto cached = static_cast<size_t>(tokens * s.kv_heads * s.head_dim * element_bytes(kv.format));
      launch(stream, "attention", {wide, {kv.keys, cached}, {kv.values, cached}}, {wide},
             4 * b.rows * (b.first_position + b.rows / 2 + 1) * s.heads * s.head_dim);
    } else {
      launch(stream, "recurrence", {wide}, {wide});
    }
    const auto* begin = static_cast<const std::byte*>(weights.begin);
    launch(stream, "projection out", {wide, {begin + in, weights.bytes - in}}, {branch}, flops / 4);
  }

  MoeBlock route(Stream& stream, int64_t l, const Batch& b, float* h) {
    const ModelShape& s = shape_;
    const bool own = b.moe_x() != nullptr;
    int32_t* ids = own ? b.expert_ids() : ids_.as<int32_t>();
    float* weights = own ? b.expert_weights() : weights_.as<float>();
    const ByteRange logits = range_of(logits_.as<float>(), b.rows * s.experts);
    launch(stream, "router",
           {range_of(h, b.rows * s.hidden),
            part(routers_, l, static_cast<size_t>(s.experts * s.hidden) * sizeof(float))},
           {logits}, 2 * b.rows * s.hidden * s.experts);
    const int64_t n = b.rows * s.top_k;
    stream.launch(
        {.name = "drawn routes", .reads = {logits}, .writes = {range_of(ids, n), range_of(weights, n)}},
        [=, rows = b.rows, first = b.first_position, experts = s.experts, k = s.top_k](const HostContext&) {
          for (int64_t r = 0; r < rows; ++r) draw(l, first + r, experts, k, ids + r * k);
          std::fill_n(weights, n, 1.0f / static_cast<float>(k));
        });
    MoeBlock block;
    block.input.layer = l;
    block.input.x = h;
    block.input.routes = {ids, weights, b.rows, s.top_k};
    block.input.activations = activations_.as<float>();
    block.input.outputs = b.outputs() != nullptr ? b.outputs() : outputs_.as<float>();
    block.y = own ? b.moe_x() : branch_.as<float>();
    return block;
  }

  /// k different experts of `experts`.
  static void draw(int64_t layer, int64_t position, int64_t experts, int64_t k, int32_t* ids) {
    uint64_t index = static_cast<uint64_t>(position) * 1024;
    for (int64_t i = 0; i < k;) {
      const double number = uniform(kRouteSeed, index++, static_cast<uint32_t>(layer));
      const auto id = static_cast<int32_t>(number * static_cast<double>(experts));
      if (std::find(ids, ids + i, id) == ids + i) ids[i++] = id;
    }
  }

  void fill_info(Compute compute) {
    info_.family = shape_.name;
    info_.vocab_size = shape_.vocab_size;
    info_.layers = shape_.layers;
    info_.hidden = shape_.hidden;
    info_.max_positions = 1 << 17;
    info_.experts = shape_.experts;
    info_.top_k = shape_.top_k;
    info_.expert_format = name_of(WeightFormat::kNvfp4);
    info_.dense_bytes = mixers_.bytes() + shared_.bytes() + routers_.bytes() + head_.bytes();
    info_.kv = {shape_.layers / shape_.attention_every, shape_.kv_heads, shape_.head_dim, kv_format(compute)};
  }

  Device& device_;
  const ModelShape shape_;
  const int64_t max_rows_;
  std::vector<LayerRows> rows_;
  size_t shared_bytes_ = 0;
  Buffer mixers_, shared_, routers_, head_;
  Buffer h_, branch_, wide_, logits_, ids_, weights_, activations_, outputs_;
  ModelInfo info_;
};

std::vector<ModelShape> make_shapes() {
  return {
      {"q36",
       "40 layers of 256 experts, 8 a token and one shared, rows of 1.77 MB (Qwen3.6-35B-A3B in NVFP4)", 40,
       2048, 248320, 256, 8, 512, 512, 32 << 20, 4, 16, 2, 256},
      {"q30", "48 layers of 128 experts, 8 a token, rows of 2.65 MB (Qwen3-30B-A3B in NVFP4)", 48, 2048,
       151936, 128, 8, 768, 0, 18 << 20, 1, 32, 4, 128},
  };
}

}  // namespace

std::span<const ModelShape> model_shapes() {
  static const std::vector<ModelShape> shapes = make_shapes();
  return shapes;
}

const ModelShape& model_shape(std::string_view name) {
  std::string names;
  for (const ModelShape& shape : model_shapes()) {
    if (shape.name == name) return shape;
    names += (names.empty() ? "" : ", ") + shape.name;
  }
  throw Error(ErrorCode::kNotFound, "no shape '" + std::string(name) + "'; known are " + names);
}

std::unique_ptr<Model> make_shape_model(Device& device, const ModelShape& shape, const LoadOptions& options) {
  return std::make_unique<ShapeModel>(device, shape, options);
}

bool runs_for_shape(const QueuedOp& op) {
  static constexpr std::array<std::string_view, 10> kWeightsOnly = {
      "expert_products", "expert_sums",        "stream experts", "measure link", "gather misses",
      "gather touched",  "gather predictions", "adopt experts",  "gather hits",  "logits"};
  return std::find(kWeightsOnly.begin(), kWeightsOnly.end(), op.name) == kWeightsOnly.end();
}

}  // namespace sluice
