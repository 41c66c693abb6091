// Each protocol of the experts in the forms that serve.
#include "experts/explore_scenarios.h"

#include <cstring>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "device/staging.h"
#include "experts/moe_harness.h"

namespace sluice {
namespace {

constexpr int kStart = 2;  // rows of a prompt that fits small rings

ExpertSettings decode_settings(int64_t slots, LookaheadMode lookahead) {
  ExpertSettings settings;
  settings.slots = slots;
  settings.prefill = PrefillMode::kStream;
  settings.lookahead = lookahead;
  settings.lookahead_budget = 2;
  settings.audit_every = 1;
  return settings;
}

ExpertSettings pass_settings(PrefillMode mode, int64_t slots, int64_t ring) {
  ExpertSettings settings = decode_settings(slots, LookaheadMode::kOn);
  settings.prefill = mode;
  settings.ring_slots = ring;
  return settings;
}

void decode_steps(MoeHarness& moe, int first, int count) {
  for (int i = first; i < first + count; ++i) moe.decode({i});
}

void run_decode(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  decode_steps(moe, 0, 4);
  moe.finish();
}

void run_decode_batches(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  moe.decode({0, 2});
  moe.decode({1, 3, true});
  moe.decode({2, 2});
  moe.finish();
}

// A step that fails between its layers has left predictions under way.
void run_decode_given_up(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  moe.decode({0});
  for (int number = 1; number < 3; ++number) {
    moe.experts().begin_decode(1);
    moe.layers({number}, 0, number);
    moe.experts().end_decode();
  }
  decode_steps(moe, 3, 2);
  moe.finish();
}

// A prompt so short that it goes the way of a decode step.
void run_short_prompt(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  moe.decode({0});
  moe.prefill({1, kStart});
  moe.decode({2});
  moe.finish();
}

// The second pass finds residents that the first one and decode have left above the region.
void run_passes(ExploredDevice& device, const ExpertSettings& settings, int64_t rows) {
  MoeHarness moe(device, settings);
  moe.prefill({0, rows});
  moe.decode({1});
  moe.prefill({2, rows});
  decode_steps(moe, 3, 2);
  moe.finish();
}

void run_stream(ExploredDevice& device, const ExpertSettings& settings) { run_passes(device, settings, 3); }
void run_touched(ExploredDevice& device, const ExpertSettings& settings) {
  run_passes(device, settings, kMostRows);
}

void run_back_to_back(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  decode_steps(moe, 0, 2);
  moe.prefill({2, 3});
  moe.prefill({3, 3});
  moe.prefill({4, 2});
  moe.decode({5});
  moe.finish();
}

void run_decode_between(ExploredDevice& device, const ExpertSettings& settings, int64_t rows) {
  MoeHarness moe(device, settings);
  moe.prefill({0, rows});
  moe.decode({1});
  moe.prefill({2, rows}, [&](int64_t layer) { moe.decode({3 + static_cast<int>(layer)}); });
  moe.decode({6});
  moe.finish();
}

void run_stream_decode_between(ExploredDevice& device, const ExpertSettings& settings) {
  run_decode_between(device, settings, 3);
}
void run_touched_decode_between(ExploredDevice& device, const ExpertSettings& settings) {
  run_decode_between(device, settings, kMostRows);
}

void run_given_up_between(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  moe.decode({0});
  for (int64_t done = 0; done < 2; ++done) {
    moe.experts().begin_prefill(3);
    moe.layers({1, 3}, 0, done);
    moe.experts().end_prefill();
    moe.decode({2 + static_cast<int>(done)});
  }
  moe.prefill({4, 3});
  moe.decode({5});
  moe.finish();
}

void run_given_up_inside(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  const int64_t rows = settings.prefill == PrefillMode::kTouched ? kMostRows : 3;
  moe.decode({0});
  moe.give_up_inside({1, rows}, 0, 1);
  decode_steps(moe, 2, 2);
  moe.give_up_inside({4, rows}, 1, 1);
  decode_steps(moe, 5, 2);
  moe.prefill({7, rows});
  moe.decode({8});
  moe.finish();
}

void run_layer_major(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  moe.prefill_group({{0, 3}, {1, 3}, {2, 2}});
  moe.decode({3});
  moe.prefill_group({{4, 2}, {5, 1}});
  decode_steps(moe, 6, 2);
  moe.finish();
}

// Decode steps between the chunks of a layer, and between layers.
void run_layer_major_decode_between(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  moe.prefill_group({{0, 3}, {1, 2}});
  moe.decode({2});
  int next = 5;
  moe.prefill_group({{3, 3}, {4, 2}}, [&](int64_t) { moe.decode({next++}); });
  moe.decode({next});
  moe.finish();
}

void run_layer_major_given_up(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  moe.decode({0});
  moe.give_up_group_inside({{1, 3}, {2, 2}}, 0, 1);
  decode_steps(moe, 3, 2);
  moe.give_up_group_inside({{5, 3}, {6, 2}}, 1, 2);
  moe.decode({7});
  moe.prefill_group({{8, 3}, {9, 2}});
  moe.decode({10});
  moe.finish();
}

// A pool that grows and shrinks between forwards.
void run_resize(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  decode_steps(moe, 0, 2);
  moe.experts().resize(settings.slots + 4);
  decode_steps(moe, 2, 2);
  moe.prefill({4, 3});
  moe.experts().resize(settings.slots - 2);
  moe.decode({5});
  moe.prefill({6, 3});
  moe.decode({7});
  moe.finish();
}

void expect_refusal(ExploredDevice& device, MoeHarness& moe, int64_t slots) {
  try {
    moe.experts().resize(slots);
  } catch (const Error&) {
    return;
  }
  device.fail("a pool of " + std::to_string(slots) + " slots was not refused");
}

// Refusals before, inside and between forwards change nothing.
void run_resize_refused(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  expect_refusal(device, moe, kLayers * kExperts + 1);
  moe.decode({0});
  device.faults().add(Fault::kAllocation, "expert slots");
  expect_refusal(device, moe, settings.slots + 4);
  moe.prefill({1, 3}, [&](int64_t) { expect_refusal(device, moe, settings.slots + 4); });
  expect_refusal(device, moe, settings.ring_slots - 1);
  decode_steps(moe, 2, 2);
  moe.finish();
}

// A start with full slots, a prompt that empties some of them, idle time, and a list for the next start.
void run_never_cold(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  const std::vector<Resident> first = {{0, 1}, {2, 2}, {1, 3}, {0, 0}, {1, 0}, {2, 5}, {0, 4}};
  moe.experts().fill_from(first);
  decode_steps(moe, 0, 2);
  moe.prefill({2, 3});
  moe.experts().fill_idle(size_t{1} << 20);
  moe.decode({3});
  const std::vector<Resident> saved = moe.experts().residency();
  moe.prefill({4, 3});
  moe.experts().fill_from(saved);
  moe.decode({5});
  moe.finish();
}

// Layers whose pages are not locked beside one whose pages are.
void run_staged(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings, kLayers, true);
  moe.decode({0});
  moe.decode({1, 3});
  moe.prefill({2, settings.prefill == PrefillMode::kTouched ? kMostRows : 3});
  decode_steps(moe, 3, 2);
  moe.finish();
}

// A host that runs ahead of the device hands over one table a step, and waits only where no slot is free.
void run_staging(ExploredDevice& device, const ExpertSettings&) {
  constexpr int kSteps = 6, kValues = 8;
  StagingRing ring(device, 2, kValues * sizeof(int), "staging");
  const auto compute = device.make_stream();
  const Buffer table = device.allocate_array<int>(kValues, "table");
  const Buffer sums = device.allocate_array<int>(kSteps, "sums");
  const auto launched = device.make_event("step"), result = device.make_event(kResultEvent);
  for (int step = 0; step < kSteps; ++step) {
    std::byte* slot = nullptr;
    try {
      slot = ring.acquire(kValues * sizeof(int));
    } catch (const Error&) {
      device.wait(*launched, "step before");
      slot = ring.acquire(kValues * sizeof(int));
    }
    auto* values = reinterpret_cast<int*>(slot);
    for (int i = 0; i < kValues; ++i) values[i] = step * 100 + i;
    compute->copy("table", table.data(), values, kValues * sizeof(int));
    ring.release_after(*compute);
    compute->record(*launched);
    const int* in = table.as<int>();
    int* out = sums.as<int>() + step;
    compute->launch({.name = "sum", .reads = {range_of(in, kValues)}, .writes = {range_of(out, 1)}},
                    [=](const HostContext&) {
                      *out = 0;
                      for (int i = 0; i < kValues; ++i) *out += in[i];
                    });
  }
  compute->record(*result);
  device.wait(*result, "result");
  for (int step = 0; step < kSteps; ++step) {
    if (sums.as<int>()[step] != step * 100 * kValues + kValues * (kValues - 1) / 2) {
      return device.fail("step " + std::to_string(step) + ": the sum is wrong");
    }
  }
}

// The next router has run on its own stream when the layer that forked it fails.
void run_side_given_up(ExploredDevice& device, const ExpertSettings& settings) {
  MoeHarness moe(device, settings);
  moe.decode({0});
  moe.give_up_decode({1}, 1);
  decode_steps(moe, 2, 2);
  moe.finish();
}

// The workers compute in the operation that takes their answer: nothing here runs but what the explorer
// picks.
ExpertSettings with_cpu(ExpertSettings settings, int32_t fetch_cap) {
  settings.cpu.mode = CpuMode::kAlways;
  settings.cpu.fetch_cap = fetch_cap;
  settings.cpu.inline_work = true;
  return settings;
}

ExpertSettings with_compare(ExpertSettings settings, void (*change)(ComparisonSwitches&)) {
  change(settings.compare);
  return settings;
}

std::vector<ProtocolScenario> make_scenarios() {
  using Mode = PrefillMode;
  const ExpertSettings layers = pass_settings(Mode::kStream, 17, 12);  // one layer a tile
  const ExpertSettings tiles = pass_settings(Mode::kStream, 9, 4);     // tiles of two experts
  const ExpertSettings grouped = pass_settings(Mode::kLayerMajor, 9, 4);
  const ExpertSettings touched = pass_settings(Mode::kTouched, 16, 12);
  const auto d2d = [](ComparisonSwitches& c) { c.hits = HitMode::kDeviceToDevice; };
  const auto no_hits = [](ComparisonSwitches& c) { c.hits = HitMode::kOff; };
  const auto serial = [](ComparisonSwitches& c) { c.overlap = false; };
  const auto side = [](ComparisonSwitches& c) { c.side_lookahead = true; };
  const auto by_layer = [](ComparisonSwitches& c) { c.epoch_invalidation = false; };
  return {
      {"decode_lookahead", "decode steps, predictions on, 6 slots", decode_settings(6, LookaheadMode::kOn),
       run_decode},
      {"decode_tight", "decode steps, predictions on, 3 slots: fewer than a call and its predictions",
       decode_settings(3, LookaheadMode::kOn), run_decode},
      {"decode_batches", "steps of 2 and 3 requests, one padded, 9 slots",
       decode_settings(9, LookaheadMode::kOn), run_decode_batches},
      {"decode_off", "decode steps without predictions, 3 slots", decode_settings(3, LookaheadMode::kOff),
       run_decode},
      {"decode_measure", "decode steps whose predictions are counted but not fetched",
       decode_settings(4, LookaheadMode::kMeasure), run_decode},
      {"decode_side", "decode steps, the next router on a stream of its own, 6 slots",
       with_compare(decode_settings(6, LookaheadMode::kOn), side), run_decode},
      {"decode_side_tight", "the same with 3 slots",
       with_compare(decode_settings(3, LookaheadMode::kOn), side), run_decode},
      {"decode_side_measure", "the same, counted but not fetched",
       with_compare(decode_settings(4, LookaheadMode::kMeasure), side), run_decode},
      {"decode_side_given_up", "the same, steps that fail inside a layer",
       with_compare(decode_settings(7, LookaheadMode::kOn), side), run_side_given_up},
      {"decode_given_up", "steps that end between their layers", decode_settings(7, LookaheadMode::kOn),
       run_decode_given_up},
      {"short_prompt", "a prompt that goes the way of a decode step", pass_settings(Mode::kTouched, 6, 2),
       run_short_prompt},
      {"stream_layers", "streaming passes, one layer a tile, hits in place", layers, run_stream},
      {"stream_tiles", "streaming passes, tiles of two experts, hits in place", tiles, run_stream},
      {"stream_d2d", "streaming passes, hits gathered on the device", with_compare(tiles, d2d), run_stream},
      {"stream_hits_off", "streaming passes that stream residents as well", with_compare(tiles, no_hits),
       run_stream},
      {"stream_no_overlap", "streaming passes on the compute stream alone", with_compare(tiles, serial),
       run_stream},
      {"stream_by_layer", "streaming passes that unmap on the copy stream", with_compare(layers, by_layer),
       run_stream},
      {"stream_back_to_back", "streaming passes directly after decode and after each other", tiles,
       run_back_to_back},
      {"stream_back_to_back_hits_off", "the same without a host wait", with_compare(tiles, no_hits),
       run_back_to_back},
      {"stream_decode_between", "decode steps between the layers of a streaming pass", tiles,
       run_stream_decode_between},
      {"stream_side_decode_between", "the same with the next router on a stream of its own",
       with_compare(tiles, side), run_stream_decode_between},
      {"stream_given_up_between", "streaming passes given up between layers", tiles, run_given_up_between},
      {"stream_given_up_inside", "streaming passes given up inside a layer", with_compare(tiles, no_hits),
       run_given_up_inside},
      {"touched", "touched passes", touched, run_touched},
      {"touched_decode_between", "decode steps between the layers of a touched pass", touched,
       run_touched_decode_between},
      {"touched_given_up_inside", "touched passes given up inside a layer", touched, run_given_up_inside},
      {"layer_major", "groups of chunks, tiles of two experts, hits in place", grouped, run_layer_major},
      {"layer_major_layers", "groups of chunks, one layer a tile, chunks share the memory of outputs",
       pass_settings(Mode::kLayerMajor, 17, 12), run_layer_major},
      {"layer_major_hits_off", "groups of chunks without a host wait", with_compare(grouped, no_hits),
       run_layer_major},
      {"layer_major_decode_between", "decode steps between the chunks and the layers of a group", grouped,
       run_layer_major_decode_between},
      {"layer_major_given_up", "groups given up inside a layer", with_compare(grouped, no_hits),
       run_layer_major_given_up},
      {"decode_cpu", "steps of 2 and 3 requests, one miss a layer fetched, the others on the CPU",
       with_cpu(decode_settings(9, LookaheadMode::kOn), 1), run_decode_batches},
      {"decode_all_cpu", "decode steps, every miss on the CPU, predictions on",
       with_cpu(decode_settings(4, LookaheadMode::kOn), 0), run_decode},
      {"touched_cpu", "touched passes with decode between their layers, one miss a layer fetched",
       with_cpu(touched, 1), run_touched_decode_between},
      {"decode_cpu_given_up", "decode steps that fail while the CPU has their experts",
       with_cpu(decode_settings(7, LookaheadMode::kOff), 0), run_side_given_up},
      {"stream_cpu", "streaming passes, a quarter of each layer's misses on the CPU, tiles of two experts",
       with_cpu(tiles, 0), run_stream},
      {"stream_cpu_layers", "the same, one layer a tile, hits gathered on the device",
       with_cpu(with_compare(layers, d2d), 0), run_stream},
      {"stream_cpu_decode_between", "the same in tiles, with decode steps on the CPU between the layers",
       with_cpu(tiles, 1), run_stream_decode_between},
      {"stream_cpu_given_up_inside", "the same, given up while the CPU has their experts", with_cpu(tiles, 0),
       run_given_up_inside},
      {"layer_major_cpu", "groups of chunks that take turns on the CPU, tiles of two experts",
       with_cpu(grouped, 0), run_layer_major},
      {"layer_major_cpu_layers", "the same, one layer a tile, chunks share the memory of outputs",
       with_cpu(pass_settings(Mode::kLayerMajor, 17, 12), 0), run_layer_major},
      {"layer_major_cpu_given_up", "the same in tiles, given up inside a layer", with_cpu(grouped, 0),
       run_layer_major_given_up},
      {"resize", "a pool that grows and shrinks between decode steps and streaming passes", tiles,
       run_resize},
      {"resize_hits_off", "the same where passes share one table", with_compare(tiles, no_hits), run_resize},
      {"resize_touched", "the same with touched passes", pass_settings(Mode::kTouched, 14, 0), run_resize},
      {"resize_refused", "resizes that are refused", tiles, run_resize_refused},
      {"never_cold", "a warm fill, an idle fill and a saved residency", tiles, run_never_cold},
      {"staged_stream", "rows that are not page-locked, decode and streaming passes", tiles, run_staged},
      {"staged_touched", "rows that are not page-locked, decode and touched passes", touched, run_staged},
      {"staging", "staging slots of a host that launches ahead", {}, run_staging},
  };
}

}  // namespace

Scenario ProtocolScenario::scenario_with(const ProtocolMutations& mutations) const {
  ExpertSettings changed = settings;
  changed.mutations = mutations;
  return [body = run, changed](ExploredDevice& device) { body(device, changed); };
}

std::span<const ProtocolScenario> protocol_scenarios() {
  static const std::vector<ProtocolScenario> scenarios = make_scenarios();
  return scenarios;
}

const ProtocolScenario& find_scenario(const std::string& name) {
  for (const ProtocolScenario& scenario : protocol_scenarios()) {
    if (scenario.name == name) return scenario;
  }
  throw std::out_of_range("no scenario " + name);
}

Scenario tiny_decode() {
  return [](ExploredDevice& device) {
    MoeHarness moe(device, decode_settings(5, LookaheadMode::kOn), 2);
    moe.decode({0});
    moe.finish();
  };
}

Scenario decode_inside_layer_invalidation(const ProtocolMutations& mutations) {
  return [mutations](ExploredDevice& device) {
    ExpertSettings settings = find_scenario("stream_by_layer").settings;
    settings.mutations = mutations;
    run_decode_between(device, settings, 3);
  };
}

}  // namespace sluice
