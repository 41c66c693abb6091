// What checkpoints say about their quantisation, and which of it is refused by name.
#include "checkpoint/quantization.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "checkpoint/make_checkpoint.h"
#include "checkpoint/weights.h"

namespace sluice {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

Quantization read(const std::string& json) {
  return read_quantization(Config::parse(json, "config.json"), "/no/such/folder");
}

TEST(Quantization, IsAbsentWhereTheConfigSaysNothing) {
  for (const char* json : {"{}", R"({"quantization_config":null})"}) {
    EXPECT_FALSE(read(json).present());
    check_supported(read(json));
  }
}

Quantization with(const std::string& fields) { return read("{\"quantization_config\":{" + fields + "}}"); }

TEST(Quantization, AcceptsWhatCanBeRead) {
  for (
      const char* fields :
      {R"("quant_method":"modelopt","quant_algo":"NVFP4")",
       R"("quant_method":"modelopt_fp4","quant_algo":"NVFP4")", R"("quant_algo":"NVFP4")",
       R"("quant_method":"modelopt","quant_algo":"FP8","ignore":["*self_attn*"])",
       R"("quant_method":"modelopt","quant_algo":"MIXED_PRECISION",
           "quantized_layers":{"a":{"quant_algo":"FP8"},"b":{"quant_algo":"NVFP4","group_size":16}})",
       R"("quant_method":"fp8","weight_block_size":[128,128],"fmt":"e4m3","modules_to_not_convert":["mlp.gate"])",
       R"("quant_method":"fp8","weight_block_size":null)", R"("quant_method":"mxfp4")",
       R"("quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","ignore":["re:.*mlp.gate$"])",
       R"("quant_method":"compressed-tensors","format":"mixed-precision","config_groups":
           {"group_0":{"format":"float-quantized","weights":{"block_structure":[128,128]}}})"}) {
    const Quantization given = with(fields);
    EXPECT_TRUE(given.present()) << fields;
    EXPECT_NO_THROW(check_supported(given)) << fields;
  }
}

TEST(Quantization, SaysWhatAMixtureConsistsOf) {
  EXPECT_EQ(with(R"("quant_method":"modelopt","quant_algo":"MIXED_PRECISION",
                    "quantized_layers":{"a":{"quant_algo":"NVFP4"},"b":{"quant_algo":"FP8"}})")
                .algo,
            "MIXED_PRECISION: FP8, NVFP4");
}

TEST(Quantization, IsFoundInsideTheTextConfig) {
  const Quantization given = read(R"({"text_config":{"quantization_config":{"quant_method":"awq"}}})");
  EXPECT_EQ(given.method, "awq");
}

TEST(Quantization, RefusesOtherMethodsByNameWithWhatIsKnown) {
  for (const std::string method : {"awq", "gptq", "bitsandbytes", "aqlm"}) {
    const Quantization given = with("\"quant_method\":\"" + method + "\"");
    expect_error(
        ErrorCode::kUnsupported,
        {"config.json", "'" + method + "'", "compressed-tensors", "original checkpoint", "BF16", "NVFP4"},
        [&] { check_supported(given); });
  }
}

TEST(Quantization, RefusesOtherVariantsOfKnownMethodsByName) {
  const auto refused = [](const std::string& fields, const std::vector<std::string>& parts) {
    const Quantization given = with(fields);
    expect_error(ErrorCode::kUnsupported, parts, [&] { check_supported(given); });
  };
  refused(R"("quant_method":"modelopt","quant_algo":"W4A8_AWQ")", {"'W4A8_AWQ'", "NVFP4, W4A16_NVFP4, FP8"});
  refused(R"("quant_method":"modelopt","quant_algo":"MIXED_PRECISION",
             "quantized_layers":{"a":{"quant_algo":"FP8"},"b":{"quant_algo":"INT4_AWQ"}})",
          {"'INT4_AWQ'", "MIXED_PRECISION"});
  refused(R"("quant_method":"modelopt")", {"algorithm ''"});
  refused(R"("quant_method":"compressed-tensors","format":"pack-quantized")",
          {"'pack-quantized' (int4)", "nvfp4-pack-quantized"});
  refused(R"("quant_method":"compressed-tensors","config_groups":{"g":{"format":"int-quantized"}})",
          {"'int-quantized'"});
  refused(R"("quant_method":"compressed-tensors","format":"float-quantized",
             "config_groups":{"g":{"weights":{"block_structure":[64,128]}}})",
          {"64 x 128", "128 x 128"});
  refused(R"("quant_method":"fp8","weight_block_size":[1,128])", {"1 x 128"});
  refused(R"("quant_method":"fp8","fmt":"e5m2")", {"'e5m2'", "e4m3"});
}

TEST(Quantization, RefusesAConfigThatNamesNoMethod) {
  expect_error(ErrorCode::kUnsupported, {"config.json", "NVFP4"},
               [] { check_supported(read(R"({"quantization_config":{"bits":4}})")); });
  expect_error(ErrorCode::kBadFile, {"quantization_config"}, [] { read(R"({"quantization_config":4})"); });
}

TEST(Quantization, IsReadFromModelOptsOwnFile) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& algo) {
    write_file_atomically(
        folder / "hf_quant_config.json",
        R"({"producer":{"name":"modelopt"},"quantization":{"quant_algo":")" + algo + "\"}}");
  };
  write("NVFP4");
  check_supported(read_quantization(Config(), folder.path()));
  write("INT4_AWQ");
  expect_error(ErrorCode::kUnsupported, {"hf_quant_config.json", "'INT4_AWQ'"},
               [&] { check_supported(read_quantization(Config(), folder.path())); });
}

TEST(Quantization, KeepsNoCheckpointFromBeingOpenedButItsWeightsFromBeingRead) {
  const TemporaryFolder folder;
  testing::TensorSet()
      .add<uint16_t>("m.weight", DType::kBf16, {1, 2}, {0x3f80, 0})
      .write_checkpoint(folder.path(), R"({"quantization_config":{"quant_method":"gptq"}})");
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint.quantization().method, "gptq");
  expect_error(ErrorCode::kUnsupported, {"'gptq'"}, [&] { find_matrix(checkpoint, "m", 1, 2); });
}

}  // namespace
}  // namespace sluice
