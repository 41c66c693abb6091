// Loads a model for a command.
#include "apps/loaded_model.h"
#include "apps/arguments.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "apps/expert_report.h"
#include "apps/messages.h"
#include "apps/progress_bar.h"
#include "apps/warm_start.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/thread_pool.h"

namespace sluice::apps {

void ModelOptions::add_to(Command& command, bool with_context, bool model_required) {
  Argument model = place.add_to(command, "config.json and safetensors files");
  if (model_required) model.required();
  command
      .option("--compute", compute,
              "Numbers that products read and the KV cache holds: bf16, or f32, the reference")
      .one_of({"bf16", "f32"})
      .show_default();
  command
      .option("--threads", threads,
              "Threads of the CPU backend, at most the usable cores; 0 means all of them")
      .range(0, 4096)
      .show_default();
  if (!with_context) return;
  command
      .option("--context", context_tokens,
              "Most tokens of prompt and answer, at most what the model was made for; 0 means that")
      .at_least(0)
      .show_default();
  command.option("--chunk", chunk_tokens, "Prefill runs this many tokens at once")
      .range(1, 8192)
      .show_default();
  device.add_to(command);
  experts.add_to(command);
  host_rows.add_to(command);
  command.remove(without);
}

std::FILE* ModelOptions::text_stream(FileUses files) const {
  experts.add_files(files);
  return files.writes_standard_output() ? stderr : stdout;
}

void ModelOptions::check(FileUses files) const {
  experts.check_effects(experts.slots != "auto" || device.on_gpu());
  files.reads_folder("--model", place.folder());
  experts.add_files(files);
  files.check();
}

LoadOptions load_options(const ModelOptions& options) {
  LoadOptions load;
  load.max_rows = options.chunk_tokens;
  load.compute = options.compute == name_of(Compute::kF32) ? Compute::kF32 : Compute::kBf16;
  load.threads = options.threads;
  return load;
}

Tokenizer load_tokenizer(const ModelOptions& options) {
  options.check();
  return Tokenizer::load(std::filesystem::path(options.place.folder()) / "tokenizer.json");
}

namespace {

/// More threads than cores take turns at every product: the model would crawl.
int threads_within_cores(int wish) {
  const int cores = usable_cores();
  if (wish <= cores) return wish;
  print_message("--threads " + std::to_string(wish) + ": this process may use " + counted(cores, "core") +
                "; so many threads are used");
  return cores;
}

void say_if_context_is_cut(int64_t wish, int64_t most) {
  if (wish <= most) return;
  print_message("--context " + std::to_string(wish) + ": the model was made for " + std::to_string(most) +
                " tokens; " + std::to_string(most) + " are used");
}

}  // namespace

LoadedModel LoadedModel::load(const ModelOptions& options, std::unique_ptr<Device> device) {
  const auto start = std::chrono::steady_clock::now();
  LoadedModel loaded;
  options.check();
  loaded.checkpoint = Checkpoint::open(options.place.folder());
  const bool serves = device == nullptr;
  const int threads = serves ? threads_within_cores(options.threads) : options.threads;
  loaded.device = serves ? options.device.open(threads) : std::move(device);
  LoadOptions load = load_options(options);
  load.threads = threads;
  load.host_rows = options.host_rows.resolve();
  load.before_weights = [&](const ModelInfo& info) {
    options.experts.resolve(info);
    if (serves) say_if_context_is_cut(options.context_tokens, info.max_positions);
  };
  load.expert_order = [&](const ModelInfo& info) {
    return expert_order(options.experts, loaded.checkpoint, info);
  };
  ProgressBar bar("loading");
  load.progress = [&](uint64_t done, uint64_t total) { bar.update(done, total); };
  loaded.model = load_model(loaded.checkpoint, *loaded.device, load);
  std::fputs(describe_refusals(loaded.model->info().host_rows).c_str(), stderr);
  ExpertSettings experts = options.experts.resolve(loaded.model->info());
  if (loaded.device->backend() == Backend::kCuda && experts.cpu.mode != CpuMode::kOff) {
    throw Error(ErrorCode::kUnsupported, "--cpu-experts: experts on the CPU beside a GPU are not there yet");
  }
  if (experts.slots == 0) {
    experts.slots = slots_that_fit(*loaded.device, loaded.model->info(), options.context_tokens);
  }
  loaded.runtime = std::make_unique<Runtime>(*loaded.device, *loaded.model, experts);
  warm_start(options.experts, loaded.checkpoint, *loaded.runtime);
  loaded.load_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return loaded;
}

std::string LoadedModel::report(const ModelOptions& options) {
  ResidentExperts* resident = runtime->resident();
  if (resident == nullptr) return {};  // a report was refused before
  const ExpertReport report = resident->report();
  if (!options.experts.report_file.empty()) {
    write_file_atomically(options.experts.report_file, report_json(report, model->info().host_rows, *device));
  }
  save_residency(options.experts, checkpoint, *runtime);
  return describe_report(report, *device) + describe_host_rows(model->info().host_rows);
}

std::vector<int32_t> LoadedModel::end_ids() const {
  std::vector<int64_t> ids = checkpoint.generation_config().integers({"eos_token_id"});
  const Config& config = ids.empty() ? checkpoint.config() : checkpoint.generation_config();
  if (ids.empty()) ids = config.integers({"eos_token_id"});
  for (const int64_t id : ids) {
    if (id >= 0 && id <= INT32_MAX) continue;
    throw Error(ErrorCode::kBadFile,
                config.file() + ": eos_token_id " + std::to_string(id) + " is no token id");
  }
  return {ids.begin(), ids.end()};
}

}  // namespace sluice::apps
