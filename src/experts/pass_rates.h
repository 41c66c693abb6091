// Learns what passes take on this machine.
#pragma once

#include <array>
#include <cstdint>

#include "experts/pass_cost.h"

namespace sluice {

/// What one pass did. ms is the whole pass, bytes what crossed the link for it (a forecast where only the
/// device knows).
struct PassObservation {
  PassWay way = PassWay::kStream;
  int64_t rows = 0;
  double bytes = 0, ms = 0;
};

/// The link's rate comes from copies that were timed by themselves. What is left of a pass after its share of
/// the link is its compute: two numbers, a pass and a token, by weighted least squares over the last dozen
/// passes. How many experts prompts touch comes from counts of the device.
class RateLearner {
 public:
  explicit RateLearner(bool overlap) { rates_.overlap = overlap; }

  void add_copy(double bytes, double ms);
  void add_pass(const PassObservation& pass);
  /// `rows` tokens of one prompt went to `distinct` experts of a layer, on the mean over layers.
  void add_distinct(const ExpertShape& shape, int64_t rows, double distinct);
  /// Of the experts that a prompt wanted, and of all experts, the parts that were absent.
  void add_absence(double of_wanted, double of_all);
  const PassRates& rates() const { return rates_; }

 private:
  void add_compute(double rows, double ms);

  PassRates rates_;
  bool counted_ = false, missed_ = false;           // the spread, the absence are this model's own
  double w_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;  // weighted sums of (rows, compute ms)
};

}  // namespace sluice
