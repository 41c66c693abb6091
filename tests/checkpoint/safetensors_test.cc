// Reading safetensors files, whole ones and broken ones.
#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <random>

#include "base/expect_error.h"
#include "checkpoint/make_checkpoint.h"

namespace sluice {
namespace {

using testing::expect_error;
using testing::raw_safetensors;
using testing::TemporaryFolder;

// Opening a file with this content must fail, naming the file and `parts`.
void expect_refused(const std::string& content, std::vector<std::string> parts) {
  const TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  write_file_atomically(path, content);
  parts.push_back(path.string());
  expect_error(ErrorCode::kBadFile, parts, [&] { SafetensorsFile::open(path); });
}
void expect_refused_header(std::string_view header, size_t data_bytes, std::vector<std::string> parts) {
  SCOPED_TRACE(header);
  expect_refused(raw_safetensors(header, data_bytes), std::move(parts));
}

TEST(Safetensors, ReadsTensorsInOrderOfTheirBytes) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  write_file_atomically(path, raw_safetensors(R"({"__metadata__":{"format":"pt"},
      "b":{"dtype":"F32","shape":[1],"data_offsets":[6,10]},
      "a":{"dtype":"BF16","shape":[3,1],"data_offsets":[0,6]},
      "empty":{"dtype":"F32","shape":[0,5],"data_offsets":[6,6]},
      "scalar":{"dtype":"U8","shape":[],"data_offsets":[10,11]}}  )",
                                              11));
  const SafetensorsFile file = SafetensorsFile::open(path);
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.tensors()[1].name, "empty");
  EXPECT_EQ(file.tensors()[2].name, "b");
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  const Tensor* b = file.find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->dtype, DType::kF32);
  EXPECT_EQ(b->shape, std::vector<int64_t>{1});
  EXPECT_EQ(b->file, path.string());
  ASSERT_EQ(b->bytes.size(), 4u);
  EXPECT_EQ(b->bytes[0], std::byte{6});
  EXPECT_EQ(file.find("empty")->elements(), 0);
  EXPECT_EQ(file.find("scalar")->elements(), 1);
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST(Safetensors, KeepsItsTensorsValidWhenMoved) {
  const TemporaryFolder folder;
  testing::TensorSet().add<uint8_t>("t", DType::kU8, {3}, {7, 8, 9}).write(folder / "a");
  std::vector<SafetensorsFile> files;
  files.push_back(SafetensorsFile::open(folder / "a"));
  const Tensor* tensor = files[0].find("t");
  for (int i = 0; i < 5; ++i) files.push_back(SafetensorsFile::open(folder / "a"));
  EXPECT_EQ(files[0].find("t"), tensor);
  EXPECT_EQ(tensor->bytes[2], std::byte{9});
}

TEST(Safetensors, ReadsAFileWithoutTensors) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", raw_safetensors("{}", 0));
  EXPECT_TRUE(SafetensorsFile::open(folder / "a").tensors().empty());
}

TEST(Safetensors, NamesAMissingFile) {
  expect_error(ErrorCode::kNotFound, {"/no/such/file"}, [] { SafetensorsFile::open("/no/such/file"); });
}

TEST(Safetensors, RefusesAFileTooShortForAHeaderLength) {
  expect_refused("", {"0 bytes", "truncated", "download it again"});
  expect_refused("1234567", {"7 bytes", "truncated"});
}

TEST(Safetensors, RefusesAHeaderLongerThanTheFile) {
  const std::string whole = raw_safetensors(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2);
  for (size_t size = 8; size < whole.size() - 2; size += 7) {
    expect_refused(whole.substr(0, size),
                   {"header of 53 bytes", "only " + std::to_string(size - 8), "truncated"});
  }
}

TEST(Safetensors, RefusesAHeaderBeyondTheLimit) {
  std::string file = raw_safetensors("{}", 0);
  const uint64_t huge[] = {100'000'001, 200'000'000, UINT64_MAX, UINT64_MAX - 7, uint64_t{1} << 63};
  for (const uint64_t length : huge) {
    std::memcpy(file.data(), &length, sizeof length);
    expect_refused(file, {std::to_string(length), "100000000"});
  }
}

TEST(Safetensors, RefusesHeadersThatAreNoJsonObject) {
  expect_refused_header("", 0, {"does not start with '{'"});
  expect_refused_header("[]", 0, {"does not start with '{'"});
  expect_refused_header(" {}", 0, {"does not start with '{'"});
  expect_refused_header("{", 0, {"not valid JSON"});
  expect_refused_header("{} {}", 0, {"not valid JSON"});
  expect_refused_header("{\"a\":\"\xff\"}", 0, {"not valid JSON", "UTF"});
  expect_refused_header(std::string("{\"a\":1}\0", 8), 0, {"not valid JSON"});
}

