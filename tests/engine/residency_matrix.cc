// The matrix: its values, how they are combined, and what every run is checked for.
#include "engine/residency_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "engine/mixed_checkpoint.h"
#include "models/computing_in.h"

namespace sluice::testing {
namespace {

constexpr int64_t kTextTokens = 22;
constexpr int64_t kGreedyTokens = 5;
constexpr uint64_t kMatrixSeed = 20260;

std::filesystem::path folder_of(const std::string& name) {
  const std::filesystem::path source(SLUICE_SOURCE_DIR);
  return name == "demo" ? source / "models/demo" : source / "tests/golden" / name;
}

/// `count` times one of `values`, each equally often, in random order.
template <class T>
std::vector<T> deal(const std::vector<T>& values, size_t count, std::mt19937_64& random) {
  std::vector<T> dealt;
  for (size_t i = 0; i < count; ++i) dealt.push_back(values[i % values.size()]);
  for (size_t i = count; i > 1; --i) std::swap(dealt[i - 1], dealt[random() % i]);
  return dealt;
}

/// The n-th of the numbers of slots that are tried: the fewest, a little more (odd ones too), shares, all.
int64_t slots_of(int which, const MatrixModel& model) {
  const ExpertShape shape = expert_shape(model.model->info());
  const int64_t least = model.least_slots(), all = shape.layers * shape.experts;
  const int64_t choices[] = {least,   least + 1, least + 3, 2 * least + 5, (all / 4) | 1, all / 2,
                             all - 3, all - 1,   all};
  return std::clamp(choices[which], least, all);
}
constexpr int kSlotChoices = 9;

/// 0 lets the engine choose; else the smallest ring, one between, and the largest.
int64_t ring_of(int which, const ExpertShape& shape, int64_t slots) {
  const int64_t largest = std::min(slots, 2 * shape.experts) / 2 * 2;
  const int64_t choices[] = {0, 2, std::max<int64_t>(2, largest / 2 / 2 * 2), largest};
  return choices[which];
}
constexpr int kRingChoices = 4;

bool streams(const PassRecord& pass) {
  return pass.way == PassWay::kStream || pass.way == PassWay::kLayerMajor;
}

// Each expert that was not resident crosses once a pass, however many chunks the pass has. Layers of one row
// size alone.
uint64_t absent_bytes(const ExpertReport& report, const ExpertShape& shape) {
  uint64_t bytes = 0;
  for (const PassRecord& pass : report.passes) {
    if (!streams(pass)) continue;
    bytes += static_cast<uint64_t>(shape.layers * shape.experts - pass.resident_rows - pass.cpu_experts) *
             report.layers.front().row_bytes;
  }
  return bytes;
}

void expect_waits(const std::map<std::string, int64_t, std::less<>>& before, const Device& device,
                  const Combination& combination, const ExpertReport& report, const Run& run) {
  const auto forwards = static_cast<int64_t>(run.forwards.size());
  const auto streaming = std::count_if(report.passes.begin(), report.passes.end(), streams);
  const auto layers = static_cast<int64_t>(report.layers.size());
  std::map<std::string, int64_t> want = {{"link measurement", 1},
                                         {"logits", run.logit_reads},
                                         {"observed routes", forwards * layers},
                                         {"report", 2}};
  if (streaming > 0 && combination.settings.compare.hits != HitMode::kOff)
    want["residents of a pass"] = streaming;
  if (combination.warm) want["warm fill"] = 1;
  if (report.resizes > 0) want["resize"] = static_cast<int64_t>(report.resizes);
  std::map<std::string, int64_t> got;
  for (const auto& [why, count] : device.host_waits()) {
    const auto old = before.find(why);
    const int64_t more = count - (old == before.end() ? 0 : old->second);
    if (more != 0) got[why] = more;
  }
  EXPECT_EQ(got, want);
}

void expect_counters(const ExpertReport& report, const std::vector<ForwardUse>& forwards, CpuMode mode) {
  std::vector<uint64_t> ensured(report.layers.size()), touched(report.layers.size());
  size_t pass = 0;
  for (const ForwardUse& forward : forwards) {
    const PassWay way = forward.decode ? PassWay::kEnsure : report.passes.at(pass++).way;
    for (size_t l = 0; l < forward.distinct.size(); ++l) {
      if (way == PassWay::kEnsure) ensured[l] += forward.distinct[l];
      if (way == PassWay::kTouched) touched[l] += forward.distinct[l];
    }
  }
  EXPECT_EQ(pass, report.passes.size());
  uint64_t demand = 0, touched_bytes = 0, on_cpu = 0;
  for (size_t l = 0; l < report.layers.size(); ++l) {
    const ExpertLayerReport& layer = report.layers[l];
    SCOPED_TRACE("MoE layer " + std::to_string(l));
    EXPECT_EQ(layer.routed, ensured[l]);
    EXPECT_EQ(layer.routed, layer.hits + layer.misses + layer.cpu);
    EXPECT_TRUE(mode != CpuMode::kOff || layer.cpu == 0);
    EXPECT_TRUE(mode != CpuMode::kAlways || layer.misses == 0);
    on_cpu += layer.cpu + layer.touched_cpu + layer.streamed_cpu;
    EXPECT_LE(layer.streamed_cpu, layer.streamed_cpu_rows);
    EXPECT_EQ(layer.touched_distinct, touched[l]);
    EXPECT_LE(layer.touched_misses + layer.touched_cpu, layer.touched_distinct);
    EXPECT_LE(layer.predicted_used, layer.predicted);
    EXPECT_LE(layer.predicted_used, layer.hits);
    demand += layer.misses * layer.row_bytes;
    touched_bytes += layer.touched_misses * layer.row_bytes;
  }
  EXPECT_EQ(report.cpu.totals.experts, on_cpu);
  EXPECT_EQ(report.demand_bytes, demand);
  EXPECT_EQ(report.touched_bytes, touched_bytes);
}

int64_t group_of(const Combination& combination) {
  const int64_t wish = combination.settings.prefill_group;
  return wish == 0 ? kTextTokens : wish;
}

/// Every third expert of the model, in an order of its own.
std::vector<Resident> some_experts(const ExpertShape& shape) {
  std::vector<Resident> list;
  for (int64_t id = 0; id < shape.layers * shape.experts; id += 3) {
    list.push_back({static_cast<int32_t>(id % shape.layers), static_cast<int32_t>(id / shape.layers)});
  }
  return list;
}

/// Sizes that a combination's pool takes in turn.
std::vector<int64_t> other_sizes(const Combination& c, const MatrixModel& model) {
  const ExpertShape shape = expert_shape(model.model->info());
  const int64_t all = shape.layers * shape.experts,
                least = std::max(model.least_slots(), c.settings.ring_slots);
  return {std::min(all, c.settings.slots + 5), std::max(least, c.settings.slots - 3), all, least,
          c.settings.slots};
}

// A pass with --cpu-experts always leaves some of its misses to the CPU, whatever else is set.
void expect_cpu_part(const Combination& c, const ExpertShape& shape, const PassRecord& pass) {
  const int64_t misses = shape.layers * shape.experts - pass.resident_rows;
  const bool may = c.settings.cpu.mode != CpuMode::kOff && c.settings.compare.hits != HitMode::kOff;
  if (!streams(pass) || !may) {
    EXPECT_EQ(pass.cpu_experts, 0);
    return;
  }
  EXPECT_LE(pass.cpu_experts, misses);
  EXPECT_TRUE(c.settings.cpu.mode != CpuMode::kAlways || 4 * pass.cpu_experts >= misses);
}

const Told& told_without_slots(size_t index, const Cut& cut) {
  static std::map<std::pair<size_t, Cut>, Told> known;
  const auto key = std::pair(index, cut);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  MatrixModel& model = matrix_model(index);
  Runtime runtime(*model.device, *model.model, ExpertSettings());
  return known.emplace(key, run_text(model, runtime, cut).told).first->second;
}

}  // namespace

MatrixModel::MatrixModel(const std::string& model_name, const std::filesystem::path& folder, Compute compute)
    : name(model_name + " in " + std::string(name_of(compute))),
      checkpoint(Checkpoint::open(folder)),
      device(make_host_device(2)),
      model(load_model(checkpoint, *device, computing_in(compute))) {
  std::mt19937_64 random(kMatrixSeed);
  for (int64_t i = 0; i < kTextTokens; ++i) {
    ids.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(model->info().vocab_size)));
  }
  const auto rows = model->expert_rows();
  for (size_t l = 0; l < rows.size(); ++l) {
    const auto before = rows.first(l);
    pools += std::none_of(before.begin(), before.end(),
                          [&](const LayerRows& other) { return other.layout == rows[l].layout; });
  }
}

