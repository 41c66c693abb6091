// The folder that a conversion writes: `OUT.partial` with a journal of finished shards, until it is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/convert_plan.h"

namespace sluice {

/// The folder that a conversion to `out` works in, absolute.
std::filesystem::path partial_folder(const std::filesystem::path& out);

/// What a journal belongs to. Two conversions with the same identity write the same bytes.
struct ConvertIdentity {
  std::string input;  // a hash of the checkpoint's headers and of its files' sizes and times
  std::string format;
  uint64_t max_shard_bytes = 0;
  bool operator==(const ConvertIdentity&) const = default;
};

/// The identity of a conversion of `checkpoint`. The place of its files is no part of it. Throws
/// std::filesystem::filesystem_error.
ConvertIdentity identity_of(const Checkpoint& checkpoint, WeightFormat format, uint64_t max_shard_bytes);

/// `out`.partial, which one process at a time writes. Whoever ends without finish() leaves it with what is
/// finished, to go on from; if nothing is, it is removed.
class ConvertFolder {
 public:
  /// Takes up what an interrupted conversion of the same identity has left: shards that its journal names and
  /// that are whole. Throws Error kInvalidArgument: `out` exists and is not empty; `out`.partial is no
  /// conversion's, another one's, or another process is writing it.
  ConvertFolder(const std::filesystem::path& out, const ConvertIdentity& identity,
                const std::vector<ConvertShard>& shards);
  ConvertFolder(const ConvertFolder&) = delete;
  ConvertFolder& operator=(const ConvertFolder&) = delete;
  ~ConvertFolder();

  const std::filesystem::path& path() const { return path_; }
  bool has(const ConvertShard& shard) const { return finished_.contains(shard.file); }
  /// `shard` is written and on the disk.
  void add(const ConvertShard& shard);
  /// Removes everything at the end: going on would fail again.
  void discard() { finished_.clear(); }
  /// Gives the folder its name.
  void finish();

 private:
  void open_journal(bool existed);
  void read_journal(const ConvertIdentity& identity, const std::vector<ConvertShard>& shards);
  void append(const std::string& line);
  void remove_temporary_files() const;

  std::filesystem::path out_, path_;
  int journal_ = -1;
  std::set<std::string> finished_;  // files
};

}  // namespace sluice
