// Traces: what was written comes back, and nothing wrong is believed.
#include "experts/trace.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "experts/trace_format.h"
#include "experts/trace_writer.h"
#include "random_values.h"

namespace sluice {
namespace {

using sluice::testing::expect_error;
using sluice::testing::TemporaryFolder;

TraceModel small_model() { return {"qwen3_moe", 300, 4, {{1, 1000}, {2, 1000}, {5, 2000}}}; }

/// [rows, k] distinct ids a row; `padded` rows at the end are all padding.
std::vector<uint16_t> random_rows(RandomValues& random, const TraceModel& model, int64_t rows,
                                  int64_t padded = 0) {
  std::vector<uint16_t> ids;
  for (int64_t r = 0; r < rows; ++r) {
    const auto first = random.integer(0, model.experts - 1), step = random.integer(1, 70);
    for (int64_t k = 0; k < model.top_k; ++k) {
      ids.push_back(r >= rows - padded ? Trace::kNoExpert
                                       : static_cast<uint16_t>((first + k * step) % model.experts));
    }
  }
  return ids;
}

class TraceFile : public ::testing::Test {
 protected:
  /// A trace of a 5-row prefill and `decodes` single rows; returns the bytes of the closed file.
  std::string record(int decodes = 3) {
    RandomValues random(71);
    TraceWriter writer(path_, small_model());
    for (int s = 0; s <= decodes; ++s) {
      const int64_t rows = s == 0 ? 5 : 1;
      std::vector<uint16_t> ids;
      for (size_t l = 0; l < small_model().layers.size(); ++l) {
        const auto part = random_rows(random, small_model(), rows);
        ids.insert(ids.end(), part.begin(), part.end());
      }
      writer.write_step(s == 0 ? StepKind::kPrefill : StepKind::kDecode, rows, ids);
      written_.push_back(ids);
    }
    writer.close();
    return read_text_file(path_);
  }
  void replace(const std::string& bytes) { write_file_atomically(path_, bytes); }
  /// Puts `byte` at `at` and makes the checksum of the record [begin, end) right again.
  static std::string forged(std::string bytes, size_t at, char byte, size_t begin, size_t end) {
    bytes[at] = byte;
    const uint64_t sum = trace_format::checksum(std::as_bytes(std::span(bytes).subspan(begin, end - begin)));
    std::memcpy(bytes.data() + end, &sum, sizeof sum);
    return bytes;
  }

  static constexpr size_t kHeader = 16 + 16 + 9 + 3 * 12 + 8;
  static constexpr size_t kDecodeStep = 12 + 2 * 3 * 4 + 8;
  static constexpr size_t kPrefillStep = 12 + 2 * 3 * 5 * 4 + 8;

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "a.trace";
  std::vector<std::vector<uint16_t>> written_;
};

TEST_F(TraceFile, GivesBackEveryStepThatWasWritten) {
  const std::string bytes = record();
  EXPECT_EQ(bytes.size(), kHeader + kPrefillStep + 3 * kDecodeStep + 20);
  const Trace trace = read_trace(path_);
  EXPECT_TRUE(trace.complete);
  EXPECT_EQ(trace.model, small_model());
  ASSERT_EQ(trace.steps.size(), 4u);
  for (size_t s = 0; s < 4; ++s) {
    const TraceStep& step = trace.steps[s];
    EXPECT_EQ(step.kind, s == 0 ? StepKind::kPrefill : StepKind::kDecode);
    EXPECT_EQ(step.rows, s == 0 ? 5 : 1);
    for (size_t l = 0; l < 3; ++l) {
      const auto ids = trace.ids_of(step, l);
      const auto want = std::span(written_[s]).subspan(l * ids.size(), ids.size());
      EXPECT_TRUE(std::equal(ids.begin(), ids.end(), want.begin(), want.end())) << s << " " << l;
    }
  }
}

TEST_F(TraceFile, RefusesEveryCutAndStillGivesTheCompleteStepsBeforeIt) {
  const std::string bytes = record();
  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    replace(bytes.substr(0, size));
    const char* what = size < 8 ? "is not a trace" : "cut short";
    expect_error(ErrorCode::kBadFile, {path_.string(), what}, [&] { read_trace(path_); });
    if (size < kHeader) {
      expect_error(ErrorCode::kBadFile, {what}, [&] { read_trace(path_, {.accept_cut = true}); });
      continue;
    }
    const Trace trace = read_trace(path_, {.accept_cut = true});
    EXPECT_FALSE(trace.complete);
    const size_t body = size - kHeader;
    EXPECT_EQ(trace.steps.size(),
              body < kPrefillStep ? 0 : std::min<size_t>(3, (body - kPrefillStep) / kDecodeStep) + 1);
    EXPECT_EQ(trace.ids.size(), trace.steps.empty() ? 0 : 60 + (trace.steps.size() - 1) * 12);
  }
}

TEST_F(TraceFile, FindsAFlippedBitInAnyByte) {
  const std::string bytes = record(1);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    replace(damaged);
    EXPECT_THROW(read_trace(path_), Error) << "byte " << at;
  }
}

