// Loads a model for a command.
#include "apps/loaded_model.h"
#include "apps/arguments.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "apps/progress_bar.h"
#include "base/error.h"
#include "base/file.h"

namespace sluice::apps {

void ModelOptions::add_to(Command& command, bool with_context, bool model_required) {
  Argument model = command.option("--model", folder, "Folder with config.json and safetensors files");
  if (model_required) model.required();
  command.option("--compute", compute, "Numbers of the activations: f32, the reference")
      .one_of({"f32"})
      .show_default();
  command.option("--threads", threads, "Threads of the CPU backend; 0 means all usable cores")
      .range(0, 4096)
      .show_default();
  if (!with_context) return;
  command
      .option("--context", context_tokens,
              "Most tokens of prompt and answer; 0 means what the model was made for")
      .at_least(0)
      .show_default();
  command.option("--chunk", chunk_tokens, "Prefill runs this many tokens at once")
      .range(1, 8192)
      .show_default();
  experts.add_to(command);
}

LoadedModel LoadedModel::load(const ModelOptions& options, std::unique_ptr<Device> device) {
  const auto start = std::chrono::steady_clock::now();
  LoadedModel loaded;
  loaded.checkpoint = Checkpoint::open(options.folder);
  loaded.device = device ? std::move(device) : make_host_device(options.threads);
  LoadOptions load;
  load.max_rows = options.chunk_tokens;
  load.threads = options.threads;
  ProgressBar bar("loading");
  load.progress = [&](uint64_t done, uint64_t total) { bar.update(done, total); };
  loaded.model = load_model(loaded.checkpoint, *loaded.device, load);
  loaded.runtime =
      std::make_unique<Runtime>(*loaded.device, *loaded.model, options.experts.resolve(loaded.model->info()));
  loaded.load_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return loaded;
}

std::string LoadedModel::report(const ModelOptions& options) {
  ResidentExperts* resident = runtime->resident();
  if (resident == nullptr) return {};  // a report was refused before
  const ExpertReport report = resident->report();
  if (!options.experts.report_file.empty()) {
    write_file_atomically(options.experts.report_file, report_json(report, *device));
  }
  return describe_report(report, *device);
}

std::vector<int32_t> LoadedModel::end_ids() const {
  std::vector<int64_t> ids = checkpoint.generation_config().integers({"eos_token_id"});
  if (ids.empty()) ids = checkpoint.config().integers({"eos_token_id"});
  return {ids.begin(), ids.end()};
}

}  // namespace sluice::apps
