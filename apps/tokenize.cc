// `sluice tokenize`: texts to ids and back, as JSON from standard input to standard output.
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/input_limits.h"
#include "apps/model_place.h"
#include "base/error.h"
#include "base/file.h"
#include "text/json_input.h"
#include "text/tokenizer.h"

namespace sluice::apps {
namespace {

using Json = nlohmann::ordered_json;

struct TokenizeOptions {
  std::string tokenizer;
  bool decode = false;
};

Tokenizer load_tokenizer(const std::string& name) {
  const std::filesystem::path path = find_tokenizer(name);
  std::error_code ignored;  // load says what is wrong
  return Tokenizer::load(std::filesystem::is_directory(path, ignored) ? path / "tokenizer.json" : path);
}

[[noreturn]] void refuse_item(size_t index, const std::string& expected) {
  throw Error(ErrorCode::kInvalidArgument,
              "standard input: item " + std::to_string(index) + " of the array: expected " + expected);
}

Json encode_item(const Tokenizer& tokenizer, const Json& item, size_t index) {
  if (!item.is_string()) refuse_item(index, "a string");
  return tokenizer.encode(item.get_ref<const std::string&>());
}

Json decode_item(const Tokenizer& tokenizer, const Json& item, size_t index) {
  if (!item.is_array()) refuse_item(index, "an array of ids");
  std::vector<TokenId> ids;
  ids.reserve(item.size());
  for (const Json& id : item) {
    if (!id.is_number_integer()) refuse_item(index, "an array of ids, found " + describe_json(id));
    if (id < 0 || id >= tokenizer.vocab_size()) {
      refuse_item(index, "ids from 0 to " + std::to_string(tokenizer.vocab_size() - 1) + ", found " +
                             describe_json(id));
    }
    ids.push_back(id.get<TokenId>());
  }
  return tokenizer.decode(ids);
}

Json read_items() {
  Json items = parse_json(read_input("-", kMostInputBytes), "standard input", ErrorCode::kInvalidArgument);
  if (items.is_array()) return items;
  throw Error(ErrorCode::kInvalidArgument, "standard input: expected a JSON array");
}

void tokenize(const TokenizeOptions& options) {
  const Tokenizer tokenizer = load_tokenizer(options.tokenizer);
  const Json items = read_items();
  Json results = Json::array();
  for (size_t i = 0; i < items.size(); ++i) {
    results.push_back(options.decode ? decode_item(tokenizer, items[i], i)
                                     : encode_item(tokenizer, items[i], i));
  }
  std::printf("%s\n", results.dump().c_str());
}

}  // namespace

void add_tokenize(Command& program) {
  auto options = std::make_shared<TokenizeOptions>();
  Command command = program.subcommand("tokenize", "Turn texts into token ids, or ids into texts");
  command.footer(
      "Reads a JSON array from standard input and writes the array of results as one line of JSON:\n"
      "strings become arrays of ids, and with --decode arrays of ids become strings.\n"
      "Special tokens inside a text are recognised; no BOS or EOS is added. --decode keeps special tokens.\n"
      "\n"
      "  $ echo '[\"Hello world\"]' | sluice tokenize --tokenizer MODEL\n"
      "  $ echo '[[9707, 1879]]' | sluice tokenize --tokenizer MODEL --decode");
  command.option("--tokenizer", options->tokenizer, "A tokenizer.json, or the model that holds it")
      .type("FILE|DIR|ORG/NAME")
      .required();
  command.flag("--decode", options->decode, "Read arrays of ids and write strings");
  command.action([options] { tokenize(*options); });
}

}  // namespace sluice::apps
