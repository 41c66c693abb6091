// Makes the model of a bench.
#include "apps/synth_model.h"

#include "apps/arguments.h"
#include "apps/progress_bar.h"
#include "base/error.h"

namespace sluice::apps {
namespace {

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const SynthShape& shape : synth_shapes()) names.push_back(shape.name);
  return names;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const WeightFormat format : kSynthFormats) names.emplace_back(name_of(format));
  return names;
}

std::string describe_shapes() {
  std::string text = "Shape of the model of random weights:";
  for (const SynthShape& shape : synth_shapes()) text += " " + shape.name + ": " + shape.what + ";";
  text.pop_back();
  return text;
}

}  // namespace

void SynthOptions::add_to(Command& command, const char* name) {
  command.option(name, shape, describe_shapes()).one_of(shape_names()).show_default();
  command.option("--format", format, "Format of its routed experts; all else is BF16")
      .one_of(format_names())
      .show_default();
  command.option("--layers", layers, "Layers in place of the shape's; 0 means those")
      .range(0, 1000)
      .show_default();
  command.option("--seed", seed, "Seed of weights and routes").at_least(0).show_default();
}

SynthShape SynthOptions::resolve() const {
  SynthShape result = synth_shape(shape);
  for (const WeightFormat known : kSynthFormats) {
    if (name_of(known) == format) result.format = known;
  }
  if (layers > 0) result.layers = layers;
  return result;
}

void SynthModelOptions::add_to(Command& command) {
  synth.add_to(command, "--synth");
  command.option("--threads", threads, "Threads of the CPU backend; 0 means all cores")
      .range(0, 4096)
      .show_default();
  command.option("--chunk", chunk_tokens, "Prefill runs this many tokens at once")
      .range(1, 8192)
      .show_default();
  device.add_to(command);
  experts.add_to(command);
  host_rows.add_to(command);
  command.remove({"--report", "--residency", "--warm-from"});
}

SynthModel SynthModel::load(const SynthModelOptions& options) {
  SynthModel made;
  made.device = options.device.open(options.threads);
  made.stream = made.device->make_stream();
  made.topic = made.device->allocate_array<int32_t>(1, "topic of generated routes");
  made.set_topic(0);
  const Checkpoint checkpoint =
      make_synth(options.synth.resolve(), static_cast<uint64_t>(options.synth.seed));
  LoadOptions load;
  load.max_rows = options.chunk_tokens;
  load.threads = options.threads;
  load.host_rows = options.host_rows.resolve();
  load.before_weights = [&](const ModelInfo& info) { options.experts.resolve(info); };
  load.generated_routes.emplace();
  load.generated_routes->seed = static_cast<uint64_t>(options.synth.seed);
  load.generated_routes->topic = made.topic.as<int32_t>();
  ProgressBar bar("loading");
  load.progress = [&](uint64_t done, uint64_t total) { bar.update(done, total); };
  made.model = load_model(checkpoint, *made.device, load);
  return made;
}

void SynthModel::set_topic(int32_t value) const {
  stream->copy("topic", topic.data(), &value, sizeof(value));
  device->wait(*stream, "topic");
}

ExpertSettings SynthModel::settings(const ExpertOptions& experts, int64_t context_tokens) const {
  ExpertSettings settings = experts.resolve(model->info());
  if (settings.slots == 0) settings.slots = slots_that_fit(*device, model->info(), context_tokens);
  if (settings.slots == 0) {
    throw Error(ErrorCode::kInvalidArgument, "--expert-slots auto: this bench needs a number of slots here");
  }
  return settings;
}

}  // namespace sluice::apps
