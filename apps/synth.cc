// `sluice synth`: writes a checkpoint of random weights.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/file_uses.h"
#include "apps/progress_bar.h"
#include "apps/synth_model.h"
#include "base/units.h"

namespace sluice::apps {
namespace {

struct WriteOptions {
  SynthOptions synth;
  std::filesystem::path out;
};

void write(const WriteOptions& options) {
  FileUses files;
  files.writes_folder("--out", options.out.string());
  files.check();
  const SynthShape shape = options.synth.resolve();
  {
    ProgressBar bar("writing");
    write_synth(shape, static_cast<uint64_t>(options.synth.seed), options.out,
                [&](uint64_t done, uint64_t total) { bar.update(done, total); });
  }
  std::printf("%s: %s of random weights, %lld layers, experts in %s\n", options.out.c_str(),
              format_bytes(synth_bytes(shape)).c_str(), static_cast<long long>(shape.layers),
              std::string(name_of(shape.format)).c_str());
}

}  // namespace

void add_synth(Command& program) {
  auto options = std::make_shared<WriteOptions>();
  Command command = program.subcommand("synth", "Write a checkpoint of random weights, for measurements");
  command.footer(
      "The model says nothing, and routes tokens evenly, which no trained model does; it has no tokenizer. "
      "The\n"
      "benches (sluice bench decode, prefill) make the same weights in memory and generate routes.\n"
      "\n"
      "  $ sluice synth --shape q36 --layers 2 --out random");
  options->synth.add_to(command, "--shape");
  command.option("--out", options->out, "Folder to write; must not exist").required();
  command.action([options] { write(*options); });
}

}  // namespace sluice::apps
