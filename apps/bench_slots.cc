// `sluice bench slots`: how long the slot map takes to find out what is resident.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <vector>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/usage_error.h"
#include "base/counted.h"
#include "base/random.h"
#include "experts/slot_functions.h"

namespace sluice::apps {
namespace {

struct BenchSlotsOptions {
  int64_t calls = 1'000'000, layers = 40, experts = 256, slots = 4096, ids = 8;
};

// Ids of every call. The smaller numbers of a layer are the more popular ones, the more so the higher `skew`.
std::vector<int32_t> draw_ids(const BenchSlotsOptions& o, double skew) {
  constexpr uint64_t kSeed = 7;
  std::vector<int32_t> ids(static_cast<size_t>(o.calls * o.ids));
  for (size_t i = 0; i < ids.size(); ++i) {
    const double rank = std::pow(uniform(kSeed, i), skew) * static_cast<double>(o.experts);
    ids[i] = std::min(static_cast<int32_t>(rank), static_cast<int32_t>(o.experts) - 1);
  }
  return ids;
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Timing {
  double seconds = 0, misses_a_call = 0;
};

Timing run_calls(const BenchSlotsOptions& o, SlotPolicy policy, std::vector<int32_t> ids) {
  SlotMapShape shape;
  shape.layers = static_cast<int32_t>(o.layers);
  shape.experts = static_cast<int32_t>(o.experts);
  shape.max_slots = static_cast<int32_t>(o.slots);
  shape.policy = policy;
  const auto device = make_host_device(1);
  const auto stream = device->make_stream();
  const SlotMap map(*device, *stream, shape, shape.max_slots);
  const auto n = static_cast<size_t>(o.ids);
  std::vector<int32_t> slots(n), rows(n);
  int32_t count = 0;
  const CopyPlan plan{slots.data(), rows.data(), &count, static_cast<int32_t>(n)};
  int64_t misses = 0;
  const double start = processor_seconds();
  for (int64_t call = 0; call < o.calls; ++call) {
    const auto layer = static_cast<int32_t>(call % o.layers);
    throw_if_failed(slot_map::ensure(map.view(), layer, ids.data() + call * o.ids, o.ids, plan));
    misses += count;
  }
  return {processor_seconds() - start, static_cast<double>(misses) / static_cast<double>(o.calls)};
}

void bench_slots(const BenchSlotsOptions& o) {
  if (o.slots > o.layers * o.experts || o.slots < o.ids) {
    throw UsageError("--slots " + std::to_string(o.slots) + ": expected from " + std::to_string(o.ids) +
                     " (ids of a call) to " + std::to_string(o.layers * o.experts) + " (all experts)");
  }
  std::printf("%s of ensure, %lld x %s, %s, %s a call, one thread\n", counted(o.calls, "call").c_str(),
              static_cast<long long>(o.layers), counted(o.experts, "expert").c_str(),
              counted(o.slots, "slot").c_str(), counted(o.ids, "id").c_str());
  std::printf("policy   skew   misses/call   processor time   a call\n");
  for (const double skew : {1.0, 3.0, 8.0}) {
    const std::vector<int32_t> ids = draw_ids(o, skew);
    for (const SlotPolicy policy : {SlotPolicy::kLru, SlotPolicy::kScored}) {
      const Timing t = run_calls(o, policy, ids);
      std::printf("%-8s %4.0f %13.2f %14.2f s %5.0f ns\n", policy == SlotPolicy::kLru ? "lru" : "scored",
                  skew, t.misses_a_call, t.seconds, 1e9 * t.seconds / static_cast<double>(o.calls));
    }
  }
}

}  // namespace

void add_bench_slots(Command& bench) {
  auto options = std::make_shared<BenchSlotsOptions>();
  Command command = bench.subcommand("slots", "Time of the slot map's main function on one core");
  command.footer(
      "Ids are drawn at random, three times: at skew 1 evenly, at 3 and at 8 so that fewer and fewer "
      "experts\n"
      "get most of them. The table has a line for each skew and policy.\n"
      "\n"
      "  $ sluice bench slots");
  command.option("--calls", options->calls, "Calls to time").range(1, 100'000'000).show_default();
  command.option("--layers", options->layers, "MoE layers").range(1, kMaxMoeLayers).show_default();
  command.option("--experts", options->experts, "Experts a layer").range(1, kMaxExperts).show_default();
  command.option("--slots", options->slots, "Slots").at_least(1).show_default();
  command.option("--ids", options->ids, "Ids a call").range(1, 4096).show_default();
  command.action([options] { bench_slots(*options); });
}

}  // namespace sluice::apps
