// Opening checkpoint folders: single files, shards, and what may be missing or wrong.
#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <array>

#include "base/expect_error.h"
#include "checkpoint/make_checkpoint.h"

namespace sluice {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TemporaryFolder;
using testing::TensorSet;

// Two shards with a tensor each, and an index with the given weight_map.
void write_shards(const TemporaryFolder& folder, const std::string& weight_map) {
  write_file_atomically(folder / "config.json", "{}");
  TensorSet().add<uint8_t>("a", DType::kU8, {2}, {1, 2}).write(folder / "one.safetensors");
  TensorSet().add<uint8_t>("b", DType::kU8, {1}, {3}).write(folder / "two.safetensors");
  write_file_atomically(folder / "model.safetensors.index.json", "{\"weight_map\":" + weight_map + "}");
}
const std::string kGoodMap = R"({"b":"two.safetensors","a":"one.safetensors"})";

TEST(Checkpoint, ListsTensorsOfASingleFileByName) {
  const TemporaryFolder folder;
  TensorSet()
      .add<float>("z", DType::kF32, {2}, {1, 2})
      .add<uint8_t>("a", DType::kU8, {3}, {1, 2, 3})
      .write_checkpoint(folder.path(), R"({"model_type":"x"})");
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.tensors()[0]->name, "a");
  EXPECT_EQ(checkpoint.total_bytes(), 11u);
  EXPECT_EQ(checkpoint.config().string({"model_type"}), "x");
  EXPECT_EQ(checkpoint.find("z"), checkpoint.tensors()[1]);
  EXPECT_EQ(checkpoint.find("b"), nullptr);
  EXPECT_EQ(checkpoint.folder(), folder.path());
}

TEST(Checkpoint, FindsTensorsInTheShardsOfTheIndex) {
  const TemporaryFolder folder;
  write_shards(folder, kGoodMap);
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.get("a").bytes[1], std::byte{2});
  EXPECT_EQ(checkpoint.get("b").file, (folder / "two.safetensors").string());
}

TEST(Checkpoint, LeavesOutTensorsThatTheIndexDoesNotName) {
  const TemporaryFolder folder;
  write_shards(folder, R"({"b":"two.safetensors"})");
  EXPECT_EQ(Checkpoint::open(folder.path()).tensors().size(), 1u);
}

TEST(Checkpoint, KeepsItsTensorsValidWhenMoved) {
  const TemporaryFolder folder;
  write_shards(folder, kGoodMap);
  Checkpoint first = Checkpoint::open(folder.path());
  const Tensor* tensor = first.find("a");
  const Checkpoint second = std::move(first);
  EXPECT_EQ(second.find("a"), tensor);
  EXPECT_EQ(tensor->bytes[0], std::byte{1});
}

TEST(Checkpoint, NamesAMissingShardAndTheIndex) {
  const TemporaryFolder folder;
  write_shards(folder, kGoodMap);
  std::filesystem::remove(folder / "two.safetensors");
  expect_error(ErrorCode::kNotFound, {"two.safetensors", "model.safetensors.index.json", "download"},
               [&] { Checkpoint::open(folder.path()); });
}

TEST(Checkpoint, RefusesAnIndexThatNamesATensorItsShardLacks) {
  const TemporaryFolder folder;
  write_shards(folder, R"({"a":"one.safetensors","b":"one.safetensors"})");
  expect_error(ErrorCode::kBadFile, {"model.safetensors.index.json", "'b'", "one.safetensors"},
               [&] { Checkpoint::open(folder.path()); });
}

TEST(Checkpoint, RefusesABrokenIndex) {
  for (const char* map : {"[]", "{}", "3", R"({"a":7})", R"({"a":""})"}) {
    const TemporaryFolder folder;
    SCOPED_TRACE(map);
    write_shards(folder, map);
    expect_error(ErrorCode::kBadFile, {"index.json", "weight_map"}, [&] { Checkpoint::open(folder.path()); });
  }
  const TemporaryFolder folder;
  write_shards(folder, "{");
  expect_error(ErrorCode::kBadFile, {"index.json", "not valid JSON"},
               [&] { Checkpoint::open(folder.path()); });
}

