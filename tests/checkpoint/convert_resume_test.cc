// Conversions that are stopped, and what goes on from where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>

#include "base/expect_error.h"
#include "checkpoint/convert.h"
#include "checkpoint/convert_folder.h"
#include "checkpoint/make_checkpoint.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::golden;
using testing::TemporaryFolder;
using testing::TensorSet;

constexpr uint64_t kShardBytes = 100'000;

std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::directory_iterator(folder))
    contents[entry.path().filename().string()] = read_text_file(entry.path());
  return contents;
}

class ConvertResume : public ::testing::Test {
 protected:
  ConvertOptions options(const std::string& out = "out") const {
    return {.model = model_,
            .out = folder_ / out,
            .format = WeightFormat::kFp8Block,
            .max_shard_bytes = kShardBytes,
            .threads = 1};
  }
  // Converts until half of the input is read.
  void stop_half_way() {
    ConvertOptions given = options();
    given.progress = [](uint64_t done, uint64_t total) {
      if (done > total / 2) throw Error(ErrorCode::kCancelled, "stopped");
    };
    expect_error(ErrorCode::kCancelled, {"stopped"}, [&] { convert(given); });
  }
  // The number'th file of those that were finished.
  fs::path finished(size_t number) const {
    std::set<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ / "out.partial")) {
      if (entry.path().extension() == ".safetensors") files.insert(entry.path());
    }
    return *std::next(files.begin(), static_cast<std::ptrdiff_t>(number));
  }
  void refuses(const ConvertOptions& given, const std::string& why) {
    SCOPED_TRACE(why);
    const auto before = contents_of(folder_ / "out.partial");
    expect_error(ErrorCode::kInvalidArgument, {"out.partial", why, "remove it"}, [&] { convert(given); });
    EXPECT_EQ(contents_of(folder_ / "out.partial"), before);
  }

  TemporaryFolder folder_;
  fs::path model_ = golden("qwen3_moe");
};

TEST_F(ConvertResume, GoesOnWithTheUnfinishedFileAndWritesTheSameBytes) {
  const ConvertSummary whole = convert(options("whole"));
  stop_half_way();
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  uint64_t first = 0;
  ConvertOptions again = options();
  again.progress = [&](uint64_t done, uint64_t) { first = first == 0 ? done : first; };
  const ConvertSummary rest = convert(again);
  EXPECT_GT(rest.shards_kept, 1);
  EXPECT_LT(rest.shards_kept, rest.shards);
  EXPECT_GT(first, kShardBytes);  // progress starts where it was
  EXPECT_EQ(rest.bytes_written, whole.bytes_written);
  EXPECT_EQ(rest.tensors_quantised, whole.tensors_quantised);
  EXPECT_EQ(contents_of(folder_ / "out"), contents_of(folder_ / "whole"));
  EXPECT_FALSE(fs::exists(folder_ / "out.partial"));
}

TEST_F(ConvertResume, DoesNotTouchFinishedFilesAgain) {
  stop_half_way();
  const fs::path first = finished(0);
  const auto old = fs::last_write_time(first) - std::chrono::hours(1);
  fs::last_write_time(first, old);
  convert(options());
  EXPECT_EQ(fs::last_write_time(folder_ / "out" / first.filename()), old);
}

TEST_F(ConvertResume, WritesFilesAnewThatAreNotWhole) {
  convert(options("whole"));
  stop_half_way();
  const fs::path first = finished(0), second = finished(1);
  fs::resize_file(first, fs::file_size(first) - 1);
  fs::remove(second);
  EXPECT_EQ(convert(options()).shards_kept, 0);
  EXPECT_EQ(contents_of(folder_ / "out"), contents_of(folder_ / "whole"));
}

TEST_F(ConvertResume, BelievesNoFileThatTheJournalDoesNotName) {
  convert(options("whole"));
  stop_half_way();
  const fs::path journal = folder_ / "out.partial/convert.journal";
  const std::string text = read_text_file(journal);
  // Killed in the middle of the line of the first file, and of writing another one.
  write_file_atomically(journal, text.substr(0, text.find('\n') + 5));
  write_file_atomically(finished(1).string() + ".tmp77", "half");
  EXPECT_EQ(convert(options()).shards_kept, 0);
  EXPECT_EQ(contents_of(folder_ / "out"), contents_of(folder_ / "whole"));
}

TEST_F(ConvertResume, LosesNoFileToALineOfTheJournalThatWasCutOff) {
  stop_half_way();
  const fs::path journal = folder_ / "out.partial/convert.journal";
  const std::string text = read_text_file(journal);
  write_file_atomically(journal, text.substr(0, text.find('\n') + 5));
  stop_half_way();  // writes and names the same files again
  EXPECT_EQ(read_text_file(journal), text);
  EXPECT_EQ(convert(options()).shards_kept, std::count(text.begin(), text.end(), '\n') - 1);
}

