// Adds up a plan and says what is too much.
#include "apps/plan_memory.h"

#include <algorithm>

#include "base/units.h"

namespace sluice::apps {

bool MemoryPlan::takes_the_rest() const {
  return std::any_of(lines_.begin(), lines_.end(),
                     [](const MemoryLine& line) { return line.on_device && line.takes_the_rest; });
}

CardFit MemoryPlan::fit(uint64_t card_bytes) const {
  CardFit fit;
  for (const MemoryLine& line : lines_) {
    if (!line.on_device) continue;
    fit.need_bytes += line.bytes;
    fit.least_bytes += line.unit_bytes > 0 ? static_cast<uint64_t>(line.least) * line.unit_bytes : line.bytes;
    if (fit.over.empty() && fit.need_bytes > card_bytes) fit.over = line.name;
  }
  fit.fits = fit.need_bytes <= card_bytes;
  for (const MemoryLine& line : lines_) {
    if (!fit.fits || !line.takes_the_rest || line.unit_bytes == 0) continue;
    const uint64_t room = card_bytes - fit.need_bytes + line.bytes;
    fit.rest_count = std::min(static_cast<int64_t>(room / line.unit_bytes), line.most);
  }
  if (fit.fits) return fit;
  for (const MemoryLine& line : lines_) {
    const uint64_t others = fit.need_bytes - line.bytes;
    if (!line.on_device || line.unit_bytes == 0 || others > card_bytes) continue;
    const auto count = static_cast<int64_t>((card_bytes - others) / line.unit_bytes);
    if (count >= line.least) fit.advice.push_back(line.option + " " + std::to_string(count));
  }
  return fit;
}

std::string describe_misfit(const CardFit& fit) {
  std::string text = "needs " + format_bytes(fit.need_bytes) + "; over at \"" + fit.over + "\"; ";
  if (fit.advice.empty()) return text + "at the very least it needs " + format_bytes(fit.least_bytes);
  text += "would fit: ";
  for (size_t i = 0; i < fit.advice.size(); ++i) text += (i == 0 ? "" : ", or ") + fit.advice[i];
  return text;
}

}  // namespace sluice::apps
