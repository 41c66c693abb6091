// A lock, a journal in lines of JSON, and the checks of what an interrupted conversion left.
#include "checkpoint/convert_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/fingerprint.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kJournal = "convert.journal";
constexpr size_t kMaxJournalBytes = 10'000'000;
// Raised whenever a conversion of the same input would give other bytes than before.
constexpr int kVersion = 2;

[[noreturn]] void fail(const fs::path& path, const char* what) {
  throw Error(ErrorCode::kIo, path.string() + ": cannot " + what + ": " + std::strerror(errno));
}
[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, path.string() + ": " + what);
}

// Without a trailing slash, absolute, so that its parent and name are plain.
fs::path normalised(const fs::path& out) {
  const fs::path path = fs::absolute(out).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

Json to_json(const ConvertIdentity& identity) {
  return {{"version", kVersion},
          {"input", identity.input},
          {"format", identity.format},
          {"max_shard_bytes", identity.max_shard_bytes}};
}

// Which part of the identity differs, in words.
std::string difference(const Json& found, const Json& wanted) {
  if (!found.is_object() || found.value("version", Json()) != wanted["version"])
    return "by another version of this program";
  if (found.value("format", Json()) != wanted["format"])
    return "to another format (" + found.value("format", Json("?")).dump() + ")";
  if (found.value("input", Json()) != wanted["input"])
    return "of another model, or the model's files have changed since";
  return "with another size of its files";
}

std::vector<std::string> whole_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;  // what a killed process left behind the last one is no line
}

// Whether the file holds what the plan says; its bytes were on the disk before the journal named it.
bool is_whole(const fs::path& file, const ConvertShard& shard) {
  try {
    const SafetensorsFile found = SafetensorsFile::open(file);
    return std::equal(found.tensors().begin(), found.tensors().end(), shard.specs.begin(), shard.specs.end(),
                      [](const Tensor& tensor, const TensorSpec& spec) {
                        return tensor.name == spec.name && tensor.dtype == spec.dtype &&
                               tensor.shape == spec.shape;
                      });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

fs::path partial_folder(const fs::path& out) { return normalised(out) += ".partial"; }

ConvertIdentity identity_of(const Checkpoint& checkpoint, WeightFormat format, uint64_t max_shard_bytes) {
  uint64_t hash = fingerprint(checkpoint);
  std::set<std::string> files;
  for (const Tensor* tensor : checkpoint.tensors()) files.insert(tensor->file);
  for (const fs::path file : files) {
    const auto time = fs::last_write_time(file).time_since_epoch().count();
    hash = fnv1a(
        file.filename().string() + ' ' + std::to_string(fs::file_size(file)) + ' ' + std::to_string(time),
        hash);
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return {text, std::string(name_of(format)), max_shard_bytes};
}

ConvertFolder::ConvertFolder(const fs::path& out, const ConvertIdentity& identity,
                             const std::vector<ConvertShard>& shards)
    : out_(normalised(out)), path_(partial_folder(out)) {
  if (fs::exists(out_) && !(fs::is_directory(out_) && fs::is_empty(out_))) {
    refuse(out_, "exists already; choose another folder or remove it");
  }
  const bool existed = fs::exists(path_) && !(fs::is_directory(path_) && fs::is_empty(path_));
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw Error(ErrorCode::kIo, path_.string() + ": cannot create the folder: " + error.message());
  open_journal(existed);
  try {
    read_journal(identity, shards);
  } catch (...) {
    ::close(journal_);
    throw;
  }
}

ConvertFolder::~ConvertFolder() {
  if (journal_ < 0) return;
  std::error_code ignored;  // a destructor has nobody to tell
  if (finished_.empty()) {
    fs::remove_all(path_, ignored);
  } else {
    remove_temporary_files();
  }
  ::close(journal_);
}

void ConvertFolder::open_journal(bool existed) {
  const fs::path file = path_ / kJournal;
  journal_ = ::open(file.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | (existed ? 0 : O_CREAT), 0644);
  if (journal_ < 0 && errno == ENOENT) {
    refuse(path_, std::string("is there, but holds no ") + kJournal +
                      " of an interrupted conversion; remove it, or choose another --out");
  }
  if (journal_ < 0) fail(file, "open");
  if (::flock(journal_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(std::exchange(journal_, -1));
  refuse(path_, "another conversion is writing this folder; wait for its end, or choose another --out");
}

void ConvertFolder::read_journal(const ConvertIdentity& identity, const std::vector<ConvertShard>& shards) {
  const Json wanted = to_json(identity);
  const std::string text = read_text_file(path_ / kJournal, kMaxJournalBytes);
  const std::vector<std::string> lines = whole_lines(text);
  if (::ftruncate(journal_, static_cast<off_t>(text.rfind('\n') + 1)) != 0) fail(path_ / kJournal, "write");
  if (lines.empty()) return append(wanted.dump());
  const Json found = Json::parse(lines[0], nullptr, false);
  if (!found.is_object() || found != wanted) {
    refuse(path_, "holds an interrupted conversion " + difference(found, wanted) +
                      "; remove it to start anew, or choose another --out");
  }
  const std::set<std::string> named(lines.begin() + 1, lines.end());
  for (const ConvertShard& shard : shards) {
    if (named.contains(shard.file) && is_whole(path_ / shard.file, shard)) finished_.insert(shard.file);
  }
  remove_temporary_files();
}

void ConvertFolder::append(const std::string& line) {
  const std::string text = line + '\n';
  if (::write(journal_, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(journal_) != 0) {
    fail(path_ / kJournal, "write");
  }
}

void ConvertFolder::add(const ConvertShard& shard) {
  append(shard.file);
  finished_.insert(shard.file);
}

// Of writers that were killed: base/file.h.
void ConvertFolder::remove_temporary_files() const {
  std::vector<fs::path> left;
  std::error_code error;
  for (fs::directory_iterator it(path_, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension().string().starts_with(".tmp")) left.push_back(it->path());
  }
  for (const fs::path& file : left) fs::remove(file, error);
}

void ConvertFolder::finish() {
  std::error_code error;
  fs::remove(path_ / kJournal, error);
  if (!error) fs::rename(path_, out_, error);
  if (error)
    throw Error(ErrorCode::kIo, out_.string() + ": cannot rename the finished folder: " + error.message());
  ::close(std::exchange(journal_, -1));
}

}  // namespace sluice
