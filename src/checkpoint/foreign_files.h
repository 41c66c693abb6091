// Weights in files of other programs, recognised by name.
#pragma once

#include <filesystem>
#include <string>

namespace sluice {

/// What `path`, a file or a folder, holds instead of a checkpoint in safetensors, and what to use in its
/// place: "holds model.gguf, a GGUF file, which is not read: use ..."; empty where nothing is recognised.
std::string describe_foreign_weights(const std::filesystem::path& path);

}  // namespace sluice
