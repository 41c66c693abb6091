// config.json of every family with one field changed: what is broken is refused before a weight is read.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/expect_error.h"
#include "checkpoint/make_checkpoint.h"
#include "models/model.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::expect_error;
using testing::TemporaryFolder;

constexpr const char* kFamilies[] = {"qwen3_moe", "qwen2_moe", "olmoe", "mixtral"};

json config_of(const std::string& family) {
  return json::parse(read_text_file(testing::golden(family) / "config.json"));
}

/// Loading a checkpoint with this config.json, and without weights, must fail.
void expect_refused_text(const std::string& config, ErrorCode code, const std::vector<std::string>& parts) {
  SCOPED_TRACE(config);
  const TemporaryFolder folder;
  testing::TensorSet().write_checkpoint(folder.path(), config);
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const auto device = make_host_device(1);
  std::vector<std::string> all = {"config.json"};
  all.insert(all.end(), parts.begin(), parts.end());
  expect_error(code, all, [&] { load_model(checkpoint, *device, {}); });
}

void expect_refused(const std::string& field, const json& value, ErrorCode code,
                    const std::vector<std::string>& parts) {
  for (const char* family : kFamilies) {
    json config = config_of(family);
    if (field == "num_experts" && !config.contains(field)) {
      config["num_local_experts"] = value;  // the other spelling
    } else {
      config[field] = value;
    }
    expect_refused_text(config.dump(), code, parts);
  }
}

/// This config.json is in order: without weights, what is missing is the first tensor.
void expect_read(const json& config) {
  SCOPED_TRACE(config.dump());
  const TemporaryFolder folder;
  testing::TensorSet().write_checkpoint(folder.path(), config.dump());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const auto device = make_host_device(1);
  expect_error(ErrorCode::kNotFound, {"there is no tensor"}, [&] { load_model(checkpoint, *device, {}); });
}

TEST(FamilyConfig, RefusesNumbersThatAreZeroNegativeOrAbsurd) {
  for (const std::string field :
       {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "num_experts", "num_experts_per_tok", "max_position_embeddings"}) {
    const std::string part = field == "num_experts" ? "experts" : field;
    for (const int64_t bad : {int64_t{0}, int64_t{-1}, INT64_MAX}) {
      expect_refused(field, bad, ErrorCode::kBadFile, {part, std::to_string(bad), "outside"});
    }
    expect_refused(field, 1e300, ErrorCode::kBadFile, {part, "expected an integer"});
    expect_refused(field, "64", ErrorCode::kBadFile, {part, "expected an integer", "a string"});
  }
  for (const double bad : {-1e-6, 2.0}) {
    expect_refused("rms_norm_eps", bad, ErrorCode::kBadFile, {"rms_norm_eps", "outside"});
  }
  for (const double bad : {0.0, -1.0, 1e30}) {
    expect_refused("rope_parameters", {{"rope_type", "default"}, {"rope_theta", bad}}, ErrorCode::kBadFile,
                   {"rope_parameters.rope_theta", "outside"});
  }
}

TEST(FamilyConfig, RefusesNotANumber) {
  // JSON has no NaN; Python's writer puts it there all the same.
  const TemporaryFolder folder;
  std::string config = config_of("qwen3_moe").dump();
  const std::string field = "\"rms_norm_eps\":1e-06";
  ASSERT_NE(config.find(field), std::string::npos);
  for (const std::string bad : {"NaN", "Infinity", "-Infinity", "1e999"}) {
    std::string broken = config;
    broken.replace(broken.find(field), field.size(), "\"rms_norm_eps\":" + bad);
    testing::TensorSet().write_checkpoint(folder.path(), broken);
    expect_error(ErrorCode::kBadFile, {"config.json", "not valid JSON"},
                 [&] { Checkpoint::open(folder.path()); });
  }
}

TEST(FamilyConfig, RefusesMoreExpertsATokenThanThereAre) {
  expect_refused("num_experts_per_tok", 9, ErrorCode::kBadFile,
                 {"num_experts_per_tok 9", "more than", "experts"});
}

TEST(FamilyConfig, RefusesHeadsThatCannotBeGrouped) {
  expect_refused("num_key_value_heads", 3, ErrorCode::kBadFile,
                 {"num_attention_heads 4", "num_key_value_heads 3"});
  expect_refused("head_dim", 15, ErrorCode::kBadFile, {"head_dim", "even"});
}

