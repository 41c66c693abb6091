// `sluice trace`: records which experts a model uses, and replays that over eviction policies.
#include <algorithm>
#include <cstdio>
#include <functional>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/id_sequences.h"
#include "apps/input_limits.h"
#include "apps/interrupt.h"
#include "apps/loaded_model.h"
#include "apps/trace_replay.h"
#include "apps/warm_start.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/units.h"
#include "engine/session.h"
#include "experts/trace_writer.h"
#include "text/tokenizer.h"

namespace sluice::apps {
namespace {

using Sequence = std::vector<int32_t>;

struct RecordOptions {
  ModelOptions model;
  std::string ids_file, out;
  std::optional<std::string> prompt;
  int64_t decode_from = -1, max_tokens = 64;
  bool ignore_end = false;
};

std::vector<Sequence> read_input(const RecordOptions& options) {
  if (!options.ids_file.empty()) return read_id_sequences(options.ids_file);
  const std::string text = options.prompt ? *options.prompt : sluice::read_input("-", kMostInputBytes);
  return {load_tokenizer(options.model).encode(text)};
}

/// Runs sequences through a session, with the recorder told what is prefill and what is decode.
class Recording {
 public:
  Recording(Session& session, TraceWriter& writer, const RecordOptions& options, const Sequence& end_ids)
      : session_(session), recorder_(writer), options_(options), end_ids_(end_ids) {
    session_.observe_routes(std::ref(recorder_));
    session_.between_layers([this] { interrupt_.check(); });
  }
  ~Recording() {
    session_.observe_routes(nullptr);
    session_.between_layers(nullptr);
  }

  /// Up to the end, or to Ctrl-C.
  void run(const Sequence& ids) {
    try {
      run_to_end(ids);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCancelled) throw;  // a step that was cut is not recorded
    }
  }

  bool interrupted() const { return interrupt_.raised(); }
  void check_interrupt() const { interrupt_.check(); }
  const TraceRecorder& recorder() const { return recorder_; }

 private:
  void run_to_end(const Sequence& ids) {
    logits_ = {};
    run_given(ids);
    SamplingParams greedy;
    greedy.temperature = 0;
    Sampler sampler(greedy, session_.info().vocab_size, ids);
    const int64_t room = session_.capacity() - static_cast<int64_t>(ids.size());
    recorder_.set_kind(StepKind::kDecode);
    for (int64_t n = std::min(options_.max_tokens, room); n > 0 && !interrupt_.raised(); --n) {
      const int32_t id = sampler.sample(logits_).id;
      if (std::find(end_ids_.begin(), end_ids_.end(), id) != end_ids_.end()) return;
      logits_ = session_.decode(id);
    }
  }

  void run_given(const Sequence& ids) {
    recorder_.set_kind(options_.decode_from == 0 ? StepKind::kDecode : StepKind::kPrefill);
    if (options_.decode_from < 0) {
      logits_ = session_.prefill(ids);
      return;
    }
    const auto vocab = static_cast<size_t>(session_.info().vocab_size);
    session_.run_all(ids, options_.decode_from,
                     [&](int64_t first, std::span<const float> logits, int64_t rows) {
                       if (first + rows >= options_.decode_from) recorder_.set_kind(StepKind::kDecode);
                       logits_ = logits.last(vocab);
                     });
  }

  Session& session_;
  TraceRecorder recorder_;
  const RecordOptions& options_;
  const Sequence& end_ids_;
  std::span<const float> logits_;  // [vocab], of the last token that was run
  const InterruptGuard interrupt_;
};

/// The file of a recording under way: FILE.partial, which becomes FILE at the end, so that a trace that is
/// there is replaced by a whole one only. Pipes and devices are written as they are.
class OutputFile {
 public:
  explicit OutputFile(const std::string& file) : place_(output_place(file)), partial_(place_.path) {
    if (!place_.direct) partial_ += ".partial";
  }
  const std::filesystem::path& path() const { return partial_; }
  void keep() const {
    if (!place_.direct) std::filesystem::rename(partial_, place_.path);
  }
  /// After an error: steps that were recorded are worth keeping. Returns where they are, or nothing.
  std::string give_up(int64_t steps) const {
    if (place_.direct) return {};
    if (steps > 0) {
      return "; " + counted(steps, "step") + (steps == 1 ? " is in " : " are in ") + partial_.string();
    }
    std::error_code ignored;
    std::filesystem::remove(partial_, ignored);
    return {};
  }