MatrixModel& matrix_model(size_t index) {
  static std::map<size_t, std::unique_ptr<MatrixModel>> loaded;
  static const char* const kNames[kMatrixCheckpoints] = {
      "demo", "qwen3_moe", "qwen3_moe_mixed_dense", "qwen3_moe_nvfp4", "qwen2_moe", "three formats"};
  auto& model = loaded[index];
  if (model) return *model;
  const std::string name = kNames[index % kMatrixCheckpoints];
  const Compute compute = index < kMatrixCheckpoints ? Compute::kF32 : Compute::kBf16;
  const TemporaryFolder mixed;  // mapped files outlive it
  const bool is_mixed = index % kMatrixCheckpoints + 1 == kMatrixCheckpoints;
  if (is_mixed) write_mixed_checkpoint(mixed.path());
  model = std::make_unique<MatrixModel>(name, is_mixed ? mixed.path() : folder_of(name), compute);
  return *model;
}

std::string describe(const Combination& c) {
  const ExpertSettings& s = c.settings;
  const auto number = [](auto value) { return std::to_string(static_cast<int64_t>(value)); };
  return matrix_model(c.model).name + ": slots " + number(s.slots) + ", ring " + number(s.ring_slots) +
         ", prefill " + number(s.prefill) + ", overlap " + number(s.compare.overlap) + ", priority " +
         number(s.compare.high_copy_priority) + ", epoch " + number(s.compare.epoch_invalidation) +
         ", hits " + number(s.compare.hits) + ", lookahead " + number(s.lookahead) + ", side " +
         number(s.compare.side_lookahead) + ", budget " + number(s.lookahead_budget) + ", policy " +
         number(s.policy) + ", CPU " + number(s.cpu.mode) + ", chunk " + number(c.cut.chunk) +
         ", decode from " + number(c.cut.decode_from) + (c.warm ? ", warm" : "") +
         (c.resizes ? ", resized" : "");
}

