// A checkpoint folder: config.json, generation_config.json, and one or more safetensors files.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/quantization.h"
#include "checkpoint/safetensors.h"

namespace sluice {

/// Throws Error kNotFound or kInvalidArgument, with the path, where `folder` is no folder.
void check_model_folder(const std::filesystem::path& folder);

/// An opened checkpoint. Opening maps the files and reads headers, no tensor bytes. Move-only.
class Checkpoint {
 public:
  /// `model.safetensors`, or the shards that `model.safetensors.index.json` names (tensors of a shard that
  /// the index does not name are left out, as the reference does). Throws Error: kNotFound (folder, config,
  /// shard), kBadFile (header, index that names a tensor its shard lacks).
  static Checkpoint open(const std::filesystem::path& folder);

  /// A checkpoint that is no folder: `tensors` show bytes that `memory` owns, `place` stands for the folder
  /// in messages.
  static Checkpoint in_memory(const std::string& place, Config config, std::vector<Tensor> tensors,
                              std::shared_ptr<const void> memory);

  const std::filesystem::path& folder() const { return folder_; }
  const Config& config() const { return config_; }
  /// generation_config.json; empty where the folder has none.
  const Config& generation_config() const { return generation_config_; }
  /// What the checkpoint says about its own quantisation; which tensors it holds decides.
  const Quantization& quantization() const { return quantization_; }

  const Tensor* find(const std::string& name) const;
  /// Throws Error kNotFound with the files and the name.
  const Tensor& get(const std::string& name) const;
  /// As above, and kBadFile if the shape differs (expected and actual shape in the message).
  const Tensor& get(const std::string& name, std::span<const int64_t> shape) const;
  /// Where its tensors come from, for messages: the file, or the folder and how many files it holds.
  std::string place() const;

  /// All tensors, sorted by name.
  const std::vector<const Tensor*>& tensors() const { return sorted_; }
  uint64_t total_bytes() const;

 private:
  std::filesystem::path folder_;
  Config config_, generation_config_;
  Quantization quantization_;
  std::vector<SafetensorsFile> files_;
  std::vector<Tensor> made_;  // of a checkpoint in memory
  std::shared_ptr<const void> memory_;
  std::vector<const Tensor*> sorted_;  // by name
};

}  // namespace sluice
