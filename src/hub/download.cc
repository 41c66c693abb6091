// Several downloads at once, attempts after failures, and what failures mean.
#include "hub/download.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/printable.h"
#include "base/units.h"
#include "hub/incomplete_file.h"

namespace sluice::hub {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLongestWait{100};  // between two looks at Ctrl-C
constexpr uint64_t kSpareBytes = 64'000'000;            // a disk should not end full

bool is_there(const fs::path& repo, const RemoteFile& file) {
  std::error_code error;
  const auto size = fs::file_size(repo / "blobs" / file.hash, error);
  return !error && size == file.size;
}

uint64_t bytes_of_incomplete(const fs::path& repo, const RemoteFile& file) {
  std::error_code error;
  const auto size = fs::file_size((repo / "blobs" / file.hash) += ".incomplete", error);
  return error || size > file.size ? 0 : size;
}

void check_room(const fs::path& repo, uint64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(repo, error);
  if (error) throw Error(ErrorCode::kIo, repo.string() + ": cannot read the free space: " + error.message());
  if (bytes == 0 || space.available >= bytes + kSpareBytes) return;
  throw Error(ErrorCode::kIo, repo.string() + ": the files need " + format_bytes(bytes + kSpareBytes) +
                                  ", but " + format_bytes(space.available) +
                                  " are free; HF_HUB_CACHE=FOLDER puts them on another disk");
}

class Downloads {
 public:
  Downloads(const HubAccess& access, const fs::path& repo,
            const std::function<std::string(const RemoteFile&)>& path_of, const DownloadOptions& options)
      : access_(access), repo_(repo), path_of_(path_of), options_(options), client_(access) {}

  uint64_t run(const std::vector<RemoteFile>& files) {
    plan(files);
    report();
    while (!waiting_.empty() || !running_.empty()) {
      start_those_that_may();
      if (const auto ended = client_.wait(kLongestWait)) end(*ended);
      report();
    }
    return fetched_bytes_;
  }

 private:
  struct Job {
    RemoteFile file;
    std::unique_ptr<IncompleteFile> content;  // once it has been started
    int failures = 0;                         // in a row without progress
    Clock::time_point not_before{};
    bool first_piece = true;     // of this attempt
    uint64_t most_bytes = 0;     // that there ever were of it
    uint64_t counted_bytes = 0;  // in done_bytes_
  };

  void plan(const std::vector<RemoteFile>& files);
  void start_those_that_may();
  void start(std::unique_ptr<Job> job);
  bool receive(Job& job, const HttpHead& head, std::span<const std::byte> bytes);
  void end(const HttpClient::Ended& ended);
  void try_again(std::unique_ptr<Job> job, const HttpOutcome& outcome);
  void count(Job& job) {
    done_bytes_ += job.content->bytes() - job.counted_bytes;
    job.counted_bytes = job.content->bytes();
  }
  void report() {
    if (options_.progress) options_.progress(done_bytes_, total_bytes_);
  }

