// `sluice trace replay`: what each eviction policy would make of a recorded run.
#include "apps/trace_replay.h"
#include "apps/arguments.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/messages.h"
#include "apps/usage_error.h"
#include "base/counted.h"
#include "base/printable.h"
#include "base/units.h"
#include "experts/replay.h"
#include "experts/slot_count.h"

namespace sluice::apps {
namespace {

using nlohmann::ordered_json;

struct ReplayFlags {
  std::string file;
  std::vector<std::string> slots, policies = {"all"};
  bool decode_only = false, json = false, accept_cut = false;
  ReplayOptions options;
};

/// In the order of the options, each number once.
std::vector<int64_t> slots_of(const std::vector<std::string>& texts, const TraceModel& model) {
  std::vector<int64_t> list;
  for (const std::string& text : texts) {
    const int64_t slots = read_slot_count(text)->of(model.all_experts());
    if (std::find(list.begin(), list.end(), slots) == list.end()) list.push_back(slots);
  }
  return list;
}

std::optional<ReplayPolicy> parse_policy(std::string_view name) {
  const auto found = std::find_if(kReplayPolicies.begin(), kReplayPolicies.end(),
                                  [&](ReplayPolicy policy) { return name_of(policy) == name; });
  if (found == kReplayPolicies.end()) return {};
  return *found;
}

std::string policy_names() {
  std::string names = "all";
  for (const ReplayPolicy policy : kReplayPolicies) names += ", " + std::string(name_of(policy));
  return names;
}

/// In the order of kReplayPolicies, each once.
std::vector<ReplayPolicy> policies_of(const std::vector<std::string>& names) {
  std::vector<ReplayPolicy> policies;
  for (const ReplayPolicy policy : kReplayPolicies) {
    const bool wanted = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name == "all" || name == name_of(policy);
    });
    if (wanted) policies.push_back(policy);
  }
  return policies;
}

struct Line {
  ReplayPolicy policy;
  int64_t slots;
  double share;  // of all experts
  ReplayResult result;
};

/// What is the same for all lines.
struct Totals {
  int64_t steps = 0, tokens = 0, used_experts = 0;
};

void print_table(const Trace& trace, const Totals& totals, const std::vector<Line>& lines) {
  const TraceModel& model = trace.model;
  std::printf("%s: %s of %s, top %lld\n", printable(model.family).c_str(),
              counted(model.layers.size(), "MoE layer").c_str(), counted(model.experts, "expert").c_str(),
              static_cast<long long>(model.top_k));
  std::printf("%s, %s; %lld of %s used\n\n", counted(totals.steps, "step").c_str(),
              counted(totals.tokens, "token").c_str(), static_cast<long long>(totals.used_experts),
              counted(model.all_experts(), "expert").c_str());
  std::printf("%-11s %8s %7s %12s %12s %8s %12s %13s\n", "policy", "slots", "share", "hits", "misses",
              "hit rate", "misses/token", "bytes/token");
  for (const Line& line : lines) {
    const ReplayResult& r = line.result;
    std::printf("%-11s %8lld %6.1f%% %12lld %12lld %7.2f%% %12.3f %13s\n",
                std::string(name_of(line.policy)).c_str(), static_cast<long long>(line.slots),
                100 * line.share, static_cast<long long>(r.hits), static_cast<long long>(r.misses),
                100 * r.hit_rate(), r.misses_per_token(),
                format_bytes(static_cast<uint64_t>(r.bytes_per_token() + 0.5)).c_str());
  }
}

void print_json(const Trace& trace, const Totals& totals, const std::vector<Line>& lines) {
  const TraceModel& model = trace.model;
  ordered_json out = {{"model",
                       {{"family", model.family},
                        {"moe_layers", model.layers.size()},
                        {"experts", model.experts},
                        {"top_k", model.top_k}}},
                      {"complete", trace.complete},
                      {"steps", totals.steps},
                      {"tokens", totals.tokens},
                      {"used_experts", totals.used_experts}};
  auto& results = out["results"] = ordered_json::array();
  for (const Line& line : lines) {
    const ReplayResult& r = line.result;
    results.push_back({{"policy", name_of(line.policy)},
                       {"slots", line.slots},
                       {"hits", r.hits},
                       {"misses", r.misses},
                       {"hit_rate", r.hit_rate()},
                       {"misses_per_token", r.misses_per_token()},
                       {"bytes_per_token", r.bytes_per_token()}});
  }
  std::printf("%s\n", out.dump(2, ' ', false, ordered_json::error_handler_t::replace).c_str());
}