std::vector<Combination> residency_matrix(size_t count) {
  std::mt19937_64 random(kMatrixSeed);
  const auto range = [](int n) {
    std::vector<int> values;
    for (int i = 0; i < n; ++i) values.push_back(i);
    return values;
  };
  const auto flags = [&] { return deal<int>({0, 1}, count, random); };
  const auto models = deal(range(static_cast<int>(kMatrixModels)), count, random);
  const auto slots = deal(range(kSlotChoices), count, random),
             rings = deal(range(kRingChoices), count, random);
  const auto prefill = deal<PrefillMode>(
      {PrefillMode::kAuto, PrefillMode::kStream, PrefillMode::kTouched, PrefillMode::kLayerMajor}, count,
      random);
  const auto groups = deal<int64_t>({0, 10, 15}, count, random);
  const auto overlap = flags(), priority = flags(), epoch = flags(), side = flags();
  const auto hits =
      deal<HitMode>({HitMode::kInPlace, HitMode::kDeviceToDevice, HitMode::kOff}, count, random);
  const auto lookahead =
      deal<LookaheadMode>({LookaheadMode::kOff, LookaheadMode::kMeasure, LookaheadMode::kOn}, count, random);
  const auto budget = deal<int64_t>({0, 1, 3, 1000}, count, random);
  const auto policy = deal<SlotPolicy>({SlotPolicy::kLru, SlotPolicy::kScored}, count, random);
  const auto cpu =
      deal<CpuMode>({CpuMode::kOff, CpuMode::kAuto, CpuMode::kAlways, CpuMode::kAlways}, count, random);
  const auto cuts = deal<Cut>(
      {{1, kTextTokens}, {3, 14}, {5, kTextTokens}, {7, 9}, {16, 17}, {512, 0}, {512, 1}, {512, kTextTokens}},
      count, random);
  const auto warm = flags(), resizes = flags();
  std::vector<Combination> matrix;
  for (size_t i = 0; i < count; ++i) {
    Combination c;
    c.model = static_cast<size_t>(models[i]);
    c.cut = cuts[i];
    const ExpertShape shape = expert_shape(matrix_model(c.model).model->info());
    c.settings.slots = slots_of(slots[i], matrix_model(c.model));
    c.settings.ring_slots = ring_of(rings[i], shape, c.settings.slots);
    c.settings.prefill = prefill[i];
    c.settings.prefill_group = groups[i];
    c.settings.lookahead = lookahead[i];
    c.settings.lookahead_budget = budget[i];
    c.settings.policy = policy[i];
    c.settings.cpu.mode = cpu[i];
    c.settings.audit_every = 1;
    c.warm = warm[i] != 0;
    c.resizes = resizes[i] != 0;
    c.settings.compare = {.overlap = overlap[i] != 0,
                          .high_copy_priority = priority[i] != 0,
                          .epoch_invalidation = epoch[i] != 0,
                          .hits = hits[i],
                          .side_lookahead = side[i] != 0};
    matrix.push_back(c);
  }
  return matrix;
}

