// The flags of experts in slots, and the report, through the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "apps/program.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr const char* kComparisonSwitches[] = {
    "--prefill-overlap",  "--prefill-copy-priority", "--prefill-invalidate",
    "--prefill-hit",      "--prefill-ring",          "--prefill-group",
    "--lookahead-stream", "--lock-host-rows",        "--host-memory-limit"};
constexpr const char* kCommonSwitches[] = {
    "--expert-slots",  "--prefill-mode", "--lookahead",  "--lookahead-budget",
    "--expert-policy", "--audit",        "--report",     "--residency",
    "--warm-from",     "--numa",         "--cpu-experts"};

/// `eval` of a tiny checkpoint: 3 MoE layers of 8 experts, 2 a token.
class ExpertFlags : public ::testing::Test {
 protected:
  void SetUp() override {
    Json ids = Json::array();
    for (int i = 0; i < 30; ++i) ids.push_back((i * 37 + 5) % 320);
    write_file_atomically(ids_, ids.dump());
  }
  Arguments eval(const Arguments& more) const {
    Arguments all = {"eval", "--model", golden_folder("qwen3_moe"), "--ids", ids_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome run(const Arguments& more) const {
    const Outcome outcome = run_program(eval(more));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome;
  }
  Json report(Arguments more) const {
    const std::string file = folder_ / "report.json";
    more.insert(more.end(), {"--report", file});
    run(more);
    return Json::parse(read_text_file(file));
  }

  TemporaryFolder folder_;
  const std::string ids_ = folder_ / "ids.json";
};

TEST_F(ExpertFlags, BadNumbersOfSlotsAreOneLine) {
  expect_wrong_usage(eval({"--expert-slots", "many"}),
                     {"--expert-slots many:", "a number, a percentage such as 25%, all or auto"});
  expect_wrong_usage(eval({"--expert-slots", "1e1"}), {"--expert-slots 1e1:", "a number, a percentage"});
  expect_wrong_usage(eval({"--expert-slots", "0"}), {"--expert-slots 0: experts need some slots"});
  expect_refusal(eval({"--expert-slots", "1"}), {"--expert-slots 1:", "at least 2 are needed"});
  expect_refusal(eval({"--expert-slots", "99999999999999999999"}), {"only 24 experts"});
  expect_refusal(eval({"--expert-slots", "25"}), {"--expert-slots 25:", "only 24 experts"});
  expect_refusal(eval({"--expert-slots", "5%"}), {"rounds to 1 slots", "at least 2 are needed"});
  expect_wrong_usage(eval({"--expert-slots", "101%"}), {"more than 100%"});
}

TEST_F(ExpertFlags, BadRingsAndBudgetsAreOneLine) {
  expect_refusal(eval({"--expert-slots", "8", "--prefill-ring", "10"}),
                 {"--prefill-ring 10 does not fit", "an even number from 2 to 8"});
  expect_refusal(eval({"--expert-slots", "8", "--prefill-ring", "3"}), {"--prefill-ring 3 does not fit"});
  expect_wrong_usage(eval({"--expert-slots", "8", "--lookahead-budget", "0"}),
                     {"--lookahead-budget 0", "a number from 1 up, or auto"});
  expect_wrong_usage(eval({"--expert-slots", "8", "--lookahead-budget", "4x"}), {"--lookahead-budget 4x"});
  expect_wrong_usage(eval({"--expert-slots", "8", "--prefill-group", "0"}),
                     {"--prefill-group 0", "a number from 1 up, or auto"});
}

TEST_F(ExpertFlags, AReportWithoutSlotsIsRefusedBeforeAnythingRuns) {
  expect_wrong_usage(eval({"--report", folder_ / "report.json"}), {"--report", "--expert-slots"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "report.json"));
}

TEST_F(ExpertFlags, UnknownWordsAreWrongUsage) {
  for (const char* flag :
       {"--prefill-mode", "--lookahead", "--expert-policy", "--cpu-experts", "--prefill-overlap",
        "--prefill-copy-priority", "--prefill-invalidate", "--prefill-hit"}) {
    const Outcome outcome = run_program(eval({flag, "sideways"}));
    EXPECT_EQ(outcome.exit_code, 2) << flag;
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr(std::string(flag) + ": \"sideways\" is none of "));
  }
}

TEST(ExpertHelp, ComparisonSwitchesAreInTheAdvancedHelpAlone) {
  for (const std::string command : {"run", "chat", "eval"}) {
    SCOPED_TRACE(command);
    const Outcome common = run_program({command, "--help"}), all = run_program({command, "--help-advanced"});
    EXPECT_EQ(common.exit_code, 0);
    EXPECT_EQ(all.exit_code, 0);
    for (const char* flag : kCommonSwitches) {
      EXPECT_THAT(common.out, HasSubstr(flag));
      EXPECT_THAT(all.out, HasSubstr(flag));
    }
    for (const char* flag : kComparisonSwitches) {
      EXPECT_THAT(common.out, Not(HasSubstr(flag)));
      EXPECT_THAT(all.out, HasSubstr(flag));
    }
  }
}

TEST_F(ExpertFlags, FewSlotsAllSlotsAndNoneWriteTheSameFile) {
  const auto file = [&](const std::string& slots, const Arguments& more = {}) {
    const std::string path = folder_ / (slots + ".safetensors");
    Arguments all = {"--expert-slots", slots, "--logits",      path, "--greedy", "8",
                     "--chunk",        "7",   "--decode-from", "20"};
    if (slots != "auto") all.insert(all.end(), {"--audit", "1"});
    all.insert(all.end(), more.begin(), more.end());
    run(all);
    return read_text_file(path);
  };
  const std::string none = file("auto");
  EXPECT_GT(none.size(), 30 * 320 * sizeof(float));
  EXPECT_TRUE(file("16") == none);
  EXPECT_TRUE(file("all") == none);
  EXPECT_TRUE(file("2", {"--prefill-mode", "stream", "--prefill-invalidate", "layer"}) == none);
  EXPECT_TRUE(file("10", {"--prefill-mode", "layer-major"}) == none);
  EXPECT_TRUE(file("11", {"--prefill-mode", "layer-major", "--prefill-group", "14"}) == none);
  EXPECT_TRUE(file("9", {"--prefill-hit", "d2d", "--lookahead", "off"}) == none);
}

TEST_F(ExpertFlags, TheReportHasTheDocumentedFieldsAndTheyAddUp) {
  const Json json =
      report({"--expert-slots", "12", "--decode-from", "20", "--chunk", "10", "--prefill-mode", "stream"});
  const Json& total = json.at("total");
  ASSERT_EQ(json.at("layers").size(), 3u);
  for (const char* name : {"routed", "hits", "misses", "cpu", "predicted", "predicted_used", "touched",
                           "touched_misses", "touched_cpu"}) {
    uint64_t sum = 0;
    for (const Json& layer : json["layers"]) sum += layer.at(name).get<uint64_t>();
    EXPECT_EQ(total.at(name), sum) << name;
  }
  uint64_t demand = 0;
  for (const Json& layer : json["layers"]) {
    EXPECT_EQ(layer["routed"], layer["hits"].get<uint64_t>() + layer["misses"].get<uint64_t>());
    EXPECT_EQ(layer.at("cpu"), 0);
    EXPECT_EQ(layer.at("bytes").at("demand"),
              layer["misses"].get<uint64_t>() * layer.at("row_bytes").get<uint64_t>());
    EXPECT_TRUE(layer["bytes"].contains("predicted") && layer["bytes"].contains("touched"));
    demand += layer["bytes"]["demand"].get<uint64_t>();
  }
  EXPECT_EQ(total["routed"], 3 * 10 * 2);  // 10 tokens were decoded, 2 experts each in 3 layers
  EXPECT_EQ(total.at("bytes").at("demand"), demand);
  for (const char* name : {"streamed", "touched", "predicted_used", "predicted_wasted"}) {
    EXPECT_TRUE(total["bytes"].at(name).is_number_unsigned()) << name;
  }
  for (const char* name : {"late", "duplicate"}) {
    uint64_t sum = 0;
    for (const Json& layer : json["layers"]) sum += layer.at("bytes").at(name).get<uint64_t>();
    EXPECT_EQ(total["bytes"].at(name), sum) << name;
  }
  EXPECT_EQ(total.at("slots"), 12);
  EXPECT_EQ(total.at("ring_slots"), 6);
  EXPECT_EQ(total.at("decode_steps"), 10);
  ASSERT_EQ(total.at("passes").size(), 2u);
  uint64_t streamed = 0;
  for (const Json& pass : total["passes"]) {
    EXPECT_EQ(pass.at("way"), "stream");
    EXPECT_EQ(pass.at("tokens"), 10);
    EXPECT_GE(pass.at("resident_rows"), 0);
    EXPECT_GT(pass.at("predicted_ms"), 0.0);
    EXPECT_GT(pass.at("actual_ms"), 0.0);
    streamed += pass.at("streamed_bytes").get<uint64_t>();
  }
  EXPECT_EQ(total["bytes"]["streamed"], streamed);
  EXPECT_EQ(total.at("host_waits").at("residents of a pass"), 2);
  EXPECT_EQ(total["host_waits"].at("logits"), 12);
}

TEST_F(ExpertFlags, TheReportSaysHowManyChunksWentTogetherAndWhyAForcedWayWasNotTaken) {
  const Json group = report({"--expert-slots", "12", "--chunk", "8", "--prefill-mode", "layer-major"});
  ASSERT_EQ(group["total"].at("passes").size(), 1u);
  EXPECT_EQ(group["total"]["passes"][0].at("way"), "layer-major");
  EXPECT_EQ(group["total"]["passes"][0].at("chunks"), 4);
  EXPECT_EQ(group["total"]["passes"][0].at("predicted_bytes"),
            group["total"]["passes"][0].at("streamed_bytes"));
  EXPECT_EQ(group["total"].at("pass_totals").at("layer-major").at("tokens"), 30);
  const Json fallen = report({"--expert-slots", "12", "--chunk", "30", "--prefill-mode", "touched"});
  EXPECT_EQ(fallen["total"].at("passes")[0].at("way"), "stream");
  EXPECT_EQ(fallen["total"]["passes"][0].at("fallback"),
            "touched does not fit: 30 tokens may need 8 experts of a layer, and half of the ring holds 3");
}

TEST_F(ExpertFlags, ExpertsOnTheCpuWriteTheSameFileAndAreReported) {
  const auto run_with = [&](const std::string& cpu) {
    const std::string path = folder_ / (cpu + ".safetensors");
    const Json json = report({"--expert-slots", "9", "--cpu-experts", cpu, "--logits", path, "--chunk", "7",
                              "--decode-from", "14", "--audit", "1", "--prefill-mode", "stream"});
    for (const Json& layer : json["layers"]) {
      const auto count = [&](const char* name) { return layer.at(name).get<uint64_t>(); };
      EXPECT_EQ(count("routed"), count("hits") + count("misses") + count("cpu"));
      EXPECT_EQ(layer["bytes"]["demand"], count("misses") * count("row_bytes"));
    }
    return std::pair(read_text_file(path), json.at("total"));
  };
  const auto [off, off_total] = run_with("off");
  const auto [always, always_total] = run_with("always");
  const auto [automatic, auto_total] = run_with("auto");
  EXPECT_TRUE(always == off);
  EXPECT_TRUE(automatic == off);
  EXPECT_EQ(off_total.at("cpu"), 0);
  EXPECT_FALSE(off_total.contains("cpu_experts"));
  EXPECT_GT(always_total.at("cpu"), 0);
  EXPECT_EQ(always_total.at("misses"), 0);
  EXPECT_EQ(always_total.at("cpu_experts").at("mode"), "always");
  EXPECT_EQ(always_total["cpu_experts"].at("experts"), always_total["cpu"].get<uint64_t>() +
                                                           always_total["touched_cpu"].get<uint64_t>() +
                                                           always_total["streamed_cpu"].get<uint64_t>());
  EXPECT_GT(always_total["streamed_cpu"], 0);
  EXPECT_GT(always_total["passes"][0].at("cpu_experts"), 0);
  EXPECT_EQ(always_total["cpu_experts"].at("silences"), 0);
  EXPECT_EQ(auto_total.at("cpu_experts").at("mode"), "auto");
  EXPECT_TRUE(auto_total["cpu_experts"].at("verdict").is_string());
  EXPECT_TRUE(auto_total["cpu_experts"].at("pass_verdict").is_string());
}

TEST_F(ExpertFlags, EveryForwardsPassIsReportedWithItsWay) {
  const Json json =
      report({"--expert-slots", "all", "--chunk", "25", "--prefill-mode", "touched", "--prefill-ring", "16"});
  ASSERT_EQ(json["total"].at("passes").size(), 2u);
  EXPECT_EQ(json["total"]["passes"][0].at("way"), "touched");  // 25 tokens
  EXPECT_EQ(json["total"]["passes"][1].at("way"), "ensure");   // 5 tokens
  EXPECT_FALSE(json["total"].at("host_waits").contains("residents of a pass"));
  EXPECT_GT(json["total"].at("touched"), 0);
}

TEST_F(ExpertFlags, ASavedResidencyMakesTheNextStartWarmAndChangesNoResult) {
  const std::string saved = folder_ / "experts", file = folder_ / "logits";
  const auto evaluate = [&](const Arguments& more) {
    Arguments all = {"--expert-slots", "12", "--decode-from", "0", "--logits", file, "--lookahead", "off"};
    all.insert(all.end(), more.begin(), more.end());
    const Json json = report(all);
    return std::pair(read_text_file(file), json.at("total"));
  };
  const auto [cold, cold_total] = evaluate({});
  const auto [first, first_total] = evaluate({"--residency", saved});
  const auto [second, second_total] = evaluate({"--residency", saved});
  EXPECT_TRUE(first == cold);
  EXPECT_TRUE(second == cold);
  EXPECT_EQ(first_total.at("warm_filled"), 0);
  EXPECT_EQ(second_total.at("warm_filled"), 12);
  EXPECT_EQ(second_total.at("bytes").at("warm"),
            12 * cold_total.at("bytes").at("demand").get<int64_t>() / cold_total.at("misses").get<int64_t>());
  EXPECT_LT(second_total.at("misses"), cold_total.at("misses"));
  EXPECT_EQ(second_total.at("host_waits").at("warm fill"), 1);
}

TEST_F(ExpertFlags, ResidencyFilesThatAreCutShortOrOfAnotherModelAreOneLine) {
  const std::string saved = folder_ / "experts";
  run({"--expert-slots", "12", "--residency", saved});
  const std::string bytes = read_text_file(saved);
  write_file_atomically(saved, bytes.substr(0, bytes.size() - 3));
  expect_refusal(eval({"--expert-slots", "12", "--residency", saved}), {saved, "cut short", "remove it"});
  write_file_atomically(saved, bytes);
  expect_refusal({"eval", "--model", golden_folder("qwen3_moe_nvfp4"), "--ids", ids_, "--expert-slots", "12",
                  "--residency", saved},
                 {saved, "of another model", "remove it"});
  write_file_atomically(saved, "[]");
  expect_refusal(eval({"--expert-slots", "12", "--residency", saved}),
                 {saved, "no list of resident experts"});
  expect_wrong_usage(eval({"--residency", saved}), {"--residency", "no slots", "--expert-slots"});
  expect_refusal(eval({"--expert-slots", "12", "--residency", folder_ / "none/experts"}),
                 {"none/experts: cannot create"});
}

TEST_F(ExpertFlags, ATraceMakesTheStartWarm) {
  const std::string trace = folder_ / "trace";
  const Outcome recorded = run_program({"trace", "record", "--model", golden_folder("qwen3_moe"), "--ids",
                                        ids_, "--decode-from", "0", "--max-tokens", "0", "--out", trace});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  const Arguments slots = {"--expert-slots", "12", "--decode-from", "0", "--lookahead", "off"};
  Arguments warm = slots;
  warm.insert(warm.end(), {"--warm-from", trace});
  const Json cold_total = report(slots).at("total"), warm_total = report(warm).at("total");
  EXPECT_EQ(warm_total.at("warm_filled"), 12);
  EXPECT_LT(warm_total.at("misses"), cold_total.at("misses"));

  const std::string bytes = read_text_file(trace);
  write_file_atomically(trace, bytes.substr(0, bytes.size() - 3));
  expect_refusal(eval(warm), {trace, "cut short"});
  write_file_atomically(trace, bytes);
  expect_refusal({"eval", "--model", golden_folder("qwen3_moe_nvfp4"), "--ids", ids_, "--expert-slots", "12",
                  "--warm-from", trace},
                 {trace, "another model"});
  expect_wrong_usage(eval({"--warm-from", trace}), {"--warm-from", "no slots"});
}

TEST_F(ExpertFlags, ExpertRowsThatDoNotFitNameTheLineOfThePlanAndTheLimit) {
  expect_refusal(eval({"--host-memory-limit", "20kB"}),
                 {"host memory is too small", "\"expert rows\"", "20.00 kB are free", "--host-memory-limit",
                  "quantise"});
  expect_wrong_usage(eval({"--host-memory-limit", "many"}), {"--host-memory-limit many", "16GB"});
  run({"--host-memory-limit", "1GB"});
}

TEST_F(ExpertFlags, NumaPoliciesAreCheckedAndReported) {
  expect_wrong_usage(eval({"--numa", "node:4000"}), {"--numa node:4000", "interleave", "K one of"});
  expect_wrong_usage(eval({"--numa", "west"}), {"--numa west"});
  for (const char* policy : {"gpu", "interleave"}) {
    const Json rows = report({"--expert-slots", "8", "--numa", policy}).at("total").at("host_rows");
    uint64_t known = 0;
    for (const auto& [node, bytes] : rows.at("node_bytes").items()) known += bytes.get<uint64_t>();
    EXPECT_TRUE(known > 0 || !rows.at("node_refusal").get<std::string>().empty()) << rows.dump();
    EXPECT_EQ(rows.at("locked_bytes"), 0) << "the host backend locks nothing unless asked";
  }
}

/// Without the right to lock pages, for this process and the programs that it starts. Root's right to lock
/// beyond the limit goes for good: it has to leave the set that a started program gets.
class NoLockedPages {
 public:
  NoLockedPages() {
    ::prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
    ::syscall(SYS_capget, &header, sets);
    sets[0].effective &= ~(1u << CAP_IPC_LOCK);
    ::syscall(SYS_capset, &header, sets);
    ::getrlimit(RLIMIT_MEMLOCK, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_MEMLOCK, &none);
    char page[4096];
    enforced_ = ::mlock(page, sizeof page) != 0;
    if (!enforced_) ::munlock(page, sizeof page);
  }
  ~NoLockedPages() { ::setrlimit(RLIMIT_MEMLOCK, &before_); }
  bool enforced() const { return enforced_; }

 private:
  rlimit before_{};
  bool enforced_ = false;
};

TEST_F(ExpertFlags, APageLockThatIsRefusedNamesUlimitAndChangesNoResult) {
  const std::string file = folder_ / "logits";
  const auto logits = [&](const Arguments& more) {
    Arguments all = {"--expert-slots", "9", "--decode-from", "20", "--chunk", "20", "--logits", file};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome outcome = run(all);
    return std::pair(read_text_file(file), outcome.err);
  };
  const auto [plain, quiet] = logits({});
  EXPECT_THAT(quiet, Not(HasSubstr("ulimit")));
  const NoLockedPages none;
  if (!none.enforced()) GTEST_SKIP() << "this user may lock pages beyond the limit";
  const auto [staged, note] = logits({"--lock-host-rows", "on"});
  EXPECT_TRUE(staged == plain);
  EXPECT_THAT(note, HasSubstr("ulimit -l"));
  EXPECT_THAT(note, HasSubstr("MoE layers 0-2 are staged"));
  expect_refusal(eval({"--expert-slots", "9", "--lock-host-rows", "required"}),
                 {"--lock-host-rows required", "MoE layer 0", "ulimit -l"});
}

}  // namespace
}  // namespace sluice::testing
