// The cost model of passes.
#include "experts/pass_cost.h"

#include <algorithm>
#include <cmath>

namespace sluice {

std::string_view name_of(PassWay way) {
  switch (way) {
    case PassWay::kEnsure:
      return "ensure";
    case PassWay::kTouched:
      return "touched";
    case PassWay::kStream:
      return "stream";
    case PassWay::kLayerMajor:
      return "layer-major";
  }
  return "unknown";
}

double distinct_experts(const ExpertShape& shape, double spread, int64_t rows) {
  if (rows == 0) return 0;
  const auto experts = static_cast<double>(shape.experts);
  const double unrelated = std::pow(static_cast<double>(rows), spread);
  return experts * (1 - std::pow(1 - static_cast<double>(shape.top_k) / experts, unrelated));
}

std::optional<double> spread_of(const ExpertShape& shape, int64_t rows, double distinct) {
  constexpr double kNearlyAll = 0.98;  // more says too little about how many tokens would do
  if (rows < 2 || shape.top_k >= shape.experts) return std::nullopt;
  const auto experts = static_cast<double>(shape.experts);
  const double part = std::min(distinct / experts, kNearlyAll);
  const double unrelated = std::log(1 - part) / std::log(1 - static_cast<double>(shape.top_k) / experts);
  return std::clamp(std::log(std::max(1.0, unrelated)) / std::log(static_cast<double>(rows)), 0.0, 1.0);
}

int32_t CpuPart::of(int32_t misses) const {
  const double wish = part * misses;
  return std::clamp(static_cast<int32_t>(round_up ? std::ceil(wish) : wish), 0, misses);
}

double streaming_ms(const PassRates& rates, double bytes, double compute_ms) {
  const double link = rates.link_bytes_per_ms > 0 ? bytes / rates.link_bytes_per_ms : 0;
  return rates.overlap ? std::max(link, compute_ms) : link + compute_ms;
}

namespace {

constexpr double kWorthIt = 0.95;  // of a pass's time, with the CPU

// Leaves a part of the misses of `pass`, a streaming one, to the CPU.
void share_with_cpu(PassForecast& pass, const ExpertShape& shape, const PassRates& rates,
                    const PassQuestion& question, int64_t rows) {
  if (rates.cpu.ms_per_pair <= 0 || rates.link_bytes_per_ms <= 0 || pass.bytes <= 0) return;
  const double row_bytes = static_cast<double>(question.row_bytes), compute = rates.compute_ms(rows);
  const double link_ms = row_bytes / rates.link_bytes_per_ms;  // of an expert
  const double cpu_ms =
      rates.cpu.ms_per_pair * static_cast<double>(rows * shape.top_k) / static_cast<double>(shape.experts);
  CpuPart cpu{link_ms / (link_ms + cpu_ms), false};
  // Less than the products take, the link need not take.
  if (rates.overlap) cpu.part = std::min(cpu.part, std::max(0.0, 1 - compute / pass.ms));
  if (rates.cpu.always) cpu = kFixedCpuPart;
  // Experts are whole: a part that is less than one of a layer's misses is none.
  const double misses = pass.bytes / row_bytes / static_cast<double>(shape.layers);
  if (cpu.of(static_cast<int32_t>(std::lround(misses))) == 0) return;
  const double bytes = (1 - cpu.part) * pass.bytes;
  const double ms = std::max(streaming_ms(rates, bytes, compute), cpu.part * pass.bytes / row_bytes * cpu_ms);
  if (!rates.cpu.always && !(ms < kWorthIt * pass.ms)) return;
  pass.cpu = cpu;
  pass.bytes = bytes;
  pass.ms = ms;
}

int64_t residents(PassWay way, const PassQuestion& question) {
  if (streams(way)) return question.listed;
  return way == PassWay::kTouched ? question.outside_region : question.resident_rows;
}

PassForecast forecast_pass(PassWay way, const ExpertShape& shape, const PassRates& rates,
                           const PassQuestion& question, int64_t rows) {
  const auto all = static_cast<double>(shape.layers * shape.experts);
  const double absent = std::max(0.0, all - static_cast<double>(residents(way, question)));
  const double wanted =
      streams(way) ? all : static_cast<double>(shape.layers) * distinct_experts(shape, rates.spread, rows);
  PassForecast result;
  result.way = way;
  result.absent_part = absent / all;
  const double missing = result.absent_part * (streams(way) ? 1 : rates.absence);
  result.bytes = wanted * std::min(1.0, missing) * static_cast<double>(question.row_bytes);
  if (streams(way)) {
    result.ms = streaming_ms(rates, result.bytes, rates.compute_ms(rows));
    share_with_cpu(result, shape, rates, question, rows);
    return result;
  }
  // A gather starts when the routes are known, and the products wait for it.
  const double link = rates.link_bytes_per_ms > 0 ? result.bytes / rates.link_bytes_per_ms : 0;
  result.ms = link + rates.compute_ms(rows);
  return result;
}

}  // namespace

PassForecast forecast(PassWay way, const ExpertShape& shape, const PassRates& rates,
                      const PassQuestion& question) {
  const int64_t chunk = question.chunk_rows;
  if (way == PassWay::kLayerMajor || chunk == 0 || chunk >= question.rows) {
    return forecast_pass(way, shape, rates, question, question.rows);
  }
  const auto chunks = static_cast<double>(question.rows / chunk);
  const PassForecast full = forecast_pass(way, shape, rates, question, chunk);
  PassForecast result{way, chunks * full.bytes, chunks * full.ms, full.absent_part, false, full.cpu};
  if (question.rows % chunk != 0) {
    const PassForecast rest = forecast_pass(way, shape, rates, question, question.rows % chunk);
    result.bytes += rest.bytes;
    result.ms += rest.ms;
  }
  return result;
}

PassForecast choose_way(PrefillMode mode, const ExpertShape& shape, const PassRates& rates,
                        const PassQuestion& question) {
  if (mode == PrefillMode::kLayerMajor) return forecast(PassWay::kLayerMajor, shape, rates, question);
  PassForecast best = forecast(PassWay::kStream, shape, rates, question);
  if (mode == PrefillMode::kStream) return best;
  const auto consider = [&](PassWay way) {
    const PassForecast other = forecast(way, shape, rates, question);
    // A tie goes against streaming, which empties its region.
    if (other.ms <= best.ms || mode == PrefillMode::kTouched) best = other;
  };
  if (question.ensure_fits) {
    consider(PassWay::kEnsure);
  } else if (question.touched_fits) {
    consider(PassWay::kTouched);
  } else {
    best.fell_back = mode == PrefillMode::kTouched;
  }
  return best;
}

bool layer_major_wins(const ExpertShape& shape, const PassRates& rates, const PassQuestion& question) {
  const PassForecast together = forecast(PassWay::kLayerMajor, shape, rates, question);
  const PassForecast apart = choose_way(PrefillMode::kAuto, shape, rates, question);
  return apart.way == PassWay::kStream ? together.ms <= apart.ms : together.ms < apart.ms;
}

}  // namespace sluice
