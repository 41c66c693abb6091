// Scripted inputs, expected outputs, and a stream that gives up.
#include "experts/moe_harness.h"

#include <cstring>
#include <map>
#include <stdexcept>
#include <tuple>

#include "base/random.h"
#include "experts/direct_executor.h"
#include "experts/explore_scenarios.h"

namespace sluice {
namespace {

constexpr uint64_t kSeed = 20;
constexpr int64_t kWindowNumbers = kMostRows * (kHidden + kTopK + kExperts);

float small_number(uint64_t index, uint32_t stream) {
  return static_cast<float>(uniform(kSeed, index, stream) - 0.5);
}

Device& inline_device() {
  static const std::unique_ptr<Device> device = make_host_device(1);
  return *device;
}

std::vector<LayerRows> make_rows(bool staged) {
  std::vector<LayerRows> result;
  for (int64_t l = 0; l < kLayers; ++l) {
    LayerRows layer;
    layer.layout = row_layout(WeightFormat::kBf16, kHidden, kInner);
    layer.experts = kExperts;
    layer.staged = staged && l > 0;
    layer.rows = inline_device().allocate(kExperts * layer.layout.row_bytes, "expert rows");
    layer.scalars.assign(kExperts * kScalarsPerExpert, 1.0f);
    auto* codes = layer.rows.as<uint16_t>();
    for (size_t i = 0; i < layer.rows.bytes() / sizeof(uint16_t); ++i) {
      const float value = small_number(i, static_cast<uint32_t>(100 + l));
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      codes[i] = static_cast<uint16_t>(bits >> 16);
    }
    result.push_back(std::move(layer));
  }
  return result;
}

// Neighbouring batches, layers and rows share some experts and change others.
int32_t routed_expert(int number, int64_t layer, int64_t row, int64_t rank) {
  const int64_t first = (number * 2 + layer * 3 + row * (1 + number % 2)) % kExperts;
  return static_cast<int32_t>((first + rank * (1 + (number + layer + row) % 3)) % kExperts);
}

LayerInput make_input(const Batch& batch, int64_t layer) {
  LayerInput input;
  const auto stream = static_cast<uint32_t>(batch.number * 10 + static_cast<int>(layer));
  for (int64_t i = 0; i < batch.rows * kHidden; ++i) {
    input.numbers.push_back(small_number(static_cast<uint64_t>(i), stream));
  }
  for (int64_t i = 0; i < batch.rows * kTopK; ++i) {
    input.numbers.push_back(0.25f + static_cast<float>(i % 3) * 0.25f);
  }
  for (int64_t r = 0; r < batch.rows; ++r) {
    // One prediction is right, the other one often wrong.
    std::vector<float> logits(kExperts);
    logits[static_cast<size_t>(routed_expert(batch.number, layer + 1, r, 0))] = 2;
    logits[static_cast<size_t>((batch.number * 3 + layer + r) % kExperts)] += 1;
    input.numbers.insert(input.numbers.end(), logits.begin(), logits.end());
  }
  for (int64_t r = 0; r < batch.rows; ++r) {
    for (int64_t i = 0; i < kTopK; ++i) {
      const bool padding = batch.padded && r + 1 == batch.rows;
      input.ids.push_back(padding ? -1 : routed_expert(batch.number, layer, r, i));
    }
  }
  return input;
}

using Key = std::tuple<int, int64_t, bool, int64_t>;
Key key(const Batch& batch, int64_t layer) { return {batch.number, batch.rows, batch.padded, layer}; }

class GivenUp : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Hands everything on to another stream until it throws at its n-th wait.
class GivingUpStream final : public Stream {
 public:
  GivingUpStream(Stream& inner, int wait) : inner_(inner), waits_left_(wait) {}
  Backend backend() const override { return inner_.backend(); }
  void record(Event& event) override { inner_.record(event); }
  void wait(const Event& event) override {
    if (--waits_left_ == 0) throw GivenUp("the layer was given up");
    inner_.wait(event);
  }

 protected:
  const HostContext* inline_context() const override { return nullptr; }
  void enqueue(QueuedOp op) override {
    if (op.is_copy) return inner_.copy_batch(op.name, op.entries);
    const auto ranges = [reads = op.reads, writes = op.writes, more = op.data_ranges](RangeSink& sink) {
      for (const ByteRange& range : reads) sink.reads(range);
      for (const ByteRange& range : writes) sink.writes(range);
      if (more) more(sink);
    };
    inner_.launch({.name = op.name, .flops = op.flops}, ranges, op.body);
  }