Run run_text(const MatrixModel& model, Runtime& runtime, const Cut& cut,
             const std::function<void()>& between) {
  Session session(runtime, {.capacity_tokens = 64, .chunk_tokens = cut.chunk});
  Run run;
  const std::vector<int64_t>& moe_layers = model.model->info().moe_layers;
  int64_t text_left = static_cast<int64_t>(model.ids.size());
  bool prompt_again = false;
  session.observe_routes([&](int64_t layer, std::span<const int32_t> ids, int64_t rows) {
    auto& all = run.told.routes[layer];
    all.insert(all.end(), ids.begin(), ids.end());
    if (layer == moe_layers.front()) {
      const int64_t position = static_cast<int64_t>(model.ids.size()) - text_left;
      const bool in_text = text_left > 0;
      run.forwards.push_back({in_text ? position >= cut.decode_from : prompt_again, {}});
      if (in_text) {
        text_left -= rows;
      } else {
        prompt_again = true;  // after the text comes its last token as a prompt, then the continuation
      }
    }
    run.forwards.back().distinct.push_back(std::set<int32_t>(ids.begin(), ids.end()).size());
  });
  session.run_all(model.ids, cut.decode_from, [&](int64_t, std::span<const float> logits, int64_t) {
    run.told.logits.insert(run.told.logits.end(), logits.begin(), logits.end());
    ++run.logit_reads;
    if (between) between();
  });
  GenerateOptions options;
  options.max_tokens = kGreedyTokens;
  const size_t text_forwards = run.forwards.size();
  run.told.greedy = generate(session, model.ids, options, nullptr).ids;
  run.logit_reads += static_cast<int64_t>(run.forwards.size() - text_forwards);
  return run;
}

void expect_residency_changes_nothing(const Combination& combination) {
  SCOPED_TRACE(describe(combination));
  const Told& want = told_without_slots(combination.model, combination.cut);
  const MatrixModel& model = matrix_model(combination.model);
  const auto waits = model.device->host_waits();
  Runtime runtime(*model.device, *model.model, combination.settings);
  const ExpertShape shape = expert_shape(model.model->info());
  ResidentExperts& resident = *runtime.resident();
  if (combination.warm) resident.fill_from(some_experts(shape));
  const std::vector<int64_t> sizes = other_sizes(combination, model);
  size_t resizes = 0;
  const Run run = run_text(model, runtime, combination.cut, [&] {
    if (combination.resizes) resident.resize(sizes[resizes++ % sizes.size()]);
  });
  EXPECT_TRUE(run.told.logits == want.logits);
  EXPECT_TRUE(run.told.routes == want.routes);
  EXPECT_EQ(run.told.greedy, want.greedy);

  ASSERT_NO_THROW(resident.check());
  EXPECT_EQ(resident.audits(), run.forwards.size());
  const ExpertReport report = resident.report();
  EXPECT_EQ(report.resizes, resizes);
  EXPECT_EQ(report.warm.rows > 0, combination.warm);
  expect_counters(report, run.forwards, combination.settings.cpu.mode);
  expect_waits(waits, *model.device, combination, report, run);
  if (model.pools == 1) {
    EXPECT_EQ(report.streamed_bytes, absent_bytes(report, shape));
  }
  const PrefillMode mode = combination.settings.prefill;
  for (const PassRecord& pass : report.passes) {
    EXPECT_TRUE(mode != PrefillMode::kStream || pass.way == PassWay::kStream);
    EXPECT_EQ(mode == PrefillMode::kLayerMajor || pass.chunks > 1, pass.way == PassWay::kLayerMajor);
    EXPECT_EQ(pass.chunks, (pass.rows + combination.cut.chunk - 1) / combination.cut.chunk);
    EXPECT_LE(pass.rows, std::max(combination.cut.chunk, group_of(combination)));
    EXPECT_TRUE(combination.settings.compare.hits != HitMode::kOff || pass.resident_rows == 0);
    expect_cpu_part(combination, shape, pass);
  }
}

}  // namespace sluice::testing
