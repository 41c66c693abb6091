// sluice convert: a checkpoint quantised.
#include "checkpoint/convert.h"

#include <cstdio>
#include <memory>
#include <string>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/file_uses.h"
#include "apps/interrupt.h"
#include "apps/model_place.h"
#include "apps/progress_bar.h"
#include "base/error.h"
#include "base/units.h"
#include "checkpoint/convert_folder.h"

namespace sluice::apps {
namespace {

struct Flags {
  ModelPlace model;
  ConvertOptions options;
  std::string format, max_shard_size = "5GB";
};

uint64_t shard_bytes(const std::string& size) {
  const std::optional<uint64_t> bytes = parse_bytes(size);
  if (bytes && *bytes > 0) return *bytes;
  throw Error(ErrorCode::kInvalidArgument, "--max-shard-size " + size + ": expected a size such as 5GB");
}

ConvertSummary convert_or_say_how_to_go_on(const ConvertOptions& options) {
  const InterruptGuard interrupt;
  ProgressBar bar("converting");
  ConvertOptions watched = options;
  watched.progress = [&](uint64_t done, uint64_t total) {
    interrupt.check();
    bar.update(done, total);
  };
  try {
    return convert(watched);
  } catch (const Error& error) {
    const bool resumable = error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kIo;
    const std::filesystem::path partial = partial_folder(options.out);
    if (!resumable || !std::filesystem::exists(partial)) throw;
    throw Error(error.code(), std::string(error.what()) + "; finished files are kept in " + partial.string() +
                                  ": the same command goes on from there");
  }
}

void run_convert(const Flags& flags) {
  ConvertOptions options = flags.options;
  options.model = flags.model.folder();
  options.format = flags.format == "fp8" ? WeightFormat::kFp8Block : WeightFormat::kNvfp4;
  options.max_shard_bytes = shard_bytes(flags.max_shard_size);
  FileUses files;
  files.reads_folder("--model", options.model.string());
  files.writes_folder("--out", options.out.string());
  files.writes_folder("--out", partial_folder(options.out).string());
  files.check();
  const ConvertSummary summary = convert_or_say_how_to_go_on(options);
  if (summary.shards_kept > 0) {
    std::printf("%lld of %lld files were finished before\n", static_cast<long long>(summary.shards_kept),
                static_cast<long long>(summary.shards));
  }
  std::printf("%s: %lld tensors quantised to %s, %lld copied; %s became %s in %lld %s\n", options.out.c_str(),
              static_cast<long long>(summary.tensors_quantised), flags.format.c_str(),
              static_cast<long long>(summary.tensors_copied), format_bytes(summary.bytes_read).c_str(),
              format_bytes(summary.bytes_written).c_str(), static_cast<long long>(summary.shards),
              summary.shards == 1 ? "file" : "files");
}

}  // namespace

void add_convert(Command& program) {
  auto flags = std::make_shared<Flags>();
  Command command = program.subcommand("convert", "Write a checkpoint with its weights quantised");
  flags->model.add_to(command, "the checkpoint to convert").required();
  command.option("--out", flags->options.out, "Folder to write; must not exist or be empty").required();
  command
      .option(
          "--format", flags->format,
          "nvfp4: routed experts, as ModelOpt has them; fp8: routed experts, attention and dense layers in "
          "blocks of 128 x 128, as DeepSeek's and Qwen's FP8 checkpoints have them")
      .one_of({"nvfp4", "fp8"})
      .required();
  command
      .option("--max-shard-size", flags->max_shard_size,
              "Most bytes of tensors in one file; a larger tensor has a file of its own")
      .type("SIZE")
      .accepted_by([](const std::string& size) { shard_bytes(size); })
      .show_default();
  command.footer(
      "The folder has the name OUT.partial until it is complete. A conversion that was stopped goes on with\n"
      "the file that it was at when the same command is given again.");
  command.action([flags] { run_convert(*flags); });
}

}  // namespace sluice::apps