TEST(Safetensors, RefusesNestingWithoutEndInsteadOfOverflowingTheStack) {
  std::string deep = "{\"a\":";
  deep += std::string(200'000, '[') + std::string(200'000, ']') + "}";
  expect_refused_header(deep, 0, {"not valid JSON"});
}

TEST(Safetensors, RefusesMoreTensorsThanAnyShardHasBeforeItParsesThem) {
  std::string header = "{";
  for (int i = 0; i < 300'002; ++i) header += "\"a\":{},";
  // What is behind the limit is not looked at: this is no JSON.
  expect_refused_header(header + "}", 0, {"more than 300000 tensors", "shards"});
}

TEST(Safetensors, RefusesANameThatStandsTwice) {
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                            "a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                        2, {"'a'", "twice"});
  expect_refused_header(R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1,
                        {"'dtype'", "twice"});
  // The same name, once with an escape.
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                            "\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                        2, {"'a'", "twice"});
}

TEST(Safetensors, RefusesEntriesWithMissingOrWrongFields) {
  expect_refused_header(R"({"a":3})", 0, {"'a'", "not an object"});
  expect_refused_header(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1, {"'a'", "no dtype"});
  expect_refused_header(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,1]}})", 1, {"'a'", "no dtype"});
  expect_refused_header(R"({"a":{"dtype":"U9","shape":[1],"data_offsets":[0,1]}})", 1,
                        {"'a'", "'U9'", "not known"});
  expect_refused_header(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1, {"'a'", "no shape"});
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1, {"'a'", "shape"});
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", 1, {"'a'", "shape"});
  expect_refused_header(R"({"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})", 1, {"'a'", "shape"});
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[1]}})", 1, {"'a'", "data_offsets"});
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1, {"'a'", "data_offsets"});
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1,
                        {"'a'", "data_offsets"});
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}})", 1,
                        {"'a'", "data_offsets"});
  expect_refused_header(R"({"__metadata__":[]})", 0, {"__metadata__"});
  expect_refused_header(R"({"__metadata__":{"x":1}})", 0, {"__metadata__.x"});
}

TEST(Safetensors, RefusesOffsetsThatRunBackwards) {
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[2,1]}})", 2,
                        {"'a'", "backwards", "2", "1"});
}

TEST(Safetensors, RefusesAByteRangeThatDoesNotFitTheShape) {
  expect_refused_header(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,23]}})", 23,
                        {"'a'", "F32 [2, 3]", "24 bytes", "23 bytes"});
}

TEST(Safetensors, RefusesShapesThatOverflow) {
  expect_refused_header(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
                        {"'a'", "[4294967296, 4294967296]"});
  expect_refused_header(R"({"a":{"dtype":"F32","shape":[9223372036854775807],"data_offsets":[0,0]}})", 0,
                        {"'a'"});
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,0]}})", 0, {});
}

TEST(Safetensors, RefusesOverlapsAndHoles) {
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                            "b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                        7, {"'b'", "start at 3", "end at 4"});
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                            "b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
                        9, {"'b'", "start at 5", "from 4 on"});
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})", 5, {"'a'", "start at 1"});
}

TEST(Safetensors, NamesTheTensorAndTheSizesOfATruncatedFile) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                                 "b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})";
  const size_t start = 8 + header.size();
  expect_refused_header(
      header, 6, {"'b'", std::to_string(start + 6), std::to_string(start + 8), "truncated", "download"});
}

TEST(Safetensors, RefusesBytesBehindTheLastTensor) {
  expect_refused_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 5,
                        {"belong to no tensor"});
}

TEST(Safetensors, NeverReadsPastAFileWithAnyByteChanged) {
  const unsigned seed = 20261129;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const TemporaryFolder folder;
  const std::string whole = read_text_file(testing::golden("qwen3_moe") / "golden.safetensors");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, whole.data(), sizeof header_bytes);
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string changed = whole;
    changed[random() % (8 + header_bytes)] = static_cast<char>(random());
    write_file_atomically(folder / "a", changed);
    try {
      const SafetensorsFile file = SafetensorsFile::open(folder / "a");
      size_t bytes = 0;
      for (const Tensor& tensor : file.tensors()) bytes += tensor.bytes.size();
      EXPECT_EQ(8 + header_bytes + bytes, whole.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadFile) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace sluice
