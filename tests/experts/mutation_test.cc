// The table of mutations: each fence and each ordering rule taken out alone, and what exploration reports.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "device/explored/explore.h"
#include "experts/explore_scenarios.h"

namespace sluice {
namespace {

constexpr uint64_t kFirstSeed = 1;
constexpr int64_t kFenceSchedules = 12;  // races show in the first one; torn bytes and wrong results may not
constexpr int64_t kRuleSchedules = 200;

// "fetched 2", "ready 0a": one fence for each layer or half.
std::string family(const std::string& target) {
  const size_t space = target.rfind(' ');
  if (space == std::string::npos || std::isdigit(static_cast<unsigned char>(target[space + 1])) == 0) {
    return target;
  }
  return target.substr(0, space) + " *";
}

struct Finding {
  int64_t schedules = 0;
  std::string report;  // empty: nothing
};

Finding explore_mutation(const Scenario& scenario, int64_t schedules) {
  const Exploration result = explore_random(scenario, schedules, kFirstSeed);
  Finding finding{result.schedules, {}};
  if (result.violation.has_value()) {
    const std::string& message = result.violation->message;
    finding.report =
        std::string(name_of(result.violation->kind)) + ": " + message.substr(0, message.find_first_of(";\n"));
  }
  return finding;
}

// Host waits of one stream are many fences: the n-th use. All others are one for each event.
struct Removal {
  Fence fence;
  int64_t nth = FenceLog::kEvery;
};

std::string name_of_family(const Removal& removal) {
  Fence fence = removal.fence;
  fence.target = family(fence.target);
  return describe(fence) + (removal.nth > 0 ? ", use " + std::to_string(removal.nth) : "");
}

// What may be taken out of a scenario: every wait that orders something, and every record that one binds to.
// The others are redundant there by happens-before, whatever the schedule.
std::vector<Removal> removals_of(const ProtocolScenario& scenario) {
  ExploredDevice device({.seed = kFirstSeed});
  scenario.scenario()(device);
  device.drain();
  std::set<std::string> waited_for;
  for (const Fence& fence : device.fences()) {
    if (fence.needed > 0) waited_for.insert(fence.target);
  }
  std::vector<Removal> removals;
  for (const Fence& fence : device.fences()) {
    const bool orders = fence.kind == FenceKind::kRecord ? waited_for.count(fence.target) > 0
                        : fence.kind == FenceKind::kDone ? fence.bound > 0
                                                         : fence.needed > 0;
    if (fence.target == kResultEvent || !orders) continue;
    const bool of_stream = fence.target == "compute" || fence.target == "copy";
    if (fence.kind != FenceKind::kHostWait || !of_stream) {
      removals.push_back({fence});
    } else {
      for (int64_t nth = 1; nth <= fence.uses; ++nth) removals.push_back({fence, nth});
    }
  }
  return removals;
}

struct Row {
  int64_t removed = 0, found = 0, most_schedules = 0;
  std::string report;
};
// In the order of first use.
using Rows = std::vector<std::pair<std::string, Row>>;

Row& row_of(Rows& rows, const std::string& name) {
  for (auto& [key, row] : rows) {
    if (key == name) return row;
  }
  return rows.emplace_back(name, Row{}).second;
}

Rows explore_fences(const ProtocolScenario& scenario) {
  Rows rows;
  for (const Removal& removal : removals_of(scenario)) {
    const Scenario without = [&](ExploredDevice& device) {
      device.drop(removal.fence.kind, removal.fence.stream, removal.fence.target, removal.nth);
      scenario.scenario()(device);
    };
    const Finding finding = explore_mutation(without, kFenceSchedules);
    Row& row = row_of(rows, name_of_family(removal));
    ++row.removed;
    if (finding.report.empty()) continue;
    if (row.found++ == 0) row.report = finding.report;
    row.most_schedules = std::max(row.most_schedules, finding.schedules);
  }
  return rows;
}

struct Rule {
  std::string what, scenario;
  bool ProtocolMutations::*broken;
};

std::vector<Rule> rules() {
  using M = ProtocolMutations;
  return {
      {"Whoever overwrites a slot has unmapped it (on the copy stream)", "stream_by_layer",
       &M::keep_region_mapped},
      {"Whoever overwrites a slot has unmapped it (epoch)", "stream_layers", &M::keep_region_mapped},
      {"`floor`: slots of a running pass are nobody's victim", "stream_decode_between", &M::no_floor},
      {"Residents that a pass counts on are nobody's victim", "stream_decode_between", &M::unlist_at_begin},
      {"Experts are adopted before their tile's slots are released", "stream_tiles", &M::adopt_after_release},
      {"One plan of predictions a layer", "decode_lookahead", &M::one_predicted_plan},
      {"One stream writes the slot map (lookahead)", "decode_lookahead", &M::predict_stream_installs},
      {"Slots of the running call are nobody's victim", "decode_tight", &M::forget_running_call},
      {"What the CPU computed in a pass lies in no slot that could be adopted", "stream_cpu",
       &M::adopt_from_cpu},
      {"A forward that was given up takes its call back from the CPU (decode)", "decode_cpu_given_up",
       &M::keep_untaken_call},
      {"A forward that was given up takes its call back from the CPU (pass)", "stream_cpu_given_up_inside",
       &M::keep_untaken_call},
      {"A block's answer is taken from the CPU before the next block is handed over", "layer_major_cpu",
       &M::post_before_take},
  };
}

std::string cell(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

std::string found_in(const Finding& finding) {
  return finding.report.empty() ? "-" : std::to_string(finding.schedules);
}

std::string rule_table() {
  std::ostringstream out;
  out << "| rule | scenario | schedules | first report |\n|---|---|---|---|\n";
  const auto line = [&](const std::string& what, const std::string& scenario, const Finding& finding) {
    EXPECT_FALSE(finding.report.empty()) << what << ": nothing notices";
    out << "| " << what << " | " << scenario << " | " << found_in(finding) << " | " << cell(finding.report)
        << " |\n";
  };
  for (const Rule& rule : rules()) {
    ProtocolMutations mutations;
    mutations.*rule.broken = true;
    const Scenario scenario = find_scenario(rule.scenario).scenario_with(mutations);
    line(rule.what, rule.scenario, explore_mutation(scenario, kRuleSchedules));
  }
  ProtocolMutations mutations;
  mutations.decode_in_any_pass = true;
  line("One stream writes the slot map (no decode inside a pass that unmaps on the copy stream)",
       "stream_by_layer with decode between",
       explore_mutation(decode_inside_layer_invalidation(mutations), kRuleSchedules));
  return out.str();
}

std::string fence_tables(std::map<std::string, std::string>& first_found) {
  std::ostringstream out;
  for (const ProtocolScenario& scenario : protocol_scenarios()) {
    out << "\n### " << scenario.name << "\n" << scenario.what << ".\n\n";
    out << "| taken out | found | schedules | first report |\n|---|---|---|---|\n";
    for (const auto& [name, row] : explore_fences(scenario)) {
      out << "| " << name << " | " << row.found << " of " << row.removed << " | "
          << (row.found > 0 ? std::to_string(row.most_schedules) : "-") << " | " << cell(row.report)
          << " |\n";
      std::string& where = first_found[name];
      if (where.empty() && row.found > 0) where = scenario.name;
    }
  }
  return out.str();
}

std::string document() {
  std::map<std::string, std::string> first_found;
  const std::string fences = fence_tables(first_found);
  std::ostringstream out;
  out << "# Mutations\n\n"
         "What exploration reports when one fence or one rule of the experts' protocols is taken out. A "
         "test\n"
         "regenerates this file and compares it (`ctest -R explore`; `SLUICE_UPDATE=1` rewrites it). Seeds "
         "count\nfrom "
      << kFirstSeed << ", so the numbers of schedules are exact. With everything in place no schedule shows "
      << "a violation.\n\n## Rules\n\n"
      << rule_table()
      << "\n## Fences\n\n"
         "A fence is all calls of one kind with one event on one stream; `*` stands for each layer or half, "
         "and\n\"found\" says how many of them are noticed when they go alone, in at most "
      << kFenceSchedules
      << " schedules. A scenario lists the\nfences that order something in it which nothing else orders "
         "(happens-before shows it for all schedules). A row\nof \"0 of n\" orders something that does not "
         "conflict in that scenario; each fence is found in at least one:\n\n"
         "| fence | first found in |\n|---|---|\n";
  for (const auto& [name, where] : first_found) {
    EXPECT_FALSE(where.empty()) << name << ": no scenario notices that it is gone";
    out << "| " << name << " | " << where << " |\n";
  }
  out << fences
      << "\n## What happens-before has shown to be redundant, and is gone\n\n"
         "- Decode: `predict` waited for `planned l`. It waits for `fetched l`, whose record on `demand` "
         "stands behind\n  demand's own wait for `planned l`.\n"
         "- Touched passes: `demand` waited for `released` of the half that it writes. `planned l` is "
         "recorded on `compute`\n  behind the products and adoptions of all earlier layers.\n";
  return out.str();
}

TEST(explore, RegeneratesTheTableOfMutations) {
  const std::string path = std::string(SLUICE_SOURCE_DIR) + "/docs/mutations.md";
  const std::string text = document();
  if (std::getenv("SLUICE_UPDATE") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  std::ostringstream committed;
  committed << file.rdbuf();
  EXPECT_EQ(text, committed.str()) << path << " is not what exploration finds; SLUICE_UPDATE=1 rewrites it";
}

}  // namespace
}  // namespace sluice
