// `sluice eval`: logits, routes and greedy continuations of given ids, for comparison with a reference.
#include <cmath>
#include <cstdio>
#include <map>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/id_sequences.h"
#include "apps/loaded_model.h"
#include "base/counted.h"
#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "engine/session.h"

namespace sluice::apps {
namespace {

struct EvalOptions {
  ModelOptions model;
  std::string ids_file, logits_file;
  int64_t decode_from = -1, greedy = 0;
};

using Sequence = std::vector<int32_t>;

/// -log of the probability that `logits` give to `next`.
double surprise(std::span<const float> logits, int32_t next) {
  double highest = -INFINITY, sum = 0;
  for (const float logit : logits) highest = std::max(highest, static_cast<double>(logit));
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - highest);
  return highest + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(next)]);
}

/// Throws Error for ids that the model cannot run, and for a continuation that the context has no room for.
void check(const Session& session, const Sequence& ids, int64_t greedy) {
  session.check_ids(ids);
  const int64_t room = session.capacity() - std::ssize(ids) + 1;  // the last token takes no position
  if (greedy <= room) return;
  throw Error(ErrorCode::kInvalidArgument, "--greedy " + std::to_string(greedy) + ": " +
                                               counted(ids.size(), "token") + " in a context of " +
                                               std::to_string(session.capacity()) + " leave room for only " +
                                               std::to_string(room));
}

/// Everything that one sequence gives.
struct Result {
  int64_t n = 0;
  std::vector<float> logits;                      // [n, vocab]
  std::map<int64_t, std::vector<int32_t>> top_k;  // layer -> [n, K]
  Sequence greedy;
  double surprise_sum = 0;
};

Result evaluate(Session& session, const Sequence& ids, const EvalOptions& options) {
  Result result;
  result.n = static_cast<int64_t>(ids.size());
  const auto vocab = static_cast<size_t>(session.info().vocab_size);
  if (!options.logits_file.empty()) {  // each layer then waits for the host
    session.observe_routes([&](int64_t layer, std::span<const int32_t> chosen, int64_t) {
      auto& all = result.top_k[layer];
      all.insert(all.end(), chosen.begin(), chosen.end());
    });
  }
  const int64_t decode_from = options.decode_from < 0 ? result.n : options.decode_from;
  session.run_all(ids, decode_from, [&](int64_t first, std::span<const float> logits, int64_t rows) {
    if (!options.logits_file.empty()) result.logits.insert(result.logits.end(), logits.begin(), logits.end());
    for (int64_t r = 0; r < rows; ++r) {
      const auto row = logits.subspan(static_cast<size_t>(r) * vocab, vocab);
      if (const std::string problem = problem_of_logits(row); !problem.empty()) {
        throw Error(ErrorCode::kBadFile, "position " + std::to_string(first + r) + ": " + problem);
      }
      if (first + r + 1 == result.n) continue;  // nothing follows
      result.surprise_sum += surprise(row, ids[static_cast<size_t>(first + r + 1)]);
    }
  });
  session.observe_routes(nullptr);
  if (options.greedy == 0) return result;
  GenerateOptions generation;
  generation.max_tokens = options.greedy;
  result.greedy = ids;
  const GenerateResult more = generate(session, ids, generation, nullptr);
  result.greedy.insert(result.greedy.end(), more.ids.begin(), more.ids.end());
  return result;
}

void write(const std::string& file, const std::vector<Result>& results, const ModelInfo& info) {
  std::vector<TensorToWrite> tensors;
  for (size_t j = 0; j < results.size(); ++j) {
    const Result& result = results[j];
    const std::string index = std::to_string(j);
    tensors.push_back({"logits." + index,
                       DType::kF32,
                       {result.n, info.vocab_size},
                       std::as_bytes(std::span(result.logits))});
    for (const auto& [layer, ids] : result.top_k) {
      tensors.push_back({"topk." + index + "." + std::to_string(layer),
                         DType::kI32,
                         {result.n, info.top_k},
                         std::as_bytes(std::span(ids))});
    }
    if (result.greedy.empty()) continue;
    tensors.push_back({"greedy." + index,
                       DType::kI32,
                       {static_cast<int64_t>(result.greedy.size())},
                       std::as_bytes(std::span(result.greedy))});
  }
  write_safetensors(file, tensors);
}

void run_eval(const EvalOptions& options) {
  FileUses files;
  files.reads("--ids", options.ids_file);
  files.writes("--logits", options.logits_file);
  options.model.check(files);
  const std::vector<Sequence> sequences = read_id_sequences(options.ids_file);
  LoadedModel loaded = LoadedModel::load(options.model);
  Session session(*loaded.runtime, {options.model.context_tokens, options.model.chunk_tokens});
  for (size_t j = 0; j < sequences.size(); ++j) {
    in_sequence(j, [&] { check(session, sequences[j], options.greedy); });
  }
  std::FILE* const text = options.model.text_stream(files);
  std::vector<Result> results;
  double sum = 0;
  int64_t predictions = 0;
  for (size_t j = 0; j < sequences.size(); ++j) {
    const Result& result =
        results.emplace_back(in_sequence(j, [&] { return evaluate(session, sequences[j], options); }));
    sum += result.surprise_sum;
    predictions += result.n - 1;
    const std::string length = counted(result.n, "token");
    if (result.n < 2) {
      std::fprintf(text, "sequence %zu: %s, no likelihood: nothing follows its only token\n", j,
                   length.c_str());
      continue;
    }
    std::fprintf(text, "sequence %zu: %s, mean negative log-likelihood %.6f\n", j, length.c_str(),
                 result.surprise_sum / static_cast<double>(result.n - 1));
  }
  if (sequences.size() > 1 && predictions > 0) {
    std::fprintf(text, "all: %s, mean negative log-likelihood %.6f\n",
                 counted(predictions, "prediction").c_str(), sum / static_cast<double>(predictions));
  }
  std::fputs(loaded.report(options.model).c_str(), stderr);
  if (!options.logits_file.empty()) write(options.logits_file, results, session.info());
}

}  // namespace

void add_eval(Command& program) {
  auto options = std::make_shared<EvalOptions>();
  Command command = program.subcommand("eval", "Logits, experts and likelihood of given ids");
  options->model.add_to(command, true);
  command
      .option("--ids", options->ids_file, "JSON: one array of ids or an array of arrays; - is standard input")
      .required();
  command.option(
      "--logits", options->logits_file,
      "Write here, as safetensors: logits.J [n, vocab] f32; topk.J.L [n, K] i32 for each MoE layer L, in "
      "descending score; greedy.J with --greedy");
  command
      .option("--decode-from", options->decode_from,
              "From this position on, ids pass one by one through the decode path (default: none)")
      .at_least(0);
  command
      .option("--greedy", options->greedy,
              "Continue each sequence by N greedy tokens; end tokens are ignored")
      .at_least(0);
  command.action([options] { run_eval(*options); });
}

}  // namespace sluice::apps
