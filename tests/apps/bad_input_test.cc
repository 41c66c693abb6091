// Broken files and impossible requests: one line that says what is wrong and where, and exit code 1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "apps/broken_model.h"

namespace sluice::testing {
namespace {

namespace fs = std::filesystem;
using BadInput = BrokenModel;

TEST_F(BadInput, TheUnbrokenCopyRuns) {
  copy("qwen3_moe");
  const Outcome outcome = run_program(eval());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  edit_tensors([](auto&) {});
  EXPECT_EQ(run_program(eval()).out, outcome.out);
}

TEST_F(BadInput, TruncatedShardIsNamed) {
  copy("qwen3_moe_v4config_sharded");
  const fs::path shard = model_ / "model-00002-of-00003.safetensors";
  fs::resize_file(shard, fs::file_size(shard) - 1);
  expect_refusal(eval(), {"model-00002-of-00003.safetensors"});
  expect_refusal({"inspect", "--model", model_}, {"model-00002-of-00003.safetensors"});
}

TEST_F(BadInput, EmptyShardIsNamed) {
  copy("qwen3_moe_v4config_sharded");
  fs::resize_file(model_ / "model-00003-of-00003.safetensors", 0);
  expect_refusal(eval(), {"model-00003-of-00003.safetensors"});
}

TEST_F(BadInput, MissingShardIsNamed) {
  copy("qwen3_moe_v4config_sharded");
  fs::remove(model_ / "model-00001-of-00003.safetensors");
  expect_refusal(eval(), {"model-00001-of-00003.safetensors"});
}

TEST_F(BadInput, MissingTensorIsNamed) {
  copy("qwen3_moe");
  const std::string name = "model.layers.1.mlp.experts.5.up_proj.weight";
  edit_tensors([&](auto& tensors) { std::erase_if(tensors, [&](const auto& t) { return t.name == name; }); });
  expect_refusal(eval(), {"model.safetensors: there is no tensor '" + name + "'", "download"});
}

TEST_F(BadInput, MissingScalesAreNamedBesideTheirWeight) {
  copy("qwen3_moe_nvfp4");
  const std::string module = "model.layers.0.mlp.experts.0.up_proj.";
  edit_tensors([&](auto& tensors) {
    std::erase_if(tensors, [&](const auto& t) { return t.name == module + "weight_scale"; });
  });
  expect_refusal(eval(), {module + "weight'", "'" + module + "weight_scale' is missing"});
}

TEST_F(BadInput, WrongShapeIsNamedWithBothShapes) {
  copy("qwen3_moe");
  edit_tensors([](auto& tensors) {
    for (auto& tensor : tensors) {
      if (tensor.name == "model.layers.0.self_attn.q_proj.weight") tensor.shape = {64, 128};
    }
  });
  expect_refusal(eval(), {"model.layers.0.self_attn.q_proj.weight", "[64, 128]", "[128, 64]"});
}

TEST_F(BadInput, HeaderThatIsNoJsonIsRefused) {
  copy("qwen3_moe");
  std::string bytes = read_text_file(model_ / "model.safetensors");
  bytes[8] = '!';  // the header's opening brace
  write_file_atomically(model_ / "model.safetensors", bytes);
  expect_refusal(eval(), {"model.safetensors"});
}

TEST_F(BadInput, HeaderLongerThanTheFileIsRefused) {
  copy("qwen3_moe");
  std::string bytes = read_text_file(model_ / "model.safetensors");
  bytes[7] = '\x7f';  // the highest byte of the header's length
  write_file_atomically(model_ / "model.safetensors", bytes);
  expect_refusal(eval(), {"model.safetensors"});
}

TEST_F(BadInput, UnknownArchitectureListsTheKnownOnes) {
  copy("qwen3_moe");
  edit_config([](auto& config) {
    config["model_type"] = "perceptron";
    config["architectures"] = {"PerceptronForCausalLM"};
  });
  expect_refusal(eval(), {"config.json", "\"perceptron\"", "qwen3_moe (Qwen3MoeForCausalLM)"});
}

TEST_F(BadInput, ConfigWithoutAnyArchitectureSaysSo) {
  copy("qwen3_moe");
  edit_config([](auto& config) {
    config.erase("model_type");
    config.erase("architectures");
  });
  expect_refusal(eval(), {"config.json: names neither", "qwen3_moe (Qwen3MoeForCausalLM)"});
}

TEST_F(BadInput, APipeInThePlaceOfAFileIsRefusedAtOnce) {
  copy("qwen3_moe");
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::rename(model_ / name, model_ / "aside");
    ASSERT_EQ(::mkfifo((model_ / name).c_str(), 0600), 0);
    expect_refusal(eval(), {name, "not a regular file"});
    fs::remove(model_ / name);
    fs::rename(model_ / "aside", model_ / name);
  }
}

TEST_F(BadInput, WeightsThatConfigLeavesOutAreNamed) {
  copy("qwen3_moe");
  edit_config([](auto& config) { config["num_hidden_layers"] = 2; });
  expect_refusal(eval(), {"model.layers.2.input_layernorm.weight", "num_hidden_layers is 2"});
  edit_config([](auto& config) { config["num_nextn_predict_layers"] = 1; });
  EXPECT_EQ(run_program(eval()).exit_code, 0) << "layers for multi-token prediction may be left out";
  fs::remove_all(model_);
  copy("qwen3_moe");
  edit_tensors([](auto& tensors) {
    TensorToWrite bias = tensors[0];
    bias.name = "model.layers.0.self_attn.q_proj.bias";
    tensors.push_back(bias);
  });
  expect_refusal(eval(), {"model.layers.0.self_attn.q_proj.bias"});
}

TEST_F(BadInput, NotANumberAmongTheWeightsIsNamedWithItsPosition) {
  copy("qwen3_moe");
  std::vector<std::byte> bytes;
  edit_tensors([&](auto& tensors) {
    for (auto& tensor : tensors) {
      if (tensor.name != "model.norm.weight") continue;
      bytes.assign(tensor.bytes.size(), std::byte{0xFF});  // NaN in every type
      tensor.bytes = bytes;
    }
  });
  for (const char* ids : {"[1, 2, 3]", "[1]"}) {
    write_ids(ids);
    expect_refusal(eval(), {"sequence 0: position 0: the model gave NaN as the logit of token 0"});
  }
}

TEST_F(BadInput, AnEndTokenThatIsNoIdIsRefused) {
  copy("qwen3_moe");
  write_tokenizer();
  edit_config([](auto& config) { config["eos_token_id"] = 4294967298; });
  fs::remove(model_ / "generation_config.json");
  expect_refusal({"run", "--model", model_, "--prompt", "a"}, {"config.json: eos_token_id 4294967298"});
}

TEST_F(BadInput, LayersAndEndTokensThatCannotBeAreRefused) {
  copy("qwen3_moe");
  write_tokenizer();
  fs::remove(model_ / "generation_config.json");
  edit_config([](auto& config) { config["eos_token_id"] = -5; });
  expect_refusal({"run", "--model", model_, "--prompt", "a"}, {"config.json: eos_token_id -5"});
  edit_config([](auto& config) { config["mlp_only_layers"] = {99}; });
  expect_refusal(eval(), {"config.json: mlp_only_layers: there is no layer 99 of 3"});
}

TEST_F(BadInput, NothingFromAFileSteersTheTerminal) {
  copy("qwen3_moe");
  const auto expect_escaped = [](const Arguments& arguments, const std::string& part) {
    expect_refusal(arguments, {part}, "[]");
    EXPECT_EQ(run_program(arguments, "[]").err.find_first_of("\x1b\x9b"), std::string::npos);
  };
  edit_config([](auto& config) {
    config["model_type"] = "a\x1b[2J";
    config.erase("architectures");
  });
  expect_escaped(eval(), "a\\x1b[2J");
  expect_escaped({"run", "--model", "\x1b[31m\nabsent", "--prompt", "a"}, "\\x1b[31m\\nabsent");
  write_file_atomically(model_ / "chat_template.jinja", "{{ raise_exception('a\x1b[2Jb\xc2\x9b') }}");
  expect_escaped({"render", "--model", model_, "--messages", "-"}, "a\\x1b[2Jb\\u009b");
}

TEST_F(BadInput, AValueOfAnyLengthIsALineOfTwoThousandBytes) {
  copy("qwen3_moe");
  edit_tensors([](auto& tensors) {
    for (auto& tensor : tensors) {
      if (tensor.name != "model.layers.0.self_attn.q_proj.weight") continue;
      tensor.shape.insert(tensor.shape.begin(), 10'000, 1);
    }
  });
  expect_refusal(eval(), {"model.layers.0.self_attn.q_proj.weight", " bytes ...] "});
  EXPECT_LT(run_program(eval()).err.size(), 2100u);
}

TEST_F(BadInput, TokenizerConfigThatIsNoJsonIsSaidInOurWords) {
  copy("qwen3_moe");
  for (const char* text : {"{\"a\": \xff}", "{\"a\": 1e999}", "[1"}) {
    write_file_atomically(model_ / "tokenizer_config.json", text);
    const Arguments render = {"render", "--model", model_, "--messages", "-"};
    expect_refusal(render, {"tokenizer_config.json: "}, "[]");
    EXPECT_THAT(run_program(render, "[]").err, ::testing::Not(::testing::HasSubstr("json.exception")));
  }
}

TEST_F(BadInput, InputWithoutEndIsRefusedAtALimit) {
  copy("qwen3_moe");
  write_tokenizer();
  const std::string limit = "larger than the limit of 64.00 MB";
  expect_refusal({"eval", "--model", model_, "--ids", "/dev/zero"}, {limit});
  expect_refusal({"run", "--model", model_, "--prompt-file", "/dev/zero"}, {limit});
  expect_refusal({"render", "--model", demo_model(), "--messages", "/dev/zero"}, {limit});
}

TEST_F(BadInput, ConfigWithoutANeededFieldNamesIt) {
  for (const char* field : {"hidden_size", "num_experts_per_tok", "vocab_size"}) {
    SCOPED_TRACE(field);
    fs::remove_all(model_);
    copy("qwen3_moe");
    edit_config([&](auto& config) { config.erase(field); });
    expect_refusal(eval(), {"config.json", field});
  }
}

TEST_F(BadInput, ConfigThatIsNoJsonIsRefused) {
  copy("qwen3_moe");
  write_file_atomically(model_ / "config.json", "{\"model_type\": ");
  expect_refusal(eval(), {"config.json"});
}

TEST_F(BadInput, PromptLongerThanThePositionsIsRefused) {
  copy("qwen3_moe");
  write_ids(nlohmann::json(std::vector<int>(513, 1)).dump());
  expect_refusal(eval(), {"prompt is too long: 513 tokens > 512 maximum"});
}

TEST_F(BadInput, IdsOutsideTheVocabularyAreNamed) {
  copy("qwen3_moe");
  for (const auto& [ids, part] :
       {std::pair{"[1, 2, 320]", "token 320 at position 2"}, {"[1, -1]", "token -1 at position 1"}}) {
    write_ids(ids);
    expect_refusal(eval(), {part, "vocabulary of 320"});
  }
  for (const char* id :
       {"4294967297", "18446744073709551615", "-9223372036854775808"}) {  // must not wrap around
    write_ids(std::string("[1, ") + id + "]");
    expect_refusal(eval(), {id});
  }
  expect_refusal({"eval", "--model", model_, "--ids", "-"}, {"sequence 1: token 320 at position 0"},
                 "[[1], [320]]");
  expect_refusal({"eval", "--model", model_, "--ids", "-"}, {"standard input: expected"}, "{}");
}

TEST_F(BadInput, IdsFileThatIsNoListOfIdsIsRefused) {
  copy("qwen3_moe");
  for (const char* text : {"", "[1, 2", "{\"ids\": [1]}", "[1, \"two\"]", "[[1], 2]", "[1.5]", "\xff\xfe"}) {
    SCOPED_TRACE(text);
    write_ids(text);
    expect_refusal(eval(), {"ids.json"});
  }
  fs::remove(ids_);
  expect_refusal(eval(), {"ids.json", "No such file"});
}

TEST_F(BadInput, NoIdsAtAllAreRefused) {
  copy("qwen3_moe");
  for (const char* ids : {"[]", "[[]]"}) {
    write_ids(ids);
    expect_refusal(eval(), {"empty"});
  }
}

TEST_F(BadInput, ModelFolderThatDoesNotExistIsNamed) {
  const std::string absent = folder_ / "absent";
  write_ids("[1]");
  for (const Arguments& arguments : std::vector<Arguments>{
           {"eval", "--model", absent, "--ids", ids_},
           {"run", "--model", absent, "--prompt", "a"},
           {"chat", "--model", absent},
           {"inspect", "--model", absent},
           {"render", "--model", absent, "--messages", "-"},
           {"trace", "record", "--model", absent, "--prompt", "a", "--out", folder_ / "out"},
           {"bench", "experts", "--model", absent, "--expert-slots", "8"},
           {"plan", "--model", absent},
           {"tokenize", "--tokenizer", absent},
           {"convert", "--model", absent, "--format", "nvfp4", "--out", folder_ / "out"}}) {
    SCOPED_TRACE(arguments[0]);
    expect_refusal(arguments, {absent + ": no such f"});  // folder; tokenize takes a file, too
  }
}

TEST_F(BadInput, ConversationThatIsNoneNamesWhatIsWrong) {
  copy("qwen3_moe");
  const std::string file = folder_ / "conversation.json";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\"messages\": [", "no JSON"},
      {"[]", "\"messages\""},
      {"{\"messages\": {}}", "\"messages\""},
      {R"({"messages": ["hello"]})", "messages[0]: expected an object, found string"},
      {R"({"messages": [{"role": "user"}]})", "messages[0]: \"content\" is missing"},
      {R"({"messages": [{"role": "user", "content": 7}]})",
       "messages[0].content: expected a string, found number"},
      {R"({"messages": [{"role": "robot", "content": "a"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "user", "content": "a", "mood": 1}]})", "unknown field \"mood\""},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]})",
       "messages[1]"},
  };
  for (const auto& [content, part] : cases) {
    SCOPED_TRACE(content);
    write_file_atomically(file, content);
    expect_refusal({"chat", "--model", model_, "--load", file}, {file, part});
  }
}

}  // namespace
}  // namespace sluice::testing
