// Tables and JSON of a plan.
#include "apps/plan_output.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/units.h"

namespace sluice::apps {

using Json = nlohmann::ordered_json;

namespace {

constexpr double kLinkIsTheLimit = 0.9;  // of the time that it is busy, with both switches

}  // namespace

void print_memory(std::FILE* out, const MemoryPlan& plan, const std::vector<PlannedCard>& cards) {
  const auto print = [out](const std::string& name, const std::string& bytes, const std::string& note) {
    std::fprintf(out, "%-16s %12s   %s\n", name.c_str(), bytes.c_str(), note.c_str());
  };
  for (const MemoryLine& line : plan.lines()) {
    print(line.name, line.takes_the_rest ? "auto" : format_bytes(line.bytes),
          (line.on_device ? "device" : "host") + (line.note.empty() ? "" : "; " + line.note));
  }
  for (const PlannedCard& card : cards) {
    const std::string rest =
        plan.takes_the_rest() ? " and slots get what is left: " + std::to_string(card.fit.rest_count) : "";
    print(card.name, format_bytes(card.bytes),
          card.fit.fits ? "fits: needs " + format_bytes(card.fit.need_bytes) + rest
                        : "DOES NOT FIT: " + describe_misfit(card.fit));
  }
}

void print_forecasts_head(std::FILE* out, const SimulatedRequest& request) {
  std::fprintf(
      out,
      "\nforecast for a prompt of %lld tokens and %lld more, by simulation; the four arms: time to the first "
      "token\n"
      "where a streaming prompt moves every expert, with --prefill-copy-priority high, --prefill-invalidate "
      "epoch\n",
      static_cast<long long>(request.prompt_tokens), static_cast<long long>(request.decode_tokens));
  std::fprintf(
      out,
      "card          slots   first token   link busy      decode   link busy  neither priority    epoch     "
      "both\n");
}

void print_forecast(std::FILE* out, const PlannedCard& card) {
  const Forecast& forecast = *card.forecast;
  const SimulatedRun& run = forecast.run;
  std::fprintf(out, "%-12s %6lld %10.2f ms %9.1f %% %8.1f /s %9.1f %%", card.name.c_str(),
               static_cast<long long>(forecast.slots), run.ttft_ms, 100 * run.prefill_link_share,
               run.tokens_per_s, 100 * run.decode_link_share);
  for (const double ms : forecast.arms_ttft_ms) std::fprintf(out, " %8.2f", ms);
  std::fprintf(out, forecast.arms_ttft_ms.empty() ? "\n" : " ms\n");
  if (forecast.arms_ttft_ms.empty() || forecast.arms_link_share >= kLinkIsTheLimit) return;
  std::fprintf(out,
               "             the arms tell little here: with rows of %s launches take longer than copies "
               "(link busy %.1f "
               "%%);\n"
               "             see \"When launches are the limit\" in docs/plan.md\n",
               format_bytes(forecast.row_bytes).c_str(), 100 * forecast.arms_link_share);
}

namespace {

Json forecast_json(const Forecast& forecast) {
  Json json = {{"slots", forecast.slots},
               {"ttft_ms", forecast.run.ttft_ms},
               {"prefill_link_share", forecast.run.prefill_link_share},
               {"tokens_per_s", forecast.run.tokens_per_s},
               {"decode_link_share", forecast.run.decode_link_share}};
  if (!forecast.arms_ttft_ms.empty()) json["arms_link_share"] = forecast.arms_link_share;
  for (size_t i = 0; i < forecast.arms_ttft_ms.size(); ++i) {
    json["arms_ttft_ms"][published_arms()[i].name] = forecast.arms_ttft_ms[i];
  }
  return json;
}

}  // namespace

std::string plan_json(const MemoryPlan& plan, const std::vector<PlannedCard>& cards) {
  Json out;
  auto& lines = out["lines"] = Json::array();
  for (const MemoryLine& line : plan.lines()) {
    lines.push_back({{"name", line.name},
                     {"place", line.on_device ? "device" : "host"},
                     {"bytes", line.bytes},
                     {"takes_the_rest", line.takes_the_rest},
                     {"note", line.note}});
  }
  auto& list = out["cards"] = Json::array();
  for (const PlannedCard& card : cards) {
    Json entry = {{"name", card.name},
                  {"bytes", card.bytes},
                  {"needs_bytes", card.fit.need_bytes},
                  {"fits", card.fit.fits}};
    if (card.fit.rest_count > 0) entry["slots"] = card.fit.rest_count;
    if (!card.fit.fits) {
      entry["over"] = card.fit.over;
      entry["would_fit"] = card.fit.advice;
      entry["least_bytes"] = card.fit.least_bytes;
    }
    if (card.forecast) entry["forecast"] = forecast_json(*card.forecast);
    list.push_back(std::move(entry));
  }
  return out.dump(2) + "\n";
}

}  // namespace sluice::apps
