// The three strategies.
#include "device/explored/chooser.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

namespace sluice {
namespace {

class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  double unit() { return uniform(seed_, next_++); }
  uint64_t below(uint64_t limit) {
    return std::min(limit - 1, static_cast<uint64_t>(unit() * static_cast<double>(limit)));
  }

 private:
  uint64_t seed_, next_ = 0;
};

class RandomChooser final : public Chooser {
 public:
  explicit RandomChooser(uint64_t seed) : draws_(seed) {
    constexpr double kEagerness[] = {0.0, 0.2, 0.5, 0.8, 1.0};
    eagerness_ = kEagerness[draws_.below(std::size(kEagerness))];
    uneven_ = draws_.below(2) == 1;
  }
  uint64_t draw(uint64_t limit) override { return draws_.below(limit); }

 protected:
  size_t choose(std::span<const size_t> threads) override {
    const size_t first = threads[0] == 0 ? 1 : 0;
    if (first == 1 && draws_.unit() >= eagerness_) return 0;
    if (!uneven_) return first + draws_.below(threads.size() - first);
    double total = 0;
    for (const size_t thread : threads.subspan(first)) total += weight(thread);
    double left = draws_.unit() * total;
    for (size_t i = first; i + 1 < threads.size(); ++i) {
      left -= weight(threads[i]);
      if (left < 0) return i;
    }
    return threads.size() - 1;
  }

 private:
  // A stream that rarely gets its turn falls behind by whole layers.
  double weight(size_t thread) {
    while (weights_.size() <= thread) weights_.push_back(draws_.below(2) == 0 ? 1.0 : 0.05);
    return weights_[thread];
  }

  Draws draws_;
  double eagerness_ = 0;
  bool uneven_ = false;
  std::vector<double> weights_;
};

class PriorityChooser final : public Chooser {
 public:
  PriorityChooser(uint64_t seed, int changes, int64_t expected_picks) : draws_(seed) {
    for (int i = 0; i < changes; ++i) {
      changes_.push_back(static_cast<int64_t>(draws_.below(static_cast<uint64_t>(expected_picks))));
    }
  }
  uint64_t draw(uint64_t limit) override { return draws_.below(limit); }

 protected:
  size_t choose(std::span<const size_t> threads) override {
    const size_t best = highest(threads);
    if (std::find(changes_.begin(), changes_.end(), picks_++) == changes_.end()) return best;
    priorities_[threads[best]] = --lowest_;
    return highest(threads);
  }

 private:
  size_t highest(std::span<const size_t> threads) {
    while (priorities_.size() <= threads.back()) priorities_.push_back(1 + draws_.unit());
    size_t best = 0;
    for (size_t i = 1; i < threads.size(); ++i) {
      if (priorities_[threads[i]] > priorities_[threads[best]]) best = i;
    }
    return best;
  }

  Draws draws_;
  std::vector<int64_t> changes_;
  std::vector<double> priorities_;  // of each thread
  double lowest_ = 0;
  int64_t picks_ = 0;
};

class ScriptChooser final : public Chooser {
 public:
  explicit ScriptChooser(std::vector<uint32_t> script) : script_(std::move(script)) {}
  uint64_t draw(uint64_t limit) override { return limit / 2; }
  bool at_accesses_only() const override { return true; }
  std::span<const Choice> choices() const override { return choices_; }

 protected:
  size_t choose(std::span<const size_t> threads) override {
    const uint32_t picked = choices_.size() < script_.size() ? script_[choices_.size()] : 0;
    SLUICE_CHECK_MSG(picked < threads.size(), "the script belongs to another scenario");
    choices_.push_back({picked, static_cast<uint32_t>(threads.size())});
    return picked;
  }

 private:
  std::vector<uint32_t> script_;
  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<Chooser> make_chooser(const ExploreOptions& options) {
  switch (options.strategy) {
    case Strategy::kRandom:
      return std::make_unique<RandomChooser>(options.seed);
    case Strategy::kPriorities:
      return std::make_unique<PriorityChooser>(options.seed, options.priority_changes,
                                               options.expected_picks);
    case Strategy::kScript:
      return std::make_unique<ScriptChooser>(options.script);
  }
  SLUICE_CHECK_MSG(false, "unknown strategy");
}

}  // namespace sluice