TEST_F(TraceFile, IsReadableUpToTheLastStepWhenTheWriterNeverClosed) {
  {
    RandomValues random(72);
    TraceWriter writer(path_, small_model());
    writer.write_step(StepKind::kDecode, 3, random_rows(random, small_model(), 9));
    EXPECT_EQ(std::filesystem::file_size(path_), writer.bytes()) << "the step is still in the process";
  }
  expect_error(ErrorCode::kBadFile, {"cut short after 1 complete steps"}, [&] { read_trace(path_); });
  EXPECT_EQ(read_trace(path_, {.accept_cut = true}).steps.size(), 1u);
}

TEST_F(TraceFile, RefusesATraceOfAnotherModel) {
  record();
  TraceModel same = small_model();
  EXPECT_EQ(read_trace(path_, {.expected = &same}).steps.size(), 4u);
  for (int change = 0; change < 5; ++change) {
    TraceModel other = small_model();
    if (change == 0) other.family = "mixtral";
    if (change == 1) other.experts = 256;
    if (change == 2) other.top_k = 8;
    if (change == 3) other.layers[2].number = 6;
    if (change == 4) other.layers[0].row_bytes = 999;
    expect_error(ErrorCode::kBadFile, {path_.string(), "another model", "qwen3_moe"},
                 [&] { read_trace(path_, {.expected = &other}); });
  }
}

TEST_F(TraceFile, RefusesExpertsThatTheModelDoesNotHave) {
  const std::string bytes = record();
  const size_t step = kHeader + kPrefillStep, id = step + 12 + 2 * 5;  // layer index 1, second place
  std::string wrong = forged(bytes, id, static_cast<char>(300 % 256), step, step + kDecodeStep - 8);
  wrong = forged(wrong, id + 1, static_cast<char>(300 / 256), step, step + kDecodeStep - 8);
  replace(wrong);
  expect_error(ErrorCode::kBadFile, {path_.string(), "step 1", "layer 2", "expert 300 of 300"},
               [&] { read_trace(path_); });
}

TEST_F(TraceFile, RefusesAnExpertTwiceInARow) {
  const std::string bytes = record();
  const size_t step = kHeader + kPrefillStep, id = step + 12;
  std::string wrong = forged(bytes, id, bytes[id + 2], step, step + kDecodeStep - 8);
  wrong = forged(wrong, id + 1, bytes[id + 3], step, step + kDecodeStep - 8);
  replace(wrong);
  expect_error(ErrorCode::kBadFile, {"step 1", "twice in one row"}, [&] { read_trace(path_); });
}