TEST(Checkpoint, DoesNotOpenFilesOutsideOfItsFolder) {
  for (const char* shard : {"../one.safetensors", "/etc/passwd", "..", ".", "sub/one.safetensors"}) {
    const TemporaryFolder folder;
    SCOPED_TRACE(shard);
    write_shards(folder, std::string(R"({"a":")") + shard + "\"}");
    expect_error(ErrorCode::kBadFile, {"same folder"}, [&] { Checkpoint::open(folder.path()); });
  }
}

TEST(Checkpoint, NamesTheShardThatIsTruncated) {
  const TemporaryFolder folder;
  write_shards(folder, kGoodMap);
  std::filesystem::resize_file(folder / "one.safetensors",
                               std::filesystem::file_size(folder / "one.safetensors") - 1);
  expect_error(ErrorCode::kBadFile, {"one.safetensors", "'a'", "truncated"},
               [&] { Checkpoint::open(folder.path()); });
}

TEST(Checkpoint, SaysWhatAFolderLacks) {
  const TemporaryFolder folder;
  expect_error(ErrorCode::kNotFound, {"no such folder"}, [&] { Checkpoint::open(folder / "none"); });
  expect_error(ErrorCode::kNotFound, {"config.json"}, [&] { Checkpoint::open(folder.path()); });
  write_file_atomically(folder / "config.json", "{}");
  expect_error(ErrorCode::kNotFound, {"model.safetensors", "index.json"},
               [&] { Checkpoint::open(folder.path()); });
  expect_error(ErrorCode::kInvalidArgument, {"not a folder"},
               [&] { Checkpoint::open(folder / "config.json"); });
}

TEST(Checkpoint, NamesFilesOfOtherProgramsAndWhatToUseInstead) {
  for (const std::string name : {"model-Q4_K_M.gguf", "pytorch_model.bin", "consolidated.00.pth"}) {
    const TemporaryFolder folder;
    write_file_atomically(folder / name, "GGUF");
    expect_error(ErrorCode::kUnsupported, {name, "safetensors", "NVFP4"},
                 [&] { Checkpoint::open(folder.path()); });
    expect_error(ErrorCode::kUnsupported, {name, "safetensors"}, [&] { Checkpoint::open(folder / name); });
  }
}

TEST(Checkpoint, NamesTheTensorThatIsMissingOrMisshapen) {
  const TemporaryFolder folder;
  TensorSet().add<float>("w", DType::kF32, {2, 1}, {1, 2}).write_checkpoint(folder.path());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(&checkpoint.get("w", std::array<int64_t, 2>{2, 1}), checkpoint.find("w"));
  expect_error(ErrorCode::kNotFound, {folder.path().string(), "'v'"}, [&] { checkpoint.get("v"); });
  expect_error(ErrorCode::kBadFile, {"'w'", "[2, 1]", "[1, 2]"}, [&] {
    checkpoint.get("w", std::array<int64_t, 2>{1, 2});
  });
  expect_error(ErrorCode::kBadFile, {"'w'", "[2, 1]", "[2]"},
               [&] { checkpoint.get("w", std::array<int64_t, 1>{2}); });
}

TEST(Checkpoint, ReadsTheGenerationConfigIfThereIsOne) {
  const Checkpoint with = Checkpoint::open(golden("qwen3_moe"));
  EXPECT_FALSE(with.generation_config().keys().empty());
  const Checkpoint without = Checkpoint::open(golden("qwen3_moe_v4config_sharded"));
  EXPECT_TRUE(without.generation_config().keys().empty());
}

TEST(Checkpoint, HoldsTheSameTensorsShardedAndWhole) {
  const Checkpoint whole = Checkpoint::open(golden("qwen3_moe"));
  const Checkpoint sharded = Checkpoint::open(golden("qwen3_moe_v4config_sharded"));
  ASSERT_EQ(whole.tensors().size(), sharded.tensors().size());
  for (const Tensor* tensor : whole.tensors()) {
    const Tensor& twin = sharded.get(tensor->name, tensor->shape);
    EXPECT_EQ(twin.dtype, tensor->dtype);
    EXPECT_TRUE(std::equal(tensor->bytes.begin(), tensor->bytes.end(), twin.bytes.begin(), twin.bytes.end()))
        << tensor->name;
  }
}

}  // namespace
}  // namespace sluice
