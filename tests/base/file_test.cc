// Reading, mapping and replacing files.
#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <utility>

#include "base/expect_error.h"
#include "base/temporary_folder.h"

namespace sluice {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

size_t files_in(const std::filesystem::path& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(File, WritesAndReadsBackEveryByte) {
  const TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 300'000; ++i) content.push_back(static_cast<char>(i * 7 + i / 256));
  write_file_atomically(folder / "a", content);
  EXPECT_EQ(read_text_file(folder / "a"), content);
  EXPECT_EQ(text_of(MappedFile::open(folder / "a")), content);
}

TEST(File, ReplacesAFileAndLeavesNoTemporaryOne) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "old and longer");
  write_file_atomically(folder / "a", "new", 0600);
  EXPECT_EQ(read_text_file(folder / "a"), "new");
  EXPECT_EQ(files_in(folder.path()), 1u);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
}

TEST(File, AWriterThatIsGivenUpLeavesTheOldContentAndNothingElse) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "old");
  {
    FileWriter writer(folder / "file");
    writer.write_at(0, std::as_bytes(std::span("new")));
  }
  EXPECT_EQ(read_text_file(folder / "file"), "old");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(File, KeepsAMappingOfTheOldContentWhenAFileIsReplaced) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "first");
  const MappedFile mapped = MappedFile::open(folder / "a");
  write_file_atomically(folder / "a", "other");
  EXPECT_EQ(text_of(mapped), "first");
}

TEST(File, LeavesNothingBehindWhenTheFolderIsMissing) {
  const TemporaryFolder folder;
  expect_error(ErrorCode::kNotFound, {"missing"}, [&] { write_file_atomically(folder / "missing/a", "x"); });
  EXPECT_EQ(files_in(folder.path()), 0u);
}

TEST(File, LeavesNoTemporaryFileWhenTheTargetIsAFolder) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a");
  expect_error(ErrorCode::kInvalidArgument, {"/a: is a folder"},
               [&] { write_file_atomically(folder / "a", "x"); });
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(File, NamesThePathOfAMissingFile) {
  const TemporaryFolder folder;
  const std::string path = (folder / "none.json").string();
  expect_error(ErrorCode::kNotFound, {path}, [&] { read_text_file(path); });
  expect_error(ErrorCode::kNotFound, {path}, [&] { MappedFile::open(path); });
}

TEST(File, RefusesAFolderInTheRoleOfAFile) {
  const TemporaryFolder folder;
  expect_error(ErrorCode::kInvalidArgument, {"folder"}, [&] { read_text_file(folder.path()); });
  expect_error(ErrorCode::kInvalidArgument, {"folder"}, [&] { MappedFile::open(folder.path()); });
}

TEST(File, StopsReadingAtTheLimit) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", std::string(100, 'x'));
  EXPECT_EQ(read_text_file(folder / "a", 100).size(), 100u);
  expect_error(ErrorCode::kBadFile, {"larger", "99 B"}, [&] { read_text_file(folder / "a", 99); });
}

TEST(MappedFile, MapsAnEmptyFileToNoBytes) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "empty", "");
  EXPECT_TRUE(MappedFile::open(folder / "empty").bytes().empty());
  EXPECT_TRUE(MappedFile().bytes().empty());
}

TEST(MappedFile, KeepsItsBytesInPlaceWhenMoved) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "content");
  MappedFile first = MappedFile::open(folder / "a");
  const std::byte* data = first.bytes().data();
  MappedFile second(std::move(first));
  EXPECT_EQ(second.bytes().data(), data);
  MappedFile third;
  third = std::move(second);
  EXPECT_EQ(third.bytes().data(), data);
  EXPECT_EQ(text_of(third), "content");
}

}  // namespace
}  // namespace sluice
