// sluice convert: a checkpoint with its routed experts quantised.
#include "checkpoint/convert.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/file_uses.h"
#include "base/units.h"

namespace sluice::apps {
namespace {

// A line that is rewritten in place, at most ten times a second, on terminals only.
class ProgressLine {
 public:
  void show(uint64_t done_bytes, uint64_t total_bytes) {
    const auto now = std::chrono::steady_clock::now();
    if (done_bytes < total_bytes && now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    const double percent =
        total_bytes == 0 ? 100.0 : 100.0 * static_cast<double>(done_bytes) / static_cast<double>(total_bytes);
    std::fprintf(stderr, "\r%5.1f %%  %s of %s   %s", percent, format_bytes(done_bytes).c_str(),
                 format_bytes(total_bytes).c_str(), done_bytes == total_bytes ? "\n" : "");
  }

 private:
  std::chrono::steady_clock::time_point last_{};
};

void run_convert(const ConvertOptions& given) {
  FileUses files;
  files.reads_folder("--model", given.model.string());
  files.writes_folder("--out", given.out.string());
  files.writes_folder("--out", given.out.string() + ".partial");
  files.check();
  ConvertOptions options = given;
  ProgressLine line;
  if (::isatty(STDERR_FILENO))
    options.progress = [&](uint64_t done, uint64_t total) { line.show(done, total); };
  const ConvertSummary summary = convert(options);
  std::printf("%s: %lld tensors quantised to %s, %lld copied; %s became %s in %lld %s\n", options.out.c_str(),
              static_cast<long long>(summary.tensors_quantised), std::string(name_of(options.format)).c_str(),
              static_cast<long long>(summary.tensors_copied), format_bytes(summary.bytes_read).c_str(),
              format_bytes(summary.bytes_written).c_str(), static_cast<long long>(summary.shards),
              summary.shards == 1 ? "file" : "files");
}

}  // namespace

void add_convert(Command& program) {
  auto options = std::make_shared<ConvertOptions>();
  Command command = program.subcommand("convert", "Write a checkpoint with its routed experts quantised");
  command.option("--model", options->model, "Folder with the checkpoint to convert").required();
  command.option("--out", options->out, "Folder to write; must not exist or be empty").required();
  auto format = std::make_shared<std::string>();
  command.option("--format", *format, "Format of the routed experts: nvfp4")
      .one_of({std::string(name_of(WeightFormat::kNvfp4))})
      .required();
  command.action([options, format] {
    options->format = WeightFormat::kNvfp4;  // the only one yet
    run_convert(*options);
  });
}

}  // namespace sluice::apps
