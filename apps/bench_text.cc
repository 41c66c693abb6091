// Reading and cutting the text of a bench.
#include "apps/bench_text.h"

#include "apps/arguments.h"
#include "apps/input_limits.h"
#include "apps/loaded_model.h"
#include "apps/usage_error.h"
#include "base/counted.h"
#include "base/file.h"
#include "text/tokenizer.h"

namespace sluice::apps {

void BenchText::add_to(Command& command, int64_t most) {
  max_tokens = most;
  command.option("--text", file, "Text to run; - is standard input").type("FILE").show_default();
  command.option("--max-tokens", max_tokens, "Use at most so many tokens of it").at_least(1).show_default();
}

std::vector<int32_t> BenchText::read(const ModelOptions& model, size_t least) const {
  const Tokenizer tokenizer = load_tokenizer(model);
  std::vector<int32_t> ids = tokenizer.encode(read_input(file, kMostInputBytes));
  if (static_cast<int64_t>(ids.size()) > max_tokens) ids.resize(static_cast<size_t>(max_tokens));
  if (ids.size() < least) {
    throw Error(ErrorCode::kInvalidArgument, "the text has " + counted(ids.size(), "token") + "; at least " +
                                                 std::to_string(least) + " are needed");
  }
  return ids;
}

void refuse_without_slots(const std::string& bench) {
  throw UsageError(bench + " needs slots: give --expert-slots a number or a share");
}

}  // namespace sluice::apps
