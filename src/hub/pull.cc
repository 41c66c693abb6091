// The order of a pull: listing, content, links, ref.
#include "hub/pull.h"

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "hub/cache.h"

namespace sluice::hub {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOfListing = 16'000'000;
constexpr std::chrono::milliseconds kLongestWait{100};

std::string path_escaped(std::string_view path) {
  std::string result;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    result += (begin > 0 ? "/" : "") + url_escaped(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

std::string fetch_listing(const PullOptions& options) {
  const std::string what = options.name.text();
  const std::string path = "/api/models/" + options.name.repo + "/revision/" +
                           url_escaped(options.name.revision_or_main()) + "?blobs=true";
  HttpClient client(options.access);
  std::string text;
  client.start(path, 0, [&](const HttpHead&, std::span<const std::byte> bytes) {
    if (text.size() + bytes.size() > kMostOfListing) {
      throw Error(ErrorCode::kBadFile, what + ": the hub's list of files is longer than " +
                                           std::to_string(kMostOfListing) + " bytes");
    }
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  });
  for (;;) {
    const auto ended = client.wait(kLongestWait);
    if (options.download.progress) options.download.progress(0, 0);
    if (!ended) continue;
    if (ended->outcome.failure.empty()) return text;
    throw Error(ErrorCode::kIo, describe_failure(ended->outcome, options.access, what));
  }
}

void create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(ErrorCode::kIo, folder.string() + ": cannot create the folder: " + error.message());
}

// Relative, so that the cache may be moved.
void link_file(const fs::path& repo, const fs::path& snapshot, const RemoteFile& file) {
  const fs::path link = snapshot / file.name;
  create_folder(link.parent_path());
  const fs::path target = (repo / "blobs" / file.hash).lexically_relative(link.parent_path());
  std::error_code error;
  if (fs::is_symlink(link, error) && fs::read_symlink(link, error) == target) return;
  fs::path fresh = link;
  fresh += ".tmp";
  fs::remove(fresh, error);
  fs::create_symlink(target, fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) throw Error(ErrorCode::kIo, link.string() + ": cannot link: " + error.message());
}

}  // namespace

PullSummary pull(const PullOptions& options) {
  const std::string what = options.name.text();
  const Listing listing = parse_listing(fetch_listing(options), what);
  if (is_commit(options.name.revision) && listing.commit != options.name.revision)
    throw Error(ErrorCode::kBadFile, what + ": the hub answers with commit " + listing.commit);
  const Selection selection = select_files(listing, what);
  if (options.selected) options.selected(selection);

  const fs::path repo = fs::absolute(repo_folder(options.cache, options.name));
  const auto path_of = [&](const RemoteFile& file) {
    return "/" + options.name.repo + "/resolve/" + listing.commit + "/" + path_escaped(file.name);
  };
  PullSummary summary;
  summary.fetched_bytes = download(options.access, repo, selection.files, path_of, options.download);
  summary.snapshot = snapshot_folder(repo, listing.commit);
  create_folder(summary.snapshot);
  for (const RemoteFile& file : selection.files) link_file(repo, summary.snapshot, file);
  if (!is_commit(options.name.revision)) {
    const fs::path ref = ref_file(repo, options.name.revision_or_main());
    create_folder(ref.parent_path());
    write_file_atomically(ref, listing.commit);
  }
  return summary;
}

}  // namespace sluice::hub
