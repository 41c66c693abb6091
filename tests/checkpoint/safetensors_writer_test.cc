// Writing safetensors files, at once and piece by piece.
#include "checkpoint/safetensors_writer.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "checkpoint/make_checkpoint.h"

namespace sluice {
namespace {

using testing::TemporaryFolder;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(SafetensorsWriter, WritesTheExactBytesOfTheFormat) {
  const TemporaryFolder folder;
  const std::vector<TensorToWrite> tensors = {{"b", DType::kU16, {2}, bytes_of("1234")},
                                              {"a\"\xc3\xa4", DType::kU8, {1, 3}, bytes_of("xyz")},
                                              {"s", DType::kF32, {}, bytes_of("abcd")}};
  write_safetensors(folder / "a", tensors, {{"format", "pt"}});
  const std::string content = read_text_file(folder / "a");
  std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"U16","shape":[2],"data_offsets":[0,4]},)"
      "\"a\\\"\xc3\xa4\""
      R"(:{"dtype":"U8","shape":[1,3],"data_offsets":[4,7]},"s":{"dtype":"F32","shape":[],"data_offsets":[7,11]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string expected = testing::raw_safetensors(header, 0);
  expected += "1234xyzabcd";
  EXPECT_EQ(content, expected);
}

TEST(SafetensorsWriter, WritesAFileWithoutTensorsThatCanBeRead) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {});
  EXPECT_EQ(std::filesystem::file_size(folder / "a"), 16u);
  EXPECT_TRUE(SafetensorsFile::open(folder / "a").tensors().empty());
}

TEST(SafetensorsWriter, TakesTensorsInAnyOrder) {
  const TemporaryFolder folder;
  const std::vector<TensorSpec> specs = {{"first", DType::kU8, {3}}, {"second", DType::kU8, {2}}};
  SafetensorsWriter writer(folder / "a", specs);
  writer.write(1, bytes_of("de"));
  writer.write(0, bytes_of("abc"));
  writer.finish();
  EXPECT_TRUE(read_text_file(folder / "a").ends_with("abcde"));
}

TEST(SafetensorsWriter, LeavesNoFileWhenItIsNotFinished) {
  const TemporaryFolder folder;
  {
    const std::vector<TensorSpec> specs = {{"a", DType::kU8, {3}}};
    SafetensorsWriter writer(folder / "a", specs);
    writer.write(0, bytes_of("abc"));
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SafetensorsWriter, NamesAFolderThatDoesNotExist) {
  testing::expect_error(ErrorCode::kNotFound, {"/no/such/folder/a"},
                        [] { write_safetensors("/no/such/folder/a", {}); });
}

TEST(SafetensorsWriter, PutsPiecesOfATensorBehindEachOther) {
  const TemporaryFolder folder;
  const std::vector<TensorSpec> specs = {{"a", DType::kU8, {3}}, {"b", DType::kU8, {2}}};
  SafetensorsWriter writer(folder / "a", specs);
  for (const auto& [index, piece] : {std::pair<size_t, const char*>{0, "xy"}, {1, "p"}, {0, "z"}, {1, "q"}})
    writer.write(index, bytes_of(piece));
  writer.finish();
  EXPECT_TRUE(read_text_file(folder / "a").ends_with("xyzpq"));
}

TEST(SafetensorsWriterDeathTest, InsistsOnEveryTensorAndItsExactSize) {
  const TemporaryFolder folder;
  const std::vector<TensorSpec> specs = {{"a", DType::kU8, {3}}};
  SafetensorsWriter writer(folder / "a", specs);
  EXPECT_DEATH(writer.write(0, bytes_of("abcd")), "bytes.size");
  EXPECT_DEATH(writer.write(1, bytes_of("abc")), "index");
  EXPECT_DEATH(writer.finish(), "written");
  writer.write(0, bytes_of("ab"));
  EXPECT_DEATH(writer.write(0, bytes_of("cd")), "bytes.size");
  EXPECT_DEATH(writer.finish(), "written");
  const std::vector<TensorSpec> twins = {{"a", DType::kU8, {3}}, {"a", DType::kU8, {3}}};
  EXPECT_DEATH(SafetensorsWriter(folder / "b", twins), "names_differ");
}

}  // namespace
}  // namespace sluice
