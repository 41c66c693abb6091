// A fluid simulation: between two events every job goes on at a constant rate.
#include "device/timed/card.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = 1e-7;  // of a microsecond, and of a share

size_t direction_of(const CardJob& dma) { return dma.link_us[0] > 0 ? 0 : 1; }

bool goes_first(const CardJob& a, const CardJob& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.ready_us != b.ready_us) return a.ready_us < b.ready_us;
  return a.lane < b.lane;
}

}  // namespace

bool Card::fits_above_lower(const CardJob& job) const {
  double used = job.share;
  for (const CardJob& other : running_) {
    if (!other.is_dma && other.compute_us > 0 && other.priority >= job.priority) used += other.share;
  }
  return used <= 1 + kEpsilon;
}

double Card::place_us(const CardJob& job, double now_us) const {
  double used = job.share, boundary = kInfinity;
  for (const CardJob& other : running_) {
    if (other.is_dma || other.compute_us <= 0) continue;
    used += other.share;
    if (other.priority >= job.priority) continue;
    const double waves = std::floor((job.ready_us - other.start_us + kEpsilon) / model_.wave_us) + 1;
    boundary = std::min(boundary, other.start_us + std::max(waves, 1.0) * model_.wave_us);
  }
  return used <= 1 + kEpsilon ? now_us : std::max(boundary, now_us);
}

bool Card::may_start(const CardJob& job, double now_us) const {
  if (job.is_dma) {
    return std::none_of(running_.begin(), running_.end(), [&](const CardJob& other) {
      return other.is_dma && direction_of(other) == direction_of(job);
    });
  }
  return fits_above_lower(job) && place_us(job, now_us) <= now_us + kEpsilon;
}

std::vector<size_t> Card::admit(double now_us) {
  std::vector<size_t> started;
  std::stable_sort(waiting_.begin(), waiting_.end(), goes_first);
  for (auto job = waiting_.begin(); job != waiting_.end();) {
    if (!may_start(*job, now_us)) {
      ++job;
      continue;
    }
    job->start_us = now_us;
    started.push_back(job->lane);
    running_.push_back(*job);
    job = waiting_.erase(job);
  }
  return started;
}

// The highest priority is served first; whoever comes last gets what is left.
std::vector<double> Card::compute_rates() const {
  std::vector<size_t> order;
  for (size_t i = 0; i < running_.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return running_[a].priority > running_[b].priority; });
  std::vector<double> rates(running_.size(), 0);
  double left = 1;
  for (const size_t i : order) {
    if (running_[i].is_dma || running_[i].compute_us <= 0) continue;
    rates[i] = std::min(1.0, left / running_[i].share);
    left -= rates[i] * running_[i].share;
    if (left < kEpsilon) left = 0;
  }
  return rates;
}

double Card::link_rate(size_t direction) const {
  const auto users = std::count_if(running_.begin(), running_.end(),
                                   [&](const CardJob& job) { return job.link_us[direction] > 0; });
  return users > 0 ? 1.0 / static_cast<double>(users) : 0;
}

double Card::next_event_us(double now_us) const {
  double next = kInfinity;
  const std::vector<double> rates = compute_rates();
  for (size_t i = 0; i < running_.size(); ++i) {
    const CardJob& job = running_[i];
    if (job.compute_us > 0 && rates[i] > 0) next = std::min(next, now_us + job.compute_us / rates[i]);
    for (size_t d = 0; d < 2; ++d) {
      if (job.link_us[d] > 0) next = std::min(next, now_us + job.link_us[d] / link_rate(d));
    }
  }
  for (const CardJob& job : waiting_) {
    if (!job.is_dma && fits_above_lower(job)) next = std::min(next, place_us(job, now_us));
  }
  return next;
}

std::vector<CardJob> Card::advance(double now_us, double to_us) {
  const double step = to_us - now_us;
  const std::vector<double> rates = compute_rates();
  const std::array<double, 2> link = {link_rate(0), link_rate(1)};
  if (std::any_of(rates.begin(), rates.end(), [](double rate) { return rate > 0; })) compute_busy_us_ += step;
  for (size_t d = 0; d < 2; ++d) link_busy_us_[d] += link[d] > 0 ? step : 0;
  std::vector<CardJob> ended;
  size_t kept = 0;
  for (size_t i = 0; i < running_.size(); ++i) {
    CardJob job = running_[i];
    const auto spend = [&](double& work, double rate) {
      work -= step * rate;
      if (work < kEpsilon) work = 0;
    };
    spend(job.compute_us, rates[i]);
    for (size_t d = 0; d < 2; ++d) spend(job.link_us[d], link[d]);
    if (job.compute_us > 0 || job.link_us[0] > 0 || job.link_us[1] > 0) {
      running_[kept++] = job;
    } else {
      ended.push_back(job);
    }
  }
  running_.resize(kept);
  return ended;
}

}  // namespace sluice
