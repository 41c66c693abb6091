// What a fuzz target is: libFuzzer calls it with bytes that it makes up, replay.cc with those of the seeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// Bad input may throw sluice::Error, which the target catches; anything else that goes wrong is a defect.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}
