// An HTTP server on this machine that answers as a test wants, well or badly.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sluice::testing {

struct HttpRequest {
  std::string path;                            // with what follows '?'
  std::map<std::string, std::string> headers;  // names in small letters
};

struct HttpResponse {
  int status = 200;
  std::vector<std::string> headers = {};  // "Name: value"; without Content-Length the body's is added
  std::string body = {};
  size_t cut_after = std::string::npos;  // the connection is closed after so many bytes of the body
  bool endless = false;                  // the body is repeated until the client goes away
  bool hold_open = false;                // nothing more is said until the client goes away
};

/// One thread a connection, one request a connection. Answers until it is destroyed.
class HttpServer {
 public:
  using Handler =
      std::function<HttpResponse(const HttpRequest&)>;  // called from several threads, one at a time
  explicit HttpServer(Handler handler);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  std::string address() const { return "http://127.0.0.1:" + std::to_string(port_); }
  /// All requests so far.
  std::vector<HttpRequest> requests() const;

 private:
  void accept_connections();
  void serve(int connection);

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> ending_{false};
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  std::vector<std::thread> connections_;
  std::thread acceptor_;
};

/// `content`, or the part of it that a Range header of `request` asks for, as servers of files answer.
HttpResponse part_of(const std::string& content, const HttpRequest& request);

}  // namespace sluice::testing