 private:
  Stream& inner_;
  int waits_left_;
};

void expect_given_up(const std::function<void()>& call) {
  try {
    call();
  } catch (const GivenUp&) {
    return;
  }
  throw std::logic_error("the layer has too few waits to be given up");
}

ExpertShape shape_of(int64_t layers) {
  return {.layers = layers, .experts = kExperts, .top_k = kTopK, .decode_rows = 1};
}

}  // namespace

std::span<const LayerRows> shared_rows(bool staged) {
  static const std::vector<LayerRows> locked_rows = make_rows(false), staged_rows = make_rows(true);
  return staged ? staged_rows : locked_rows;
}

const LayerInput& input_of(const Batch& batch, int64_t layer) {
  static std::map<Key, LayerInput> made;
  auto at = made.find(key(batch, layer));
  if (at == made.end()) at = made.emplace(key(batch, layer), make_input(batch, layer)).first;
  return at->second;
}

const std::vector<float>& expected_output(const Batch& batch, int64_t layer) {
  static std::map<Key, std::vector<float>> made;
  const auto at = made.find(key(batch, layer));
  if (at != made.end()) return at->second;
  const LayerInput& in = input_of(batch, layer);
  const auto pairs = static_cast<size_t>(batch.rows * kTopK);
  std::vector<float> activations(pairs * kInner), outputs(pairs * kHidden);
  std::vector<float> y(static_cast<size_t>(batch.rows * kHidden));
  DirectExecutor direct(shared_rows());
  const auto stream = inline_device().make_stream();
  MoeInput input;
  input.layer = layer;
  input.x = in.numbers.data();
  input.routes = {in.ids.data(), in.numbers.data() + batch.rows * kHidden, batch.rows, kTopK};
  input.activations = activations.data();
  input.outputs = outputs.data();
  direct.run(*stream, input, y.data());
  return made.emplace(key(batch, layer), std::move(y)).first->second;
}

MoeHarness::MoeHarness(ExploredDevice& device, const ExpertSettings& settings, int64_t layers, bool staged)
    : device_(device),
      compute_(device.make_stream()),
      result_(device.make_event(kResultEvent)),
      numbers_(device.allocate_array<float>((kMostChunks + 1) * kWindowNumbers, "inputs")),
      ids_(device.allocate_array<int32_t>((kMostChunks + 1) * kMostRows * kTopK, "routes")),
      outputs_(device.allocate_array<float>((kMostChunks + 1) * kMostRows * kTopK * kHidden, "outputs")),
      activations_(device.allocate_array<float>(kMostRows * kTopK * kInner, "activations")),
      y_(device.allocate_array<float>(kMostRows * kHidden, "y")),
      next_logits_(device.allocate_array<float>(kMostRows * kExperts, "next logits")),
      layers_(layers),
      experts_(device, *compute_, shared_rows(staged).first(static_cast<size_t>(layers)), shape_of(layers),
               settings, kMostRows) {}

MoeInput MoeHarness::upload(const Batch& batch, int64_t layer, int64_t window) {
  const LayerInput& in = input_of(batch, layer);
  auto* numbers = numbers_.as<float>() + window * kWindowNumbers;
  auto* ids = ids_.as<int32_t>() + window * kMostRows * kTopK;
  compute_->copy("inputs", numbers, in.numbers.data(), in.numbers.size() * sizeof(float));
  compute_->copy("routes", ids, in.ids.data(), in.ids.size() * sizeof(int32_t));
  MoeInput input;
  input.layer = layer;
  input.x = numbers;
  input.routes = {ids, numbers + batch.rows * kHidden, batch.rows, kTopK};
  if (experts_.wants_lookahead() && layer + 1 < layers_) {
    input.next_logits = next_router(numbers + batch.rows * (kHidden + kTopK), batch.rows * kExperts);
  }
  input.activations = activations_.as<float>();
  // Chunks of a group have outputs of their own only where they need them.
  const int64_t own = window == kMostChunks || experts_.splits_layers() ? window : 0;
  input.outputs = outputs_.as<float>() + own * kMostRows * kTopK * kHidden;
  return input;
}

const float* MoeHarness::next_router(const float* input, int64_t n) {
  Stream& side = experts_.fork_lookahead(*compute_);
  if (&side == compute_.get()) return input;  // came with this layer's routes
  float* logits = next_logits_.as<float>();
  side.launch(
      {.name = "next router", .reads = {range_of(input, n)}, .writes = {range_of(logits, n)}},
      [=](const HostContext&) { std::memcpy(logits, input, static_cast<size_t>(n) * sizeof(float)); });
  return logits;
}

void MoeHarness::keep_output(const Batch& batch, int64_t layer, const float* y) {
  results_.push_back(std::make_unique<Output>(Output{batch, layer, {}}));
  std::vector<float>& kept = results_.back()->y;
  kept.resize(static_cast<size_t>(batch.rows * kHidden));
  compute_->copy("output", kept.data(), y, kept.size() * sizeof(float));
}

void MoeHarness::layers(const Batch& batch, int64_t from, int64_t to) {
  for (int64_t layer = from; layer < to; ++layer) {
    experts_.run(*compute_, upload(batch, layer), y_.as<float>());
    keep_output(batch, layer, y_.as<float>());
  }
}

void MoeHarness::begin_group(const std::vector<Batch>& chunks) {
  int64_t rows = 0;
  for (const Batch& chunk : chunks) rows += chunk.rows;
  experts_.begin_prefill(rows, chunks.front().rows);
}

void MoeHarness::group_layer(Stream& stream, const std::vector<Batch>& chunks, int64_t layer,
                             const std::function<void(int64_t)>& between) {
  std::vector<MoeBlock> blocks;
  for (size_t c = 0; c < chunks.size(); ++c) {
    if (c > 0 && between) between(layer);
    const MoeInput input = upload(chunks[c], layer, static_cast<int64_t>(c));
    // The sums take the place of the inputs, as in a model.
    blocks.push_back({input, numbers_.as<float>() + static_cast<int64_t>(c) * kWindowNumbers});
  }
  experts_.run_blocks(stream, blocks);
  for (size_t c = 0; c < chunks.size(); ++c) keep_output(chunks[c], layer, blocks[c].y);
}

void MoeHarness::prefill_group(const std::vector<Batch>& chunks,
                               const std::function<void(int64_t)>& between) {
  begin_group(chunks);
  for (int64_t layer = 0; layer < layers_; ++layer) {
    if (layer > 0 && between) between(layer);
    group_layer(*compute_, chunks, layer, between);
  }
  experts_.end_prefill();
}

void MoeHarness::give_up_group_inside(const std::vector<Batch>& chunks, int64_t layer, int wait) {
  begin_group(chunks);
  for (int64_t l = 0; l < layer; ++l) group_layer(*compute_, chunks, l, {});
  GivingUpStream stream(*compute_, wait);
  expect_given_up([&] { group_layer(stream, chunks, layer, {}); });
  experts_.give_up_prefill();
}

void MoeHarness::decode(const Batch& batch) {
  experts_.begin_decode(batch.rows);
  layers(batch, 0, layers_);
  experts_.end_decode();
}

void MoeHarness::prefill(const Batch& batch, const std::function<void(int64_t)>& between) {
  experts_.begin_prefill(batch.rows);
  for (int64_t layer = 0; layer < layers_; ++layer) {
    if (layer > 0 && between) between(layer);
    layers(batch, layer, layer + 1);
  }
  experts_.end_prefill();
}

void MoeHarness::fail_inside(const Batch& batch, int64_t layer, int wait) {
  layers(batch, 0, layer);
  GivingUpStream stream(*compute_, wait);
  expect_given_up([&] { experts_.run(stream, upload(batch, layer), y_.as<float>()); });
}

void MoeHarness::give_up_inside(const Batch& batch, int64_t layer, int wait) {
  experts_.begin_prefill(batch.rows);
  fail_inside(batch, layer, wait);
  experts_.give_up_prefill();
}

void MoeHarness::give_up_decode(const Batch& batch, int64_t layer) {
  experts_.begin_decode(batch.rows);
  fail_inside(batch, layer, 1);
  experts_.give_up_decode();
}

void MoeHarness::finish() {
  experts_.queue_checks();
  compute_->record(*result_);
  device_.wait(*result_, "result");
  experts_.check();
  for (const auto& result : results_) {
    const std::vector<float>& expected = expected_output(result->batch, result->layer);
    if (std::memcmp(result->y.data(), expected.data(), expected.size() * sizeof(float)) == 0) continue;
    return device_.fail("batch " + std::to_string(result->batch.number) + ", MoE layer " +
                        std::to_string(result->layer) + ": the outputs are wrong");
  }
}

}  // namespace sluice
