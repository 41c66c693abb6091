// Several HTTP downloads at once, over libcurl.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace sluice::hub {

/// Where a hub is, and who asks.
struct HubAccess {
  std::string endpoint = "https://huggingface.co";  // without a slash at the end
  std::string token;                                // empty: none
  /// HF_ENDPOINT and HF_TOKEN. Throws Error kInvalidArgument for an endpoint that is no http or https
  /// address and for a token with characters that no header may have. No message ever holds the token.
  static HubAccess from_environment();
};

/// `text` with everything but letters, digits and "-._~" as %XX.
std::string url_escaped(std::string_view text);

/// What is known of an answer when its first bytes arrive.
struct HttpHead {
  long status = 0;
  uint64_t first_byte = 0;  // of the part that a 206 holds
};

struct HttpOutcome {
  long status = 0;           // of the last answer; 0 if there was none
  std::string failure;       // in words; empty: the whole answer arrived
  std::string hub_error;     // X-Error-Code: "GatedRepo", "EntryNotFound"
  bool unreachable = false;  // no connection came about
  bool may_retry = false;    // the next attempt may well do
};

/// GETs. Up to 5 redirects are followed, never from https to http; the token goes to the endpoint's host
/// alone. A transfer on which nothing arrives for a minute fails.
class HttpClient {
 public:
  /// Takes a piece of a body; false ends the transfer. Not called for answers that are errors. What it throws
  /// passes through wait().
  using Receive = std::function<bool(const HttpHead&, std::span<const std::byte>)>;
  struct Ended {
    int id = 0;
    HttpOutcome outcome;
  };

  explicit HttpClient(const HubAccess& access);
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  /// Starts to fetch `path` of the endpoint ("/api/models/..."), from byte `offset` on; an id for wait().
  int start(const std::string& path, uint64_t offset, Receive receive);
  /// Lets transfers go on; the first one that ends, or nothing after `most`.
  std::optional<Ended> wait(std::chrono::milliseconds most);

 private:
  struct Transfer;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::hub