  const HubAccess& access_;
  const fs::path& repo_;
  const std::function<std::string(const RemoteFile&)>& path_of_;
  const DownloadOptions& options_;
  std::deque<std::unique_ptr<Job>> waiting_;
  std::map<int, std::unique_ptr<Job>> running_;  // by the client's ids
  uint64_t done_bytes_ = 0, total_bytes_ = 0, fetched_bytes_ = 0;
  HttpClient client_;  // last: its callbacks use what is above
};

void Downloads::plan(const std::vector<RemoteFile>& files) {
  std::set<std::string> hashes;  // two names may have one content
  uint64_t missing = 0;
  for (const RemoteFile& file : files) {
    if (!hashes.insert(file.hash).second) continue;
    total_bytes_ += file.size;
    if (is_there(repo_, file)) {
      done_bytes_ += file.size;
      continue;
    }
    missing += file.size - bytes_of_incomplete(repo_, file);
    waiting_.push_back(std::make_unique<Job>());
    waiting_.back()->file = file;
  }
  check_room(repo_, missing);
}

void Downloads::start_those_that_may() {
  for (size_t i = 0; i < waiting_.size() && running_.size() < static_cast<size_t>(options_.parallel);) {
    if (waiting_[i]->not_before > Clock::now()) {
      ++i;
      continue;
    }
    std::unique_ptr<Job> job = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    start(std::move(job));
  }
}

void Downloads::start(std::unique_ptr<Job> job) {
  if (!job->content) job->content = std::make_unique<IncompleteFile>(repo_, job->file);
  count(*job);
  if (job->content->is_full()) return job->content->finish();
  job->first_piece = true;
  Job* const at = job.get();
  const int id = client_.start(path_of_(job->file), job->content->bytes(),
                               [this, at](const HttpHead& head, std::span<const std::byte> bytes) {
                                 return receive(*at, head, bytes);
                               });
  running_.emplace(id, std::move(job));
}

bool Downloads::receive(Job& job, const HttpHead& head, std::span<const std::byte> bytes) {
  if (job.first_piece) {
    // A server may answer with the whole file, or with another part than was asked for.
    const uint64_t first = head.status == 206 ? head.first_byte : 0;
    if (first != job.content->bytes()) {
      job.content->start_anew();
      if (first != 0) return false;
    }
    job.first_piece = false;
  }
  job.content->append(bytes);
  fetched_bytes_ += bytes.size();
  count(job);
  return true;
}

void Downloads::end(const HttpClient::Ended& ended) {
  const auto at = running_.find(ended.id);
  SLUICE_CHECK(at != running_.end());
  std::unique_ptr<Job> job = std::move(at->second);
  running_.erase(at);
  if (job->content->is_full()) return job->content->finish();  // even if the connection broke afterwards
  HttpOutcome outcome = ended.outcome;
  const bool refused_range = outcome.status == 416;
  if (refused_range) job->content->start_anew();
  const bool another_part = job->first_piece && outcome.status == 206;
  const bool too_short = outcome.failure.empty();
  if (too_short) outcome.failure = "the server ended it early";
  if (!outcome.may_retry && !too_short && !refused_range && !another_part) {
    throw Error(ErrorCode::kIo, describe_failure(outcome, access_, printable(job->file.name)));
  }
  count(*job);
  try_again(std::move(job), outcome);
}

void Downloads::try_again(std::unique_ptr<Job> job, const HttpOutcome& outcome) {
  // A server that begins anew each time gets no nearer to the end.
  job->failures = job->content->bytes() > job->most_bytes ? 1 : job->failures + 1;
  job->most_bytes = std::max(job->most_bytes, job->content->bytes());
  if (job->failures >= options_.attempts) {
    throw Error(ErrorCode::kIo, describe_failure(outcome, access_, printable(job->file.name)) +
                                    "; given up after " + std::to_string(job->failures) +
                                    " attempts, what has arrived is kept: pull again to go on");
  }
  job->not_before = Clock::now() + options_.first_pause * (1 << (job->failures - 1));
  waiting_.push_back(std::move(job));
}

}  // namespace

uint64_t download(const HubAccess& access, const fs::path& repo, const std::vector<RemoteFile>& files,
                  const std::function<std::string(const RemoteFile&)>& path_of,
                  const DownloadOptions& options) {
  std::error_code error;
  fs::create_directories(repo / "blobs", error);
  if (error)
    throw Error(ErrorCode::kIo, (repo / "blobs").string() + ": cannot create the folder: " + error.message());
  return Downloads(access, repo, path_of, options).run(files);
}

std::string describe_failure(const HttpOutcome& outcome, const HubAccess& access, const std::string& what) {
  const std::string& hub = access.endpoint;
  const bool has_token = !access.token.empty();
  const bool gated = outcome.hub_error == "GatedRepo";
  if (outcome.status == 401 && has_token && !gated)
    return what + ": " + hub + " refuses the token of HF_TOKEN, or the model does not exist (401)";
  if (outcome.status == 401 || outcome.status == 403) {
    const std::string code = " (" + std::to_string(outcome.status) + ")";
    if (!has_token) {
      return what + ": " + hub +
             (gated ? " asks who you are, the model is gated"
                    : " asks who you are; it has no such model, or a gated or private one") +
             code +
             ": accept its terms on its page if it has any, and set HF_TOKEN to a token of your account";
    }
    return what + ": " + hub + " does not let the account of HF_TOKEN read it" + code +
           ": accept its terms on its page, and see whether the token may read gated models";
  }
  if (outcome.status == 404) {
    const bool revision = outcome.hub_error == "RevisionNotFound";
    return what + ": " + hub +
           (revision ? " has the model, but not this revision (404)" : " does not have it (404)");
  }
  if (outcome.status == 429) return what + ": " + hub + " asks to be left alone for a while (429)";
  if (outcome.status >= 400)
    return what + ": " + hub + " answers with error " + std::to_string(outcome.status);
  if (outcome.unreachable) return what + ": " + hub + " cannot be reached: " + outcome.failure;
  return what + ": the transfer from " + hub + " failed: " + outcome.failure;
}

}  // namespace sluice::hub
