// Bytes that crossed the link too late or again: cases where there are some, and cases where there are none.
#include <gtest/gtest.h>

#include <vector>

#include "device/timed/timed_device.h"
#include "experts/forwards.h"

namespace sluice {
namespace {

ExpertSettings decode_settings() {
  ExpertSettings settings;
  settings.slots = 8;
  settings.lookahead = LookaheadMode::kOn;
  settings.lookahead_budget = 2;
  return settings;
}

/// 18 slots hold all experts; a streaming pass borrows four of them.
ExpertSettings stream_settings(HitMode hits, bool epoch) {
  ExpertSettings settings;
  settings.slots = kLayers * kExperts;
  settings.ring_slots = 4;
  settings.prefill = PrefillMode::kStream;
  settings.lookahead = LookaheadMode::kOff;
  settings.compare.hits = hits;
  settings.compare.epoch_invalidation = epoch;
  return settings;
}

ExpertLayerReport sum(const ExpertReport& report) {
  ExpertLayerReport total;
  for (const ExpertLayerReport& layer : report.layers) {
    total.misses += layer.misses;
    total.predicted_used += layer.predicted_used;
    total.late += layer.late;
    total.duplicate += layer.duplicate;
  }
  return total;
}

ExpertReport decoded(Device& device, int steps) {
  Forwards forwards(device, decode_settings());
  for (int i = 0; i < steps; ++i) forwards.decode({i});
  return forwards.report();
}

ExpertReport decoded_over(double link_bytes_per_s) {
  MachineModel machine = machine_model("rtx5090");
  machine.link_bytes_per_s = link_bytes_per_s;
  const auto device = make_timed_device({.machine = machine, .keep_timeline = false});
  return decoded(*device, 12);
}

TEST(LateBytes, AreThePredictionsThatASlowLinkBroughtAfterTheirLayerHadAsked) {
  const ExpertReport report = decoded_over(1e6);  // an expert takes 1.5 ms
  const ExpertLayerReport total = sum(report);
  EXPECT_GT(total.late, 0u);
  EXPECT_LE(total.late, total.predicted_used);
  EXPECT_EQ(report.layers[0].late, 0u);  // nobody predicts for the first layer
  EXPECT_EQ(report.late_bytes, total.late * report.layers[0].row_bytes);
}

TEST(LateBytes, AreNoneWhereTheLinkIsQuickerThanALayer) {
  const ExpertLayerReport total = sum(decoded_over(1e12));
  EXPECT_GT(total.predicted_used, 0u);
  EXPECT_EQ(total.late, 0u);
}

TEST(LateBytes, AreNoneWhereCopiesRunWhenTheyAreCalled) {
  const auto device = make_host_device(1);
  const ExpertLayerReport total = sum(decoded(*device, 12));
  EXPECT_GT(total.predicted_used, 0u);
  EXPECT_EQ(total.late, 0u);
}

TEST(DuplicateBytes, AreNoneInDecodeAndInPassesThatReadResidentsWhereTheyLie) {
  const auto device = make_host_device(1);
  EXPECT_EQ(decoded(*device, 12).duplicate_bytes, 0u);
  for (const bool epoch : {true, false}) {
    for (const HitMode hits : {HitMode::kInPlace, HitMode::kDeviceToDevice}) {
      Forwards forwards(*device, stream_settings(hits, epoch));
      forwards.decode({0});
      forwards.prefill({1, 3});
      forwards.prefill({2, 3});
      const ExpertReport report = forwards.report();
      EXPECT_GT(report.passes.front().resident_rows, 0);
      EXPECT_EQ(report.duplicate_bytes, 0u);
    }
  }
}

// A token uses two experts of each of three layers: six slots, of which the pass borrows four.
TEST(DuplicateBytes, AreTheResidentsThatAPassWithoutHitsStreamsAgain) {
  const auto device = make_host_device(1);
  for (const bool epoch : {true, false}) {
    Forwards forwards(*device, stream_settings(HitMode::kOff, epoch));
    forwards.decode({0});
    forwards.prefill({1, 3});
    const ExpertReport report = forwards.report();
    EXPECT_EQ(sum(report).duplicate, 2u) << epoch;
    EXPECT_EQ(report.layers[2].duplicate, 2u);  // the slots behind the region
    EXPECT_EQ(report.duplicate_bytes, 2 * report.layers[0].row_bytes);
    EXPECT_EQ(report.streamed_bytes, kLayers * kExperts * report.layers[0].row_bytes);
  }
}

TEST(DuplicateBytes, AreTheExpertsThatADecodeStepBroughtBeforeThePassCameToTheirLayer) {
  const auto device = make_host_device(1);
  Forwards forwards(*device, stream_settings(HitMode::kInPlace, true));
  forwards.prefill({1, 3}, [&](int64_t layer) {
    if (layer == 1) forwards.decode({2});
  });
  const ExpertReport report = forwards.report();
  EXPECT_EQ(report.layers[0].duplicate, 0u);
  EXPECT_EQ(report.layers[1].duplicate, 2u);
  EXPECT_EQ(report.layers[2].duplicate, 2u);
}

TEST(DuplicateBytes, AreMissesThatTheSameStepHadPredicted) {
  const auto device = make_host_device(1);
  const auto stream = device->make_stream();
  std::vector<int32_t> slots(3), predicted = {1, 3, 5}, demanded = {5, 0, 3};
  int32_t predicted_count = 3, demanded_count = 2;
  const std::vector<int32_t> ids = {3, 5, -1, 0, 3};
  ArrivalCounters counters;
  count_arrivals(*stream, ids.data(), 5, {slots.data(), predicted.data(), &predicted_count, 3},
                 {slots.data(), demanded.data(), &demanded_count, 3}, &counters);
  EXPECT_EQ(counters.wanted, 1u);
  EXPECT_EQ(counters.again, 1u);
}

}  // namespace
}  // namespace sluice
