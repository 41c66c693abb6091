// Running a conversion plan, shard after shard.
#include "checkpoint/convert.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <system_error>

#include "base/error.h"
#include "base/mapped_pages.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "checkpoint/convert_config.h"
#include "checkpoint/convert_folder.h"
#include "checkpoint/convert_plan.h"
#include "checkpoint/fp8_quantize.h"
#include "checkpoint/nvfp4_quantize.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

// Headers, index, tokenizer: far less, but a disk should not end full.
constexpr uint64_t kSpareBytes = 64'000'000;
constexpr size_t kCopiedAtOnce = 64'000'000;

void check_room(const fs::path& folder, uint64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error)
    throw Error(ErrorCode::kIo, folder.string() + ": cannot read the free space: " + error.message());
  if (space.available < bytes + kSpareBytes) {
    throw Error(ErrorCode::kIo, folder.string() + ": the converted checkpoint needs " +
                                    format_bytes(bytes + kSpareBytes) + ", but " +
                                    format_bytes(space.available) + " are free");
  }
}

class Conversion {
 public:
  Conversion(const ConvertOptions& options, const Checkpoint& checkpoint)
      : options_(options), total_bytes_(checkpoint.total_bytes()), pool_(options.threads) {}

  void keep(const ConvertShard& shard) {
    done_bytes_ += shard.source_bytes();
    ++summary_.shards_kept;
    count(shard);
  }
  void write(const ConvertShard& shard, const fs::path& folder) {
    SafetensorsWriter writer(folder / shard.file, shard.specs, {{"format", "pt"}});
    for (const ConvertJob& job : shard.jobs) {
      if (job.quantise) {
        quantise(job, writer);
      } else {
        copy(job, writer);
      }
    }
    writer.finish();
    count(shard);
  }
  void report(uint64_t more_bytes) {
    done_bytes_ += more_bytes;
    if (options_.progress) options_.progress(done_bytes_, total_bytes_);
  }
  const ConvertSummary& summary() const { return summary_; }

 private:
  void count(const ConvertShard& shard) {
    ++summary_.shards;
    summary_.bytes_read += shard.source_bytes();
    summary_.bytes_written += shard.bytes();
    for (const ConvertJob& job : shard.jobs)
      ++(job.quantise ? summary_.tensors_quantised : summary_.tensors_copied);
  }
  void copy(const ConvertJob& job, SafetensorsWriter& writer) {
    for (std::span<const std::byte> rest = job.source->bytes; !rest.empty();) {
      const auto piece = rest.first(std::min(rest.size(), kCopiedAtOnce));
      writer.write(job.outputs[0], piece);
      release_pages(piece);
      rest = rest.subspan(piece.size());
      report(piece.size());
    }
  }
  void quantise(const ConvertJob& job, SafetensorsWriter& writer);

  const ConvertOptions& options_;
  uint64_t done_bytes_ = 0, total_bytes_ = 0;
  ThreadPool pool_;
  ConvertSummary summary_;
};

std::vector<float> finite_values(const Tensor& source) {
  std::vector<float> values = to_f32(source);
  const auto broken =
      std::find_if_not(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  if (broken != values.end()) {
    throw Error(ErrorCode::kBadFile, source.file + ": tensor '" + source.name + "': element " +
                                         std::to_string(broken - values.begin()) + " is " +
                                         std::to_string(*broken) + "; weights must be finite");
  }
  return values;
}

void Conversion::quantise(const ConvertJob& job, SafetensorsWriter& writer) {
  const Tensor& source = *job.source;
  const std::vector<float> values = finite_values(source);
  release_pages(source.bytes);
  const int64_t n = source.shape[0], k = source.shape[1];
  if (options_.format == WeightFormat::kFp8Block) {
    const auto matrix = fp8::quantize(values, n, k, pool_);
    writer.write(job.outputs[0], std::as_bytes(std::span(matrix.codes)));
    writer.write(job.outputs[1], std::as_bytes(std::span(matrix.scales)));
  } else {
    const auto matrix = nvfp4::quantize(values, n, k, pool_);
    writer.write(job.outputs[0], std::as_bytes(std::span(matrix.codes)));
    writer.write(job.outputs[1], std::as_bytes(std::span(matrix.scales)));
    writer.write(job.outputs[2], std::as_bytes(std::span(&matrix.global, 1)));
  }
  report(source.bytes.size());
}

Checkpoint open_unquantised(const ConvertOptions& options) {
  if (options.format != WeightFormat::kNvfp4 && options.format != WeightFormat::kFp8Block) {
    throw Error(ErrorCode::kUnsupported, "cannot convert to " + std::string(name_of(options.format)) +
                                             "; checkpoints can become nvfp4 or fp8");
  }
  Checkpoint checkpoint = Checkpoint::open(options.model);
  if (checkpoint.quantization().present()) {
    throw Error(ErrorCode::kUnsupported, checkpoint.quantization().file +
                                             ": the checkpoint is quantised already, with '" +
                                             checkpoint.quantization().method + "'; convert the original");
  }
  const auto& tensors = checkpoint.tensors();
  if (std::none_of(tensors.begin(), tensors.end(),
                   [](const Tensor* t) { return is_expert_weight(t->name); })) {
    throw Error(
        ErrorCode::kUnsupported,
        options.model.string() +
            ": holds no tensors named '*.mlp.experts.E.{gate,up,down}_proj.weight' or "
            "'*.block_sparse_moe.experts.E.{w1,w2,w3}.weight', the only experts that can be converted");
  }
  return checkpoint;
}

ConvertSummary run(const ConvertOptions& options, const Checkpoint& checkpoint,
                   const std::vector<ConvertShard>& shards, ConvertFolder& folder) {
  uint64_t bytes = 0;
  for (const ConvertShard& shard : shards) bytes += folder.has(shard) ? 0 : shard.bytes();
  check_room(folder.path(), bytes);
  Conversion conversion(options, checkpoint);
  for (const ConvertShard& shard : shards) {
    if (folder.has(shard)) conversion.keep(shard);
  }
  conversion.report(0);
  for (const ConvertShard& shard : shards) {
    if (folder.has(shard)) continue;
    conversion.write(shard, folder.path());
    folder.add(shard);
  }
  write_index(shards, folder.path());
  copy_companions(options.model, folder.path());
  write_converted_config(checkpoint, options.format, folder.path());
  return conversion.summary();
}

}  // namespace

ConvertSummary convert(const ConvertOptions& options) try {
  const Checkpoint checkpoint = open_unquantised(options);
  const auto shards = plan_conversion(checkpoint, options.format, options.max_shard_bytes);
  ConvertFolder folder(options.out, identity_of(checkpoint, options.format, options.max_shard_bytes), shards);
  try {
    const ConvertSummary summary = run(options, checkpoint, shards, folder);
    folder.finish();
    return summary;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kBadFile) folder.discard();  // another input is another conversion
    throw;
  }
} catch (const fs::filesystem_error& error) {
  throw Error(ErrorCode::kIo, error.path1().string() + ": " + error.code().message());
}

}  // namespace sluice