TEST(FamilyConfig, RefusesWhatNothingHereRunsWithTheKnownValues) {
  expect_refused("rope_parameters", {{"rope_type", "spiral"}}, ErrorCode::kUnsupported,
                 {"rope type \"spiral\"", "the known ones are: default, linear, yarn, llama3"});
  expect_refused("partial_rotary_factor", 0.5, ErrorCode::kUnsupported,
                 {"partial_rotary_factor 0.5", "known"});
  expect_refused("hidden_act", "gelu", ErrorCode::kUnsupported, {"activation \"gelu\"", "silu"});
  expect_refused("scoring_func", "sigmoid", ErrorCode::kUnsupported,
                 {"router function \"sigmoid\"", "softmax"});
  expect_refused("quantization_config", {{"quant_method", "gptq"}, {"bits", 4}}, ErrorCode::kUnsupported,
                 {"'gptq'", "compressed-tensors", "NVFP4"});
  expect_refused("layer_types", {"sliding_attention"}, ErrorCode::kUnsupported,
                 {"\"sliding_attention\"", "full_attention"});
  for (const char* field : {"clip_qkv", "attn_logit_softcapping", "final_logit_softcapping"}) {
    expect_refused(field, 8.0, ErrorCode::kUnsupported, {field, "the known value is: null"});
  }
  expect_refused("mlp_bias", true, ErrorCode::kUnsupported, {"mlp_bias true", "false"});
  expect_refused("n_group", 4, ErrorCode::kUnsupported, {"n_group 4", "the known value is: 1"});
  expect_refused("topk_group", 2, ErrorCode::kUnsupported, {"topk_group 2", "the known value is: 1"});
  expect_refused("first_k_dense_replace", 1, ErrorCode::kUnsupported, {"first_k_dense_replace 1"});
  expect_refused("routed_scaling_factor", 2.5, ErrorCode::kUnsupported, {"routed_scaling_factor 2.5"});
}

TEST(FamilyConfig, RefusesASharedExpertInFamiliesThatHaveNone) {
  for (const char* family : {"qwen3_moe", "olmoe", "mixtral"}) {
    for (const char* field : {"shared_expert_intermediate_size", "n_shared_experts"}) {
      json config = config_of(family);
      config[field] = 48;
      expect_refused_text(config.dump(), ErrorCode::kUnsupported, {std::string(field) + " 48"});
    }
  }
  json config = config_of("qwen3_moe");
  config["use_qk_norm"] = false;
  expect_refused_text(config.dump(), ErrorCode::kUnsupported, {"use_qk_norm false"});
}

TEST(FamilyConfig, TakesFieldsThatChangeNothing) {
  for (const char* family : kFamilies) {
    json config = config_of(family);
    for (const char* field : {"clip_qkv", "mlp_bias", "n_group", "shared_expert_intermediate_size"}) {
      if (!config.contains(field)) config[field] = nullptr;
    }
    config["topk_group"] = 1;
    config["routed_scaling_factor"] = 1.0;
    config["n_shared_experts"] = 0;
    config["first_k_dense_replace"] = 0;
    expect_read(config);
  }
}

TEST(FamilyConfig, RefusesAWindowThatCutsSomethingOffAndNoOther) {
  json mixtral = config_of("mixtral");
  mixtral["sliding_window"] = 128;
  expect_refused_text(mixtral.dump(), ErrorCode::kUnsupported, {"sliding_window 128", "full_attention"});
  json qwen = config_of("qwen2_moe");
  qwen["sliding_window"] = 128;
  qwen["use_sliding_window"] = true;
  expect_refused_text(qwen.dump(), ErrorCode::kUnsupported, {"sliding_window 128"});
  // Switched off, or as long as the model's positions.
  qwen["use_sliding_window"] = false;
  mixtral["sliding_window"] = 512;
  for (const json& fine : {qwen, mixtral}) expect_read(fine);
}

TEST(FamilyConfig, ReadsAFamilyInsideOfAnotherModel) {
  json text = config_of("olmoe");
  text["hidden_size"] = -5;
  expect_refused_text(json{{"model_type", "with_pictures"}, {"text_config", text}}.dump(),
                      ErrorCode::kBadFile, {"text_config.hidden_size", "-5"});
  expect_refused_text(R"({"model_type":"with_pictures","text_config":{"model_type":"unknown_text"}})",
                      ErrorCode::kUnsupported,
                      {"with_pictures", "qwen3_moe", "qwen2_moe", "mixtral", "olmoe"});
}

}  // namespace
}  // namespace sluice
