// `plan` said that slots get what is left, and forecast with fewer than it advised elsewhere: a tenth of the
// card was kept back that no line named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/program.h"

namespace sluice::testing {
namespace {

nlohmann::json plan(const std::string& slots) {
  const Outcome outcome = run_program({"plan", "--shape", "q36", "--expert-slots", slots, "--simulate",
                                       "rtx5070ti", "--prompt-tokens", "4", "--tokens", "1", "--json"});
  return nlohmann::json::parse(outcome.out);
}

TEST(PlanAndForecast, CountTheSameSlots) {
  const nlohmann::json rest = plan("auto").at("cards")[0], all = plan("all").at("cards")[0];
  const int64_t slots = rest.at("slots");
  EXPECT_EQ(rest.at("forecast").at("slots"), slots);
  EXPECT_EQ(all.at("fits"), false);
  EXPECT_EQ(all.at("would_fit")[0], "--expert-slots " + std::to_string(slots));
  const nlohmann::json named = plan(std::to_string(slots)).at("cards")[0];
  EXPECT_EQ(named.at("fits"), true);
  EXPECT_EQ(named.at("forecast"), rest.at("forecast"));
}

TEST(PlanAndForecast, NameEveryByteOfTheCard) {
  const nlohmann::json json = plan("auto");
  uint64_t lines = 0, slot = 0;
  bool reserve = false;
  for (const nlohmann::json& line : json.at("lines")) {
    if (line.at("place") != "device") continue;
    reserve = reserve || (line.at("name") == "reserve" && line.at("bytes") > 0);
    if (line.at("name") == "expert slots") {
      slot = line.at("bytes").get<uint64_t>() / 8;  // the least: the experts of one token
    } else {
      lines += line.at("bytes").get<uint64_t>();
    }
  }
  EXPECT_TRUE(reserve);
  const nlohmann::json& card = json.at("cards")[0];
  const uint64_t used = lines + card.at("slots").get<uint64_t>() * slot, bytes = card.at("bytes");
  EXPECT_LE(used, bytes);
  EXPECT_GT(used + slot, bytes) << "one slot more does not fit";
}

}  // namespace
}  // namespace sluice::testing
