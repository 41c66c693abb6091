// Sockets of POSIX, HTTP/1.1 with closed connections.
#include "hub/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <string_view>

namespace sluice::testing {
namespace {

/// The head of a request, up to the empty line; empty if the client went away.
std::string read_head(int connection) {
  std::string text;
  char buffer[4096];
  while (text.find("\r\n\r\n") == std::string::npos) {
    const ssize_t n = ::recv(connection, buffer, sizeof buffer, 0);
    if (n <= 0) return "";
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

HttpRequest parse(const std::string& head) {
  HttpRequest request;
  const size_t from = head.find(' ') + 1;
  request.path = head.substr(from, head.find(' ', from) - from);
  for (size_t at = head.find("\r\n") + 2; head.compare(at, 2, "\r\n") != 0;) {
    const size_t end = head.find("\r\n", at), colon = head.find(':', at);
    std::string name = head.substr(at, colon - at);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    request.headers[name] = head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  return request;
}

bool send_all(int connection, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

HttpServer::HttpServer(Handler handler) : handler_(std::move(handler)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof place;
  const auto address = reinterpret_cast<sockaddr*>(&place);
  if (listener_ < 0 || ::bind(listener_, address, length) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, address, &length) != 0) {
    throw std::runtime_error("cannot listen on 127.0.0.1");
  }
  port_ = ntohs(place.sin_port);
  acceptor_ = std::thread([this] { accept_connections(); });
}

HttpServer::~HttpServer() {
  ending_ = true;
  ::shutdown(listener_, SHUT_RDWR);  // ends accept()
  acceptor_.join();
  for (std::thread& connection : connections_) connection.join();
  ::close(listener_);
}

std::vector<HttpRequest> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpServer::accept_connections() {
  while (!ending_) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    timeval patience{30, 0};  // a client that says nothing must not hold the end of the test
    ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    connections_.emplace_back([this, connection] {
      serve(connection);
      ::close(connection);
    });
  }
}

void HttpServer::serve(int connection) {
  const std::string head = read_head(connection);
  if (head.empty()) return;
  HttpResponse response;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(parse(head));
    response = handler_(requests_.back());
  }
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " X\r\nConnection: close\r\n";
  bool has_length = response.endless;
  for (const std::string& header : response.headers) {
    text += header + "\r\n";
    has_length = has_length || header.starts_with("Content-Length");
  }
  if (!has_length) text += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  if (!send_all(connection, text + "\r\n")) return;
  do {
    if (!send_all(connection, std::string_view(response.body).substr(0, response.cut_after))) return;
  } while (response.endless && !ending_);
  char ignored;
  if (response.hold_open) ::recv(connection, &ignored, 1, 0);
  ::shutdown(connection, SHUT_WR);
}

HttpResponse part_of(const std::string& content, const HttpRequest& request) {
  const auto range = request.headers.find("range");
  if (range == request.headers.end()) return {.body = content};
  const size_t first = std::stoul(range->second.substr(std::string("bytes=").size()));
  if (first >= content.size()) return {.status = 416};
  const std::string size = std::to_string(content.size());
  return {.status = 206,
          .headers = {"Content-Range: bytes " + std::to_string(first) + "-" +
                      std::to_string(content.size() - 1) + "/" + size},
          .body = content.substr(first)};
}

}  // namespace sluice::testing
