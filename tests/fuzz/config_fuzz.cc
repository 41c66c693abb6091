// config.json: the fields that every family asks for, and what it says about quantisation.
#include "checkpoint/config.h"

#include "base/error.h"
#include "checkpoint/quantization.h"
#include "fuzz/target.h"
#include "models/moe_decoder/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto tries = [](const auto& action) {
    try {
      action();
    } catch (const sluice::Error&) {
    }
  };
  tries([&] {
    const sluice::Config config = sluice::Config::parse(text_of(data, size), "config.json");
    tries([&] {
      sluice::moe_decoder::DecoderConfig decoder = sluice::moe_decoder::read_common(config, {});
      sluice::moe_decoder::read_dense_layers(sluice::moe_decoder::language_config(config), decoder);
    });
    tries([&] { sluice::check_supported(sluice::read_quantization(config, "/nonexistent")); });
    for (const std::string& key : config.keys()) {
      tries([&] { config.integers({key}); });
      tries([&] { config.strings({key}); });
      tries([&] { config.number({key}, -1e9, 1e9); });
      tries([&] { config.object({key}).keys(); });
    }
  });
  return 0;
}
