// Which way a prompt's experts should take, by predicted time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "experts/settings.h"

namespace sluice {

/// How the experts of one forward become computable.
enum class PassWay { kEnsure, kTouched, kStream, kLayerMajor };
inline constexpr size_t kPassWays = 4;
inline bool streams(PassWay way) { return way == PassWay::kStream || way == PassWay::kLayerMajor; }
std::string_view name_of(PassWay way);  // "ensure", "touched", "stream", "layer-major"

/// How the CPU takes part in a streaming pass.
struct CpuRate {
  double ms_per_pair = 0;  // one row of one expert; 0: it takes no part
  bool always = false;     // a fixed part, whatever it takes
};

/// The part of a streamed layer's misses that does not cross the link: the CPU computes it.
struct CpuPart {
  double part = 0;        // in [0, 1]
  bool round_up = false;  // else down, so that the CPU is not the slower side

  int32_t of(int32_t misses) const;
};
/// CpuMode::kAlways: a quarter of each layer's misses, at least one.
inline constexpr CpuPart kFixedCpuPart{0.25, true};

/// n tokens of one prompt touch as many experts as n^spread tokens of unrelated ones: near tokens want the
/// same experts. What published counts come to (39, 63 and 78 % of 256 experts, 8 a token, at 67, 328 and
/// 1022 tokens: 0.65, 0.59, 0.56), until this model's own passes have been counted.
inline constexpr double kUsualSpread = 0.6;

/// Rates of this machine, and of the model that it serves, refined by every pass.
struct PassRates {
  double link_bytes_per_ms = 0;     // host rows to slots
  double compute_ms_per_pass = 0;   // through all layers, experts resident, and for each token
  double compute_ms_per_token = 0;  // both 0: not measured yet
  double spread = kUsualSpread;
  // Of the experts that a prompt wants, the absent ones, as a part of what residents picked by chance would
  // leave: residents are those that are wanted often.
  double absence = 1;
  bool overlap = true;  // streamed copies run beside the products
  CpuRate cpu;          // of a streaming pass

  double compute_ms(int64_t rows) const {
    return compute_ms_per_pass + compute_ms_per_token * static_cast<double>(rows);
  }
};

/// Tokens of one prompt that are to pass all layers, in chunks of chunk_rows.
struct PassQuestion {
  int64_t rows = 0;        // tokens
  int64_t chunk_rows = 0;  // 0: one chunk
  // Experts resident now, of all layers; of them outside the region that a pass borrows; and of these the
  // ones that a streaming pass reads where they lie.
  int64_t resident_rows = 0, outside_region = 0, listed = 0;
  uint64_t row_bytes = 0;  // of one expert (the mean over layers)
  bool ensure_fits = false, touched_fits = false;
};

struct PassForecast {
  PassWay way = PassWay::kStream;
  double bytes = 0;
  double ms = 0;
  double absent_part = 0;  // of all experts, not resident as this way counts
  bool fell_back = false;  // the forced way does not fit
  CpuPart cpu;             // `bytes` are without it
};

/// A streaming pass without the CPU: the longer of link and compute, or their sum where they do not overlap.
double streaming_ms(const PassRates& rates, double bytes, double compute_ms);

/// Distinct experts of one layer that `rows` tokens of a prompt route to: E (1 - (1 - K/E)^(rows^spread)).
/// With a spread of 1 routes are uniform.
double distinct_experts(const ExpertShape& shape, double spread, int64_t rows);
/// The spread at which `rows` > 1 tokens route to `distinct` experts of a layer (the mean over layers), in
/// [0, 1]; nothing where the number tells nothing, since every token goes to every expert.
std::optional<double> spread_of(const ExpertShape& shape, int64_t rows, double distinct);

/// Time of one way over all chunks. Streaming: the longer of link and compute, since they overlap; for each
/// chunk, or once where the chunks pass layer by layer. Ensure and touched: their sum, nothing is ahead. With
/// rates.cpu a part of a streaming pass's misses is left to the CPU: so much that link and CPU finish
/// together, and nothing where that saves less than 5 %.
PassForecast forecast(PassWay way, const ExpertShape& shape, const PassRates& rates,
                      const PassQuestion& question);

/// The quickest way that fits and that `mode` allows, for one chunk. A forced way that does not fit falls to
/// stream, and the forecast says so.
PassForecast choose_way(PrefillMode mode, const ExpertShape& shape, const PassRates& rates,
                        const PassQuestion& question);
/// Whether all chunks should pass layer by layer together. A tie goes to it: fewer bytes cross.
bool layer_major_wins(const ExpertShape& shape, const PassRates& rates, const PassQuestion& question);

}  // namespace sluice