TEST_F(TraceFile, RefusesFieldsThatMakeNoSense) {
  const std::string bytes = record();
  const size_t end = kHeader - 8;
  replace(forged(bytes, 16, 0, 0, end));  // no layers
  expect_error(ErrorCode::kBadFile, {"makes no sense"}, [&] { read_trace(path_); });
  replace(forged(bytes, 16 + 8, 0, 0, end));  // top 0
  expect_error(ErrorCode::kBadFile, {"makes no sense"}, [&] { read_trace(path_); });
  replace(forged(bytes, 16 + 16 + 9 + 12, 1, 0, end));  // layer 1 twice
  expect_error(ErrorCode::kBadFile, {"layer 1 after layer 1"}, [&] { read_trace(path_); });
  replace(forged(bytes, 8, 2, 0, end));
  expect_error(ErrorCode::kUnsupported, {"version 2", "version 1"}, [&] { read_trace(path_); });
  const size_t step_end = kHeader + kPrefillStep - 8;
  replace(forged(bytes, kHeader + 4, 7, kHeader, step_end));
  expect_error(ErrorCode::kBadFile, {"step 0", "unknown kind 7"}, [&] { read_trace(path_); });
  replace(forged(bytes, kHeader + 8, 0, kHeader, step_end));
  expect_error(ErrorCode::kBadFile, {"step 0", "0 rows"}, [&] { read_trace(path_); });
  replace(bytes + "x");
  expect_error(ErrorCode::kBadFile, {"goes on after its end"}, [&] { read_trace(path_); });
  const size_t last = bytes.size() - 20;
  replace(forged(bytes, last + 4, 9, last, last + 12));
  expect_error(ErrorCode::kBadFile, {"holds 4 steps", "says 9"}, [&] { read_trace(path_); });
  replace("a text that is no trace, but longer than a header would have to be, so that only its words tell");
  expect_error(ErrorCode::kBadFile, {"is not a trace"}, [&] { read_trace(path_); });
}

TEST_F(TraceFile, RefusesModelsBeyondTheFormat) {
  TraceModel model = small_model();
  model.experts = 65536;
  expect_error(ErrorCode::kUnsupported, {"65535", "65536"}, [&] { TraceWriter(path_, model); });
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(TraceFile, NamesAFolderThatIsMissing) {
  expect_error(ErrorCode::kNotFound, {"none/a.trace"},
               [&] { TraceWriter(folder_ / "none/a.trace", small_model()); });
}

TEST_F(TraceFile, ReportsADiskThatIsFull) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  expect_error(ErrorCode::kIo, {"/dev/full", "cannot write"},
               [&] { TraceWriter("/dev/full", small_model()); });
}

TEST_F(TraceFile, RecordsTheLayersOfAStepAsAModelReportsThem) {
  TraceWriter writer(path_, small_model());
  TraceRecorder recorder(writer);
  const std::vector<int32_t> padded = {0, 1, 2, 299, -1, -1, -1, -1}, one = {7, 6, 5, 4};
  for (const int64_t layer : {1, 2, 5}) recorder(layer, padded, 2);
  recorder.set_kind(StepKind::kDecode);
  recorder(1, one, 1);
  recorder(2, one, 1);  // this forward fails
  for (const int64_t layer : {1, 2, 5}) recorder(layer, one, 1);
  writer.close();
  EXPECT_EQ(recorder.decode_steps(), 1);
  EXPECT_EQ(recorder.rows(), 3);
  const Trace trace = read_trace(path_);
  ASSERT_EQ(trace.steps.size(), 2u);
  EXPECT_EQ(trace.steps[0].kind, StepKind::kPrefill);
  EXPECT_EQ(trace.steps[1].kind, StepKind::kDecode);
  const auto ids = trace.ids_of(trace.steps[0], 2);
  EXPECT_EQ(std::vector<int>(ids.begin(), ids.end()),
            (std::vector<int>{0, 1, 2, 299, 65535, 65535, 65535, 65535}));
}

TEST_F(TraceFile, DiesOnALayerOutOfTurn) {
  TraceWriter writer(path_, small_model());
  TraceRecorder recorder(writer);
  const std::vector<int32_t> one = {7, 6, 5, 4};
  recorder(1, one, 1);
  EXPECT_DEATH(recorder(5, one, 1), "layer 5 is not the next");
}

}  // namespace
}  // namespace sluice
