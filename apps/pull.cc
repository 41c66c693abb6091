// sluice pull: a model from the Hugging Face hub into its cache.
#include "hub/pull.h"

#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/progress_bar.h"
#include "apps/usage_error.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/units.h"
#include "hub/cache.h"

namespace sluice::apps {
namespace {

hub::ModelName parse_name(const std::string& text) {
  if (const auto name = hub::parse_model_name(text)) return *name;
  throw UsageError("pull \"" + text + "\": expected the name of a model, ORG/NAME or ORG/NAME@REVISION");
}

/// "original/..., *.bin": what stands for the skipped files.
std::string kinds_of(const std::vector<hub::RemoteFile>& files) {
  std::set<std::string> kinds;
  for (const hub::RemoteFile& file : files) {
    const size_t slash = file.name.find('/'), dot = file.name.rfind('.');
    kinds.insert(slash != std::string::npos ? file.name.substr(0, slash) + "/..."
                 : dot == std::string::npos ? file.name
                                            : "*" + file.name.substr(dot));
  }
  std::string text;
  for (const std::string& kind : kinds) text += (text.empty() ? "" : ", ") + printable(kind);
  return text;
}

void print_selection(const hub::Selection& selection) {
  std::printf("%zu files, %s\n", selection.files.size(), format_bytes(selection.bytes()).c_str());
  if (!selection.skipped.empty()) {
    std::printf("not fetched, nothing here reads them: %zu files, %s (%s)\n", selection.skipped.size(),
                format_bytes(selection.skipped_bytes()).c_str(), kinds_of(selection.skipped).c_str());
  }
  std::fflush(stdout);
}

void run_pull(const std::string& name) {
  hub::PullOptions options;
  options.name = parse_name(name);
  options.cache = hub::cache_folder();
  options.access = hub::HubAccess::from_environment();
  options.selected = print_selection;
  const InterruptGuard interrupt;
  hub::PullSummary summary;
  {
    ProgressBar bar("fetching");
    options.download.progress = [&](uint64_t done, uint64_t total) {
      if (interrupt.raised()) {
        throw Error(ErrorCode::kCancelled,
                    "stopped by Ctrl-C; what has arrived is kept: the same command goes on from there");
      }
      bar.update(done, total);
    };
    summary = hub::pull(options);
  }
  std::printf(
      "%s: complete in %s; %s were fetched now\nNext: sluice run --model %s --chat --prompt 'What is a "
      "river?'\n",
      name.c_str(), summary.snapshot.c_str(), format_bytes(summary.fetched_bytes).c_str(), name.c_str());
}

}  // namespace

void add_pull(Command& program) {
  auto name = std::make_shared<std::string>();
  Command command = program.subcommand("pull", "Fetch a model from the Hugging Face hub");
  command
      .option("model", *name,
              "Name of a model: ORG/NAME, or ORG/NAME@REVISION for a branch, a tag or a commit")
      .type("ORG/NAME")
      .required();
  command.footer(
      "Files go into the cache that Hugging Face's own programs use (HF_HUB_CACHE, HF_HOME/hub, or\n"
      "~/.cache/huggingface/hub), so that --model ORG/NAME finds them and so do other programs. What a "
      "stopped\n"
      "pull has left is gone on from. Sizes and hashes are checked.\n"
      "HF_TOKEN is the token for gated and private models, HF_ENDPOINT another hub than "
      "https://huggingface.co.\n"
      "\n"
      "  $ sluice pull Qwen/Qwen3-30B-A3B\n"
      "  $ sluice run --model Qwen/Qwen3-30B-A3B --chat --prompt 'What is a river?'");
  command.action([name] { run_pull(*name); });
}

}  // namespace sluice::apps
