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

TEST(Quantization, AcceptsNvfp4OfModelOpt) {
  check_supported(read(R"({"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4"}})"));
  check_supported(read(R"({"quantization_config":{"quant_method":"modelopt_fp4","quant_algo":"NVFP4"}})"));
  check_supported(read(R"({"quantization_config":{"quant_algo":"NVFP4"}})"));
}

TEST(Quantization, RefusesOtherMethodsByNameWithWhatIsSupported) {
  for (const std::string method : {"awq", "gptq", "fp8", "bitsandbytes", "mxfp4", "compressed-tensors"}) {
    const Quantization given = read(R"({"quantization_config":{"quant_method":")" + method + "\"}}");
    expect_error(ErrorCode::kUnsupported, {"config.json", "'" + method + "'", "BF16", "NVFP4"},
                 [&] { check_supported(given); });
  }
}

TEST(Quantization, RefusesOtherAlgorithmsOfModelOptByName) {
  for (const std::string algo : {"FP8", "W4A8_AWQ", "MIXED_PRECISION"}) {
    const Quantization given =
        read(R"({"quantization_config":{"quant_method":"modelopt","quant_algo":")" + algo + "\"}}");
    expect_error(ErrorCode::kUnsupported, {"'modelopt'", "'" + algo + "'"}, [&] { check_supported(given); });
  }
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
  write("FP8");
  expect_error(ErrorCode::kUnsupported, {"hf_quant_config.json", "'FP8'"},
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
