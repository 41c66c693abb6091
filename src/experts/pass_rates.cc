// Rates from passes.
#include "experts/pass_rates.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr double kForget = 0.9;       // weight of the past at each new pass
constexpr double kCopyBlend = 0.25;   // weight of a new copy
constexpr double kCountBlend = 0.25;  // of a new count

void blend(double& known, double value, bool& has_own) {
  known = has_own ? (1 - kCountBlend) * known + kCountBlend * value : value;
  has_own = true;
}
constexpr double kMostlyLink =
    1.15;  // a streaming pass this close to its link time says little about compute

}  // namespace

void RateLearner::add_copy(double bytes, double ms) {
  if (bytes <= 0 || ms <= 0) return;
  const double rate = bytes / ms;
  double& known = rates_.link_bytes_per_ms;
  known = known == 0 ? rate : (1 - kCopyBlend) * known + kCopyBlend * rate;
}

void RateLearner::add_pass(const PassObservation& pass) {
  const double link = rates_.link_bytes_per_ms > 0 ? pass.bytes / rates_.link_bytes_per_ms : 0;
  const auto rows = static_cast<double>(pass.rows);
  if (!streams(pass.way) || !rates_.overlap) return add_compute(rows, std::max(0.0, pass.ms - link));
  // Beside a busy link, compute shows only where it is the longer one, or was thought to be longer than all
  // of it.
  if (pass.ms > kMostlyLink * link || rates_.compute_ms(pass.rows) > pass.ms) add_compute(rows, pass.ms);
}

void RateLearner::add_distinct(const ExpertShape& shape, int64_t rows, double distinct) {
  const std::optional<double> spread = spread_of(shape, rows, distinct);
  if (spread) blend(rates_.spread, *spread, counted_);
}

void RateLearner::add_absence(double of_wanted, double of_all) {
  constexpr double kMost = 2;  // a prompt may want what no other did
  if (of_all > 0) blend(rates_.absence, std::min(kMost, of_wanted / of_all), missed_);
}

void RateLearner::add_compute(double rows, double ms) {
  for (double* sum : {&w_, &x_, &y_, &xx_, &xy_}) *sum *= kForget;
  w_ += 1;
  x_ += rows;
  y_ += ms;
  xx_ += rows * rows;
  xy_ += rows * ms;
  const double spread = w_ * xx_ - x_ * x_;
  if (spread <= 1e-6 * w_ * xx_) {  // one length so far: in proportion
    rates_.compute_ms_per_token = y_ / x_;
    rates_.compute_ms_per_pass = 0;
    return;
  }
  double slope = (w_ * xy_ - x_ * y_) / spread;
  double base = (y_ - slope * x_) / w_;
  if (slope < 0) slope = 0, base = y_ / w_;
  if (base < 0) base = 0, slope = xy_ / xx_;
  rates_.compute_ms_per_token = slope;
  rates_.compute_ms_per_pass = base;
}

}  // namespace sluice
