// Runs a tiny checkpoint in every way that must not show.
#include "engine/golden_checks.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <tuple>

namespace sluice::testing {
namespace {

std::vector<int64_t> numbers_of_slots(int64_t fewest, int64_t all) {
  std::vector<int64_t> numbers = {fewest,      fewest + 1, fewest + 2, fewest + 5, all / 4,
                                  all / 2 + 1, all - 2,    all - 1,    all};
  for (int64_t& number : numbers) number = std::clamp(number, fewest, all);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::vector<float> logits_of(Runtime& runtime, const std::vector<int32_t>& ids) {
  std::vector<float> all;
  Session session(runtime, {});
  session.run_all(ids, kNever, [&](int64_t, std::span<const float> logits, int64_t) {
    all.insert(all.end(), logits.begin(), logits.end());
  });
  return all;
}

/// Over the rows of `counts`; logits [rows, vocab]. NaN if one is.
float worst_error(const std::vector<float>& got, const std::vector<float>& want,
                  const std::vector<bool>& counts) {
  EXPECT_EQ(got.size(), want.size());
  const size_t vocab = want.size() / counts.size();
  float worst = 0;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    if (!counts[i / vocab]) continue;
    const float error = std::abs(got[i] - want[i]);
    if (std::isnan(error)) return error;
    worst = std::max(worst, error);
  }
  return worst;
}

/// Root mean squares over the same rows: of the error, divided by that of the logits.
double relative_error(const std::vector<float>& got, const std::vector<float>& want,
                      const std::vector<bool>& counts) {
  const size_t vocab = want.size() / counts.size();
  double error = 0, whole = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (!counts[i / vocab]) continue;
    error += std::pow(static_cast<double>(got.at(i)) - static_cast<double>(want[i]), 2);
    whole += std::pow(static_cast<double>(want[i]), 2);
  }
  return std::sqrt(error / whole);
}

}  // namespace

GoldenModel::GoldenModel(const std::filesystem::path& folder, const std::filesystem::path& results,
                         Device* device, const LoadOptions& options)
    : golden_(Golden::read(results.empty() ? folder : results)),
      checkpoint_(Checkpoint::open(folder)),
      own_device_(device == nullptr ? make_host_device(2) : nullptr),
      device_(device == nullptr ? *own_device_ : *device),
      model_(load_model(checkpoint_, device_, options)) {}

std::unique_ptr<Runtime> GoldenModel::runtime(const ExpertSettings& settings) const {
  return std::make_unique<Runtime>(device_, *model_, settings);
}

Outcome GoldenModel::run(Runtime& runtime, size_t j, int64_t chunk, int64_t decode_from) const {
  Session session(runtime, {.capacity_tokens = 0, .chunk_tokens = chunk});
  Outcome result;
  session.observe_routes([&](int64_t layer, std::span<const int32_t> ids, int64_t) {
    auto& all = result.top_k[layer];
    all.insert(all.end(), ids.begin(), ids.end());
  });
  session.run_all(golden_.ids[j], decode_from, [&](int64_t, std::span<const float> logits, int64_t) {
    result.logits.insert(result.logits.end(), logits.begin(), logits.end());
  });
  return result;
}

std::vector<bool> GoldenModel::rows_of_same_experts(const Outcome& got, size_t j) const {
  const int64_t k = model_->info().top_k;
  std::vector<bool> same(golden_.ids[j].size(), true);
  for (const auto& [layer, want] : golden_.top_k[j]) {
    for (size_t r = 0; r < same.size(); ++r) {
      const auto row = static_cast<int64_t>(r);
      same[r] = same[r] && row_set(got.top_k.at(layer), k, row) == row_set(want, k, row);
    }
  }
  return same;
}

void GoldenModel::expect_logits_and_choices(const GoldenModel& in_reference, double tolerance, double margin,
                                            const ExpertSettings& settings) const {
  const auto direct = runtime(settings), reference = in_reference.runtime({});
  int64_t rows = 0, rerouted = 0;
  for (size_t j = 0; j < golden_.ids.size(); ++j) {
    const Outcome got = run(*direct, j, 512, kNever);
    const std::vector<bool> same = rows_of_same_experts(got, j);
    const double relative = relative_error(got.logits, golden_.logits[j], same);
    std::cout << "sequence " << j << ": logit error " << relative << ", worst "
              << worst_error(got.logits, golden_.logits[j], same) << "\n";
    EXPECT_LE(relative, tolerance) << "sequence " << j;
    rows += std::ssize(same);
    rerouted += std::count(same.begin(), same.end(), false);
  }
  std::cout << rerouted << " of " << rows << " tokens go to other experts somewhere\n";
  EXPECT_LE(10 * rerouted, rows);
  const std::vector<float> want = logits_of(*reference, golden_.greedy),
                           got = logits_of(*direct, golden_.greedy);
  const auto vocab = static_cast<int64_t>(model_->info().vocab_size);
  int64_t clear = 0;
  for (int64_t at = 0; at < std::ssize(want); at += vocab) {
    std::vector<float> sorted(want.begin() + at, want.begin() + at + vocab);
    std::sort(sorted.rbegin(), sorted.rend());
    if (sorted[0] - sorted[1] <= margin) continue;
    ++clear;
    EXPECT_EQ(std::max_element(got.begin() + at, got.begin() + at + vocab) - got.begin(),
              std::max_element(want.begin() + at, want.begin() + at + vocab) - want.begin())
        << "token " << at / vocab;
  }
  std::cout << clear << " of " << std::ssize(want) / vocab << " choices are clear\n";
  EXPECT_GE(clear, 4);
}