void check_effects(const ReplayFlags& flags) {
  const ReplayOptions defaults;
  const std::vector<ReplayPolicy> policies = policies_of(flags.policies);
  const auto needs = [&](const char* option, bool set, ReplayPolicy policy) {
    if (!set || std::find(policies.begin(), policies.end(), policy) != policies.end()) return;
    throw UsageError(std::string(option) + ": has no effect without --policies " +
                     std::string(name_of(policy)));
  };
  needs("--half-life", flags.options.lfu_half_life_tokens != defaults.lfu_half_life_tokens,
        ReplayPolicy::kLfu);
  needs("--beta", flags.options.scored_beta != defaults.scored_beta, ReplayPolicy::kScored);
}

void run_replay(const ReplayFlags& flags) {
  check_effects(flags);
  const Trace trace = read_trace(flags.file, {.accept_cut = flags.accept_cut});
  Totals totals;
  for (const TraceStep& step : trace.steps) {
    totals.steps += !flags.decode_only || step.kind == StepKind::kDecode;
  }
  if (totals.steps == 0) {
    throw Error(ErrorCode::kInvalidArgument, flags.file + (trace.complete ? "" : ": was cut short") +
                                                 ": no " + (flags.decode_only ? "decode steps" : "steps") +
                                                 " to replay");
  }
  if (!trace.complete) {
    print_message(flags.file + ": was cut short; its " +
                  counted(trace.steps.size(), "complete step is", "complete steps are") + " replayed");
  }
  std::vector<Line> lines;
  for (const int64_t slots : slots_of(flags.slots, trace.model)) {
    const ReplayCalls calls = make_replay_calls(trace, slots, flags.decode_only);
    totals.tokens = calls.tokens;
    totals.used_experts = calls.distinct_keys;
    const double share = static_cast<double>(slots) / static_cast<double>(trace.model.all_experts());
    for (const ReplayPolicy policy : policies_of(flags.policies)) {
      lines.push_back({policy, slots, share, replay(calls, policy, flags.options)});
    }
  }
  flags.json ? print_json(trace, totals, lines) : print_table(trace, totals, lines);
}

std::string check_slots(const std::string& text) {
  const std::optional<SlotCount> count = read_slot_count(text);
  if (count && count->problem().empty()) return {};
  return "\"" + text + "\" is no number of slots" + (count ? " (" + count->problem() + ")" : "") +
         "; give counts or shares of all experts: 64,128,25%";
}

std::string check_policy(const std::string& name) {
  if (name == "all" || parse_policy(name)) return {};
  return "\"" + name + "\" is no policy; they are: " + policy_names();
}

}  // namespace

void add_trace_replay(Command& trace) {
  auto flags = std::make_shared<ReplayFlags>();
  Command command = trace.subcommand("replay", "Hit rates of eviction policies on a recorded trace");
  command.footer(
      "One pool of slots holds experts of all layers, as the engine's. An expert counts once for each layer "
      "and "
      "step. Prefill steps that need more experts than there are slots run in parts. No policy can have more "
      "hits than belady, which knows the future.");
  command.option("file", flags->file, "Trace that `sluice trace record` wrote").required();
  command.option("--slots", flags->slots, "Slots of the pool, counts or shares of all experts: 64,128,25%")
      .required()
      .separated_by(',')
      .check(check_slots, "slots");
  command.option("--policies", flags->policies, "Any of " + policy_names())
      .separated_by(',')
      .check(check_policy, "policies")
      .show_default();
  command.flag("--decode-only", flags->decode_only, "Leave out prefill steps");
  command.flag("--accept-cut", flags->accept_cut,
               "Replay the complete steps of a recording that was cut short");
  command
      .option("--half-life", flags->options.lfu_half_life_tokens, "lfu: tokens after which a use counts half")
      .range(1, kLfuMaxHalfLife)
      .show_default();
  command
      .option("--beta", flags->options.scored_beta,
              "scored: tokens of age that a whole round of layers until the next turn weighs")
      .range(0, 1'000'000)
      .show_default();
  command.flag("--json", flags->json, "Print one JSON object");
  command.action([flags] { run_replay(*flags); });
}

}  // namespace sluice::apps
