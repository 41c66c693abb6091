// Ids that can't be mixed up, and byte counts for people.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// An index with a type: a LayerId is no ExpertId.
template <class Tag>
struct Id {
  int32_t value = 0;
  constexpr Id() = default;
  constexpr explicit Id(int64_t v) : value(static_cast<int32_t>(v)) {}
  constexpr auto operator<=>(const Id&) const = default;
};

using LayerId = Id<struct LayerTag>;    // a layer of the model, counted from 0 with dense layers
using ExpertId = Id<struct ExpertTag>;  // an expert inside its layer
using SlotId = Id<struct SlotTag>;      // a slot of the device's expert pool

/// "1.77 MB", "512 B"; decimal units.
std::string format_bytes(uint64_t bytes);
/// "4096", "800MB", "16 GB" (decimal units) or "1GiB"; nothing for any other text.
std::optional<uint64_t> parse_bytes(std::string_view text);

}  // namespace sluice
