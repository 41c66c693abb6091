// The resources of a simulated card, and who has them.
//
// Link: in each direction one DMA at a time, the highest priority first, never interrupted. Kernels that read
// or write host memory share the direction's rate with it and with each other, evenly.
// Compute: a kernel takes a share of the card's blocks. It starts at once where its share is free. Where the
// card is full it waits until kernels of its own or a higher priority have ended; from kernels of a lower
// priority it gets its blocks at the end of their running wave. A displaced kernel goes on with what is left.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "device/timed/machine_model.h"

namespace sluice {

enum class LinkDirection { kToDevice = 0, kToHost = 1 };

/// An operation as the card sees it. Works in microseconds at full rate; it ends when all of them are done.
struct CardJob {
  size_t lane = 0;
  int priority = 0;
  bool is_dma = false;                 // then link_us has exactly one direction
  double compute_us = 0;               // of a kernel
  double share = 1;                    // of the card's blocks
  std::array<double, 2> link_us = {};  // by direction
  double ready_us = 0;                 // since when it could run
  double start_us = -1;                // when it began
};

class Card {
 public:
  explicit Card(const MachineModel& model) : model_(model) {}

  void submit(const CardJob& job) { waiting_.push_back(job); }
  /// Starts what may start at `now_us`; returns the lanes of the started jobs in their order.
  std::vector<size_t> admit(double now_us);
  /// When something ends or may start next; infinity if nothing runs.
  double next_event_us(double now_us) const;
  /// Lets the running jobs go on to `to_us` (not after next_event_us) and returns those that end.
  std::vector<CardJob> advance(double now_us, double to_us);

  double link_busy_us(LinkDirection direction) const { return link_busy_us_[static_cast<size_t>(direction)]; }
  double compute_busy_us() const { return compute_busy_us_; }

 private:
  bool may_start(const CardJob& job, double now_us) const;
  /// When kernels of a lower priority make place for `job`, waiting since its ready_us.
  double place_us(const CardJob& job, double now_us) const;
  bool fits_above_lower(const CardJob& job) const;
  std::vector<double> compute_rates() const;  // of running_
  double link_rate(size_t direction) const;

  MachineModel model_;
  std::vector<CardJob> waiting_, running_;
  std::array<double, 2> link_busy_us_ = {};
  double compute_busy_us_ = 0;
};

}  // namespace sluice