void GoldenModel::expect_logits_and_experts(double tolerance, const ExpertSettings& settings) const {
  const auto direct = runtime(settings);
  ASSERT_GE(golden_.ids.size(), 2u);
  for (size_t j = 0; j < golden_.ids.size(); ++j) {
    const Outcome got = run(*direct, j, 512, kNever);
    const float worst = worst_error(got.logits, golden_.logits[j], std::vector(golden_.ids[j].size(), true));
    std::cout << "sequence " << j << ": worst logit error " << worst << "\n";
    EXPECT_LE(worst, tolerance) << "sequence " << j;
    ASSERT_FALSE(golden_.top_k[j].empty());
    for (const auto& [layer, want] : golden_.top_k[j]) {
      const int64_t k = model_->info().top_k;
      const auto& ids = got.top_k.at(layer);
      ASSERT_EQ(ids.size(), want.size());
      for (int64_t r = 0; r < static_cast<int64_t>(golden_.ids[j].size()); ++r) {
        EXPECT_EQ(row_set(ids, k, r), row_set(want, k, r)) << "layer " << layer << ", row " << r;
      }
    }
  }
}

void GoldenModel::expect_same_bits_for_every_cut() const {
  const auto direct = runtime({});
  for (size_t j = 0; j < golden_.ids.size(); ++j) {
    const Outcome whole = run(*direct, j, 512, kNever);
    for (const auto& [chunk, decode_from] : {std::pair<int64_t, int64_t>{1, kNever},
                                             {7, kNever},
                                             {64, kNever},
                                             {512, 0},
                                             {512, 1},
                                             {7, 10},
                                             {3, 5}}) {
      EXPECT_TRUE(run(*direct, j, chunk, decode_from) == whole)
          << "chunk " << chunk << ", decode from " << decode_from;
    }
  }
}

void GoldenModel::expect_greedy_text(const ExpertSettings& settings) const {
  ASSERT_FALSE(golden_.greedy.empty());
  const auto direct = runtime(settings);
  Session session(*direct, {});
  GenerateOptions options;
  options.max_tokens = 24;
  const GenerateResult result = generate(session, golden_.ids[1], options, nullptr);
  std::vector<int32_t> all = golden_.ids[1];
  all.insert(all.end(), result.ids.begin(), result.ids.end());
  EXPECT_EQ(all, golden_.greedy);
  EXPECT_EQ(result.finish_reason, FinishReason::kLength);
}

int64_t GoldenModel::fewest_slots() const {
  std::vector<RowLayout> layouts;
  for (const LayerRows& rows : model_->expert_rows()) {
    if (std::find(layouts.begin(), layouts.end(), rows.layout) == layouts.end())
      layouts.push_back(rows.layout);
  }
  return min_slots(expert_shape(model_->info())) * static_cast<int64_t>(layouts.size());
}

void GoldenModel::expect_same_bits_with_slots() const {
  const auto direct = runtime({});
  const Outcome want = run(*direct, 0, 512, kNever);
  const ExpertShape shape = expert_shape(model_->info());
  for (const int64_t slots : numbers_of_slots(fewest_slots(), shape.layers * shape.experts)) {
    for (const PrefillMode mode :
         {PrefillMode::kAuto, PrefillMode::kStream, PrefillMode::kTouched, PrefillMode::kLayerMajor}) {
      ExpertSettings settings;
      settings.slots = slots;
      settings.prefill = mode;
      settings.audit_every = 1;
      const auto with_slots = runtime(settings);
      EXPECT_EQ(with_slots->resident()->slots(), slots);
      for (const auto& [chunk, decode_from] :
           {std::pair<int64_t, int64_t>{512, kNever}, {5, kNever}, {512, 0}, {6, 11}}) {
        EXPECT_TRUE(run(*with_slots, 0, chunk, decode_from) == want)
            << slots << " slots, prefill " << static_cast<int>(mode) << ", chunk " << chunk
            << ", decode from " << decode_from;
      }
    }
  }
}

}  // namespace sluice::testing