 private:
  const OutputPlace place_;
  std::filesystem::path partial_;
};

void run_record(const RecordOptions& options) {
  FileUses files;
  if (!options.ids_file.empty() || !options.prompt) {
    files.reads("--ids", options.ids_file.empty() ? "-" : options.ids_file);
  }
  files.writes("--out", options.out);
  if (!output_place(options.out).direct) files.writes("--out", options.out + ".partial");
  options.model.check(files);
  const std::vector<Sequence> sequences = read_input(options);
  LoadedModel loaded = LoadedModel::load(options.model);
  Session session(*loaded.runtime, {options.model.context_tokens, options.model.chunk_tokens});
  const Sequence end_ids = options.ignore_end ? Sequence{} : loaded.end_ids();
  for (size_t j = 0; j < sequences.size(); ++j) in_sequence(j, [&] { session.check_ids(sequences[j]); });
  const OutputFile file(options.out);
  TraceWriter writer(file.path(), trace_model(*loaded.model));
  Recording recording(session, writer, options, end_ids);
  try {
    for (size_t j = 0; j < sequences.size() && !recording.interrupted(); ++j) {
      in_sequence(j, [&] { recording.run(sequences[j]); });
    }
    writer.close();
    if (recording.interrupted() && writer.steps() == 0) recording.check_interrupt();
  } catch (const Error& error) {
    const std::string left = file.give_up(writer.steps());
    if (error.code() == ErrorCode::kCancelled) std::fputs(loaded.report(options.model).c_str(), stderr);
    throw Error(error.code(), error.what() + left);
  }
  file.keep();
  std::fprintf(stderr, "%s: %s, %lld of them decode; %s; %s\n", printable(options.out).c_str(),
               counted(writer.steps(), "step").c_str(),
               static_cast<long long>(recording.recorder().decode_steps()),
               counted(recording.recorder().rows(), "token").c_str(), format_bytes(writer.bytes()).c_str());
  std::fputs(loaded.report(options.model).c_str(), stderr);
  recording.check_interrupt();
}

void add_record(Command& trace) {
  auto options = std::make_shared<RecordOptions>();
  Command command = trace.subcommand("record", "Run a model and write which experts each token used");
  command.footer(
      "Sequences run one after the other in one session: a beginning that two have in common is not run "
      "again. "
      "Ctrl-C ends the recording, keeps what is there, and the exit code is 130. Until the end the file is "
      "called FILE.partial; after a crash "
      "that is good up to its last complete step.");
  options->model.add_to(command, true);
  const Argument ids = command.option("--ids", options->ids_file,
                                      "JSON: one array of ids or an array of arrays; - is standard input");
  command.option("--prompt", options->prompt, "Text; without it and --ids, standard input is the text")
      .excludes(ids);
  command
      .option("--decode-from", options->decode_from,
              "From this position on, given ids pass one by one as decode steps (default: none)")
      .at_least(0);
  command.option("--max-tokens", options->max_tokens, "Continue each sequence by up to N greedy tokens")
      .at_least(0)
      .show_default();
  command.flag("--ignore-end", options->ignore_end, "Do not stop at the model's end tokens");
  command.option("--out", options->out, "Trace file to create or replace").required();
  command.action([options] { run_record(*options); });
}

}  // namespace

void add_trace(Command& program) {
  Command trace = program.subcommand("trace", "Record which experts are used, and compare eviction policies");
  trace.require_subcommand();
  add_record(trace);
  add_trace_replay(trace);
}

}  // namespace sluice::apps
