// Numbers with their nouns, for people.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace sluice {

/// "1 chunk", "3 chunks"; `many` for a noun whose plural takes more than an s: "1 pass", "3 passes".
template <std::integral Number>
std::string counted(Number n, std::string_view one, std::string_view many = {}) {
  std::string text = std::to_string(n) + " ";
  if (n == 1) return text.append(one);
  return many.empty() ? text.append(one) + "s" : text.append(many);
}

}  // namespace sluice
