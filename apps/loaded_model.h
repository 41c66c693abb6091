// A model that a command works with: checkpoint, device, weights and what surrounds them.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "apps/device_options.h"
#include "apps/expert_options.h"
#include "apps/file_uses.h"
#include "apps/host_row_options.h"
#include "apps/model_place.h"
#include "checkpoint/checkpoint.h"
#include "device/device.h"
#include "models/model.h"
#include "text/tokenizer.h"

namespace sluice::apps {

class Command;

/// The flags of every command that runs a model.
struct ModelOptions {
  ModelPlace place;
  std::string compute = "bf16";  // bf16, f32
  int threads = 0;
  int64_t chunk_tokens = 512;
  int64_t context_tokens = 0;
  ExpertOptions experts;
  HostRowFlags host_rows;
  DeviceOptions device;
  std::vector<std::string> without;  // of the options below: have no effect in this command, are not offered

  /// Adds --model, --compute, --threads; `with_context` adds --context, --chunk and the flags of the experts.
  /// Without `model_required` the command checks for itself that there is a model.
  void add_to(Command& command, bool with_context, bool model_required = true);
  /// Throws Error for what can be known before anything is read: options without effect, a folder that is
  /// none, outputs that cannot be written or that would replace each other, an input or a file of the model.
  /// `files`: what the command itself reads and writes.
  void check(FileUses files = {}) const;
  /// Where the text of a command goes that writes `files`: standard error where one of its outputs is
  /// standard output (/dev/stdout), else that.
  std::FILE* text_stream(FileUses files = {}) const;
};

/// The part of the options that loading a model takes.
LoadOptions load_options(const ModelOptions& options);

/// The tokenizer of a model's folder, after options.check().
Tokenizer load_tokenizer(const ModelOptions& options);

struct LoadedModel {
  Checkpoint checkpoint;
  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;
  std::unique_ptr<Runtime> runtime;
  double load_ms = 0;

  /// Loads with a progress bar on standard error, which is erased at the end and absent where that is no
  /// terminal. Flags that do not fit the model are refused before weights are read.
  /// `device` null: the one that options.device names, with threads cut to the usable cores with a line on
  /// standard error; likewise a context that is longer than the model's.
  static LoadedModel load(const ModelOptions& options, std::unique_ptr<Device> device = nullptr);
  /// At the end of a command: writes the report of the experts where --report asks for it and the residency
  /// where --residency does, and returns the report for people: empty without slots.
  std::string report(const ModelOptions& options);
  /// End-of-text ids: generation_config.json's eos_token_id, else config.json's. Throws Error kBadFile for
  /// numbers that are no ids.
  std::vector<int32_t> end_ids() const;
};

}  // namespace sluice::apps
