// A device, a pipe or a symbolic link that was named as an output became a regular file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>

#include "base/expect_error.h"
#include "base/temporary_folder.h"
#include "checkpoint/safetensors.h"

namespace sluice::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTensorBytes = "abcd";

/// The two ways in which the program writes files.
void write_text(const fs::path& path) { write_file_atomically(path, "content"); }
void write_tensors(const fs::path& path) {
  const std::vector<TensorToWrite> tensors = {{"a", DType::kU8, {4}, std::as_bytes(std::span(kTensorBytes))}};
  write_safetensors(path, tensors);
}
constexpr void (*kWriters[])(const fs::path&) = {write_text, write_tensors};

std::string expected_content(void (*writer)(const fs::path&)) {
  const TemporaryFolder folder;
  writer(folder / "plain");
  return read_text_file(folder / "plain");
}

TEST(OutputsThatAreNoFiles, APipeGetsTheBytesAndStaysAPipe) {
  for (const auto writer : kWriters) {
    const TemporaryFolder folder;
    const fs::path pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_GE(reader, 0);
    writer(pipe);
    char buffer[4096];
    const ssize_t n = ::read(reader, buffer, sizeof buffer);
    ::close(reader);
    EXPECT_EQ(std::string(buffer, n > 0 ? static_cast<size_t>(n) : 0), expected_content(writer));
    EXPECT_TRUE(fs::is_fifo(pipe));
  }
}

TEST(OutputsThatAreNoFiles, ADeviceStaysADevice) {
  const TemporaryFolder folder;
  const fs::path link = folder / "null", own = folder / "own";
  fs::create_symlink("/dev/null", link);
  const bool made = ::mknod(own.c_str(), S_IFCHR | 0600, ::makedev(1, 3)) == 0;  // root alone may
  for (const auto writer : kWriters) {
    writer(link);
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
    if (!made) continue;
    writer(own);
    EXPECT_TRUE(fs::is_character_file(own));
  }
}

TEST(OutputsThatAreNoFiles, WhatALinkLeadsToIsReplacedAndNotTheLink) {
  for (const auto writer : kWriters) {
    const TemporaryFolder folder;
    fs::create_directory(folder / "inner");
    write_file_atomically(folder / "inner/file", "old");
    fs::create_symlink("inner/file", folder / "link");
    fs::create_symlink(folder / "link", folder / "second");
    fs::create_symlink("inner/absent", folder / "dangling");
    writer(folder / "second");
    writer(folder / "dangling");
    EXPECT_TRUE(fs::is_symlink(folder / "link") && fs::is_symlink(folder / "second") &&
                fs::is_symlink(folder / "dangling"));
    EXPECT_EQ(read_text_file(folder / "inner/file"), expected_content(writer));
    EXPECT_EQ(read_text_file(folder / "inner/absent"), expected_content(writer));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder / "inner"), {}), 2) << "no temporary file is left";
  }
}

TEST(OutputsThatAreNoFiles, AnOpenFileOfTheProcessIsWrittenAsItIs) {
  const TemporaryFolder folder;
  const fs::path file = folder / "file";
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  write_text("/dev/fd/" + std::to_string(fd));
  char buffer[16];
  EXPECT_EQ(::pread(fd, buffer, sizeof buffer, 0), 7) << "the file that is open must be the one written";
  ::close(fd);
}

TEST(OutputsThatAreNoFiles, ACircleOfLinksAndAFolderAreNamed) {
  const TemporaryFolder folder;
  fs::create_symlink("a", folder / "b");
  fs::create_symlink("b", folder / "a");
  for (const auto writer : kWriters) {
    expect_error(ErrorCode::kIo, {(folder / "a").string(), "link"}, [&] { writer(folder / "a"); });
    expect_error(ErrorCode::kInvalidArgument, {"is a folder"}, [&] { writer(folder.path()); });
  }
}

TEST(OutputsThatAreNoFiles, WhetherAPlaceCanBeWrittenIsKnownBefore) {
  const TemporaryFolder folder;
  check_can_write(folder / "new");
  EXPECT_FALSE(fs::exists(folder / "new"));
  check_can_write("/dev/null");
  expect_error(ErrorCode::kNotFound, {"absent/file: cannot create"},
               [&] { check_can_write(folder / "absent/file"); });
  expect_error(ErrorCode::kInvalidArgument, {"is a folder"}, [&] { check_can_write(folder.path()); });
}

}  // namespace
}  // namespace sluice::testing
