// Decoders of standard attention and routed experts. The families that are such decoders read their
// config.json into a DecoderConfig; weights and layers are the same code.
#pragma once

#include <memory>

#include "models/model.h"
#include "models/moe_decoder/config.h"

namespace sluice {

/// Throws as load_model.
std::unique_ptr<Model> load_moe_decoder(const Checkpoint& checkpoint,
                                        const moe_decoder::DecoderConfig& config, Device& device,
                                        const LoadOptions& options);

}  // namespace sluice