TEST_F(ConvertResume, RefusesToGoOnWithAnotherFormatSizeOrInput) {
  fs::create_directory(folder_ / "in");
  for (const auto& [name, content] : contents_of(model_))
    write_file_atomically(folder_ / "in" / name, content);
  model_ = folder_ / "in";
  stop_half_way();
  ConvertOptions other = options();
  other.format = WeightFormat::kNvfp4;
  refuses(other, "another format (\"fp8_block\")");
  other = options();
  other.max_shard_bytes += 1;
  refuses(other, "another size");
  const fs::path weights = folder_ / "in/model.safetensors";
  const auto time = fs::last_write_time(weights);
  fs::last_write_time(weights, time + std::chrono::seconds(1));
  refuses(options(), "files have changed");
  fs::last_write_time(weights, time);
  const fs::path journal = folder_ / "out.partial/convert.journal";
  const std::string text = read_text_file(journal);
  for (const char* head : {"{\"version\": 1}", "[]", "no JSON"}) {
    write_file_atomically(journal, head + text.substr(text.find('\n')));
    refuses(options(), "another version");
  }
  write_file_atomically(journal, text);
  EXPECT_GT(convert(options()).shards_kept, 0);
}

TEST_F(ConvertResume, RefusesAFolderThatIsNoConversions) {
  fs::create_directories(folder_ / "out.partial");
  write_file_atomically(folder_ / "out.partial/notes.txt", "mine");
  refuses(options(), "no convert.journal");
  fs::remove(folder_ / "out.partial/notes.txt");
  convert(options());  // an empty one may be taken
}

TEST_F(ConvertResume, RefusesWhileAnotherConversionWrites) {
  bool asked = false;
  ConvertOptions given = options();
  given.progress = [&](uint64_t, uint64_t) {
    if (std::exchange(asked, true)) return;
    expect_error(ErrorCode::kInvalidArgument, {"out.partial", "another conversion is writing"},
                 [&] { convert(options()); });
  };
  convert(given);
  EXPECT_TRUE(asked);
}

TEST_F(ConvertResume, NeedsRoomForAllOfItBeforeItWrites) {
  // A sparse file with a tensor that is larger than what is free.
  const auto rows = static_cast<int64_t>(fs::space(folder_.path()).available / 1024 + 1'000'000);
  const std::string size = std::to_string(rows), end = std::to_string(rows * 1024);
  const std::string header =
      R"({"lm_head.weight": {"dtype": "F32", "shape": [)" + size + R"(, 256], "data_offsets": [0, )" + end +
      R"(]}, "l.mlp.experts.0.up_proj.weight": {"dtype": "F32", "shape": [0, 16], "data_offsets": [0, 0]}})";
  fs::create_directory(folder_ / "in");
  const fs::path weights = folder_ / "in/model.safetensors";
  write_file_atomically(weights, testing::raw_safetensors(header, 0));
  fs::resize_file(weights, fs::file_size(weights) + static_cast<uint64_t>(rows) * 1024);
  write_file_atomically(folder_ / "in/config.json", "{}");
  model_ = folder_ / "in";
  expect_error(ErrorCode::kIo, {"out.partial", "needs", "are free"}, [&] { convert(options()); });
  EXPECT_FALSE(fs::exists(folder_ / "out.partial"));
}

TEST_F(ConvertResume, LeavesNothingWhereNoFileWasFinished) {
  ConvertOptions given = options();
  given.max_shard_bytes = kDefaultShardBytes;
  given.progress = [](uint64_t done, uint64_t total) {
    if (done > total / 2) throw Error(ErrorCode::kCancelled, "stopped");
  };
  expect_error(ErrorCode::kCancelled, {}, [&] { convert(given); });
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(ConvertResume, LeavesNothingWhereALaterWeightIsNotFinite) {
  std::vector<float> values(32, 0.5f);
  TensorSet set;
  set.add("model.layers.0.mlp.experts.0.up_proj.weight", DType::kF32, {2, 16}, values);
  values[21] = std::numeric_limits<float>::infinity();
  set.add("model.layers.0.mlp.experts.1.up_proj.weight", DType::kF32, {2, 16}, values)
      .write_checkpoint(folder_ / "in");
  model_ = folder_ / "in";
  ConvertOptions given = options();
  given.max_shard_bytes = 1;
  expect_error(ErrorCode::kBadFile, {"experts.1", "element 21"}, [&] { convert(given); });
  EXPECT_FALSE(fs::exists(folder_ / "out.partial"));
}

}  // namespace
}  // namespace sluice
