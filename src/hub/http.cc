// libcurl's multi interface.
#include "hub/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <map>
#include <string_view>

#include "base/error.h"

namespace sluice::hub {
namespace {

constexpr long kMostRedirects = 5;
constexpr long kSilentSeconds = 60, kConnectSeconds = 30;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

/// The value of a header line if it is `name`'s.
std::optional<std::string> value_of(std::string_view line, std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':' || lower(line.substr(0, name.size())) != name)
    return {};
  std::string_view value = line.substr(name.size() + 1);
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!value.empty() && is_space(value.front())) value.remove_prefix(1);
  while (!value.empty() && is_space(value.back())) value.remove_suffix(1);
  return std::string(value);
}

bool is_passing(CURLcode code) {
  constexpr std::array kPassing = {CURLE_COULDNT_RESOLVE_HOST,
                                   CURLE_COULDNT_CONNECT,
                                   CURLE_PARTIAL_FILE,
                                   CURLE_RECV_ERROR,
                                   CURLE_SEND_ERROR,
                                   CURLE_OPERATION_TIMEDOUT,
                                   CURLE_GOT_NOTHING,
                                   CURLE_SSL_CONNECT_ERROR,
                                   CURLE_HTTP2,
                                   CURLE_HTTP2_STREAM,
                                   CURLE_HTTP3};
  return std::find(kPassing.begin(), kPassing.end(), code) != kPassing.end();
}

}  // namespace

HubAccess HubAccess::from_environment() {
  HubAccess access;
  if (const char* endpoint = std::getenv("HF_ENDPOINT"); endpoint != nullptr && *endpoint != '\0') {
    access.endpoint = endpoint;
    while (access.endpoint.ends_with('/')) access.endpoint.pop_back();
    const bool is_address = access.endpoint.starts_with("https://") || access.endpoint.starts_with("http://");
    if (!is_address || !is_printable_ascii(access.endpoint)) {
      throw Error(ErrorCode::kInvalidArgument,
                  "HF_ENDPOINT=" + access.endpoint + ": expected an address such as https://huggingface.co");
    }
  }
  if (const char* token = std::getenv("HF_TOKEN"); token != nullptr) {
    access.token = token;
    while (access.token.ends_with('\n') || access.token.ends_with('\r')) access.token.pop_back();
    if (!is_printable_ascii(access.token)) {
      throw Error(ErrorCode::kInvalidArgument, "HF_TOKEN: holds characters that no token has");
    }
  }
  return access;
}

std::string url_escaped(std::string_view text) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    if (plain) {
      result += c;
    } else {
      result += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return result;
}

struct HttpClient::Transfer {
  CURL* easy = curl_easy_init();
  int id = 0;
  Receive receive;
  HttpHead head;
  HttpOutcome outcome;
  std::exception_ptr thrown;
  std::array<char, CURL_ERROR_SIZE> words{};

  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() { curl_easy_cleanup(easy); }

  void read_header(std::string_view line) {
    if (line.starts_with("HTTP/")) {  // of each answer on a way of redirects
      head = {};
      outcome.hub_error.clear();
    }
    if (const auto code = value_of(line, "x-error-code")) outcome.hub_error = *code;
    if (const auto range = value_of(line, "content-range"); range && range->starts_with("bytes "))
      std::from_chars(range->data() + 6, range->data() + range->size(), head.first_byte);
  }
  bool read_body(std::span<const std::byte> bytes) {
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &head.status);
    try {
      return receive(head, bytes);
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  }
  void end(CURLcode code) {
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &outcome.status);
    if (code == CURLE_OK) return;
    outcome.failure = words[0] != '\0' ? words.data() : curl_easy_strerror(code);
    outcome.unreachable = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT ||
                          code == CURLE_COULDNT_RESOLVE_PROXY;
    const long status = outcome.status;
    outcome.may_retry = code == CURLE_HTTP_RETURNED_ERROR ? status == 408 || status == 429 || status >= 500
                                                          : is_passing(code);
  }
};

struct HttpClient::State {
  HubAccess access;
  CURLM* multi = curl_multi_init();
  curl_slist* headers = nullptr;
  std::map<int, std::unique_ptr<Transfer>> transfers;
  int last_id = 0;

  ~State() {
    for (const auto& [id, transfer] : transfers) curl_multi_remove_handle(multi, transfer->easy);
    transfers.clear();
    curl_multi_cleanup(multi);
    curl_slist_free_all(headers);
  }
};

HttpClient::HttpClient(const HubAccess& access) : state_(std::make_unique<State>()) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK || state_->multi == nullptr)
    throw Error(ErrorCode::kIo, "libcurl does not start on this system");
  state_->access = access;
  // curl sends this header to the host, port and scheme of the first address alone.
  if (!access.token.empty())
    state_->headers = curl_slist_append(nullptr, ("Authorization: Bearer " + access.token).c_str());
}

HttpClient::~HttpClient() = default;

int HttpClient::start(const std::string& path, uint64_t offset, Receive receive) {
  auto transfer = std::make_unique<Transfer>();
  CURL* easy = transfer->easy;
  if (easy == nullptr) throw std::bad_alloc();
  transfer->id = ++state_->last_id;
  transfer->receive = std::move(receive);
  const std::string url = state_->access.endpoint + path;
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "sluice");
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, state_->headers);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->words.data());
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(easy, CURLOPT_MAXREDIRS, kMostRedirects);
  const char* protocols = url.starts_with("https:") ? "https" : "http,https";
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, protocols);
  curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L * 1024);
  if (offset > 0) curl_easy_setopt(easy, CURLOPT_RANGE, (std::to_string(offset) + "-").c_str());
  using Callback = size_t (*)(char*, size_t, size_t, void*);
  const Callback on_header = [](char* data, size_t size, size_t count, void* given) {
    static_cast<Transfer*>(given)->read_header({data, size * count});
    return size * count;
  };
  const Callback on_body = [](char* data, size_t size, size_t count, void* given) {
    const std::span<const char> bytes(data, size * count);
    return static_cast<Transfer*>(given)->read_body(std::as_bytes(bytes)) ? bytes.size() : size_t{0};
  };
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer.get());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer.get());
  curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer.get());
  curl_multi_add_handle(state_->multi, easy);
  const int id = transfer->id;
  state_->transfers.emplace(id, std::move(transfer));
  return id;
}

std::optional<HttpClient::Ended> HttpClient::wait(std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  for (;;) {
    int running = 0, left = 0;
    curl_multi_perform(state_->multi, &running);
    if (const CURLMsg* message = curl_multi_info_read(state_->multi, &left); message != nullptr) {
      Transfer* transfer = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
      transfer->end(message->data.result);
      curl_multi_remove_handle(state_->multi, transfer->easy);
      const auto node = state_->transfers.extract(transfer->id);
      if (transfer->thrown) std::rethrow_exception(transfer->thrown);
      return Ended{transfer->id, std::move(transfer->outcome)};
    }
    const auto rest =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (rest.count() <= 0) return {};
    curl_multi_poll(state_->multi, nullptr, 0, static_cast<int>(rest.count()), nullptr);
  }
}

}  // namespace sluice::hub
