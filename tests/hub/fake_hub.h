// A hub with one model, org/name, as the real one answers; a test changes single answers.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "hub/blob_hash.h"
#include "hub/http_server.h"

namespace sluice::testing {

inline const std::string kFakeCommit = "00112233445566778899aabbccddeeff00112233";

inline std::string hash_of(const std::string& content, hub::BlobHash::Kind kind) {
  hub::BlobHash hash(kind, content.size());
  hash.add(std::as_bytes(std::span(content)));
  return hash.finish();
}

class FakeHub {
 public:
  std::map<std::string, std::string> files = {
      {"config.json", "{\"a\": 1}"},     {"model.safetensors", std::string(300'000, 'w') + "end"},
      {"tokenizer.json", "{}"},          {"README.md", "text"},
      {"model.gguf", "no use"},          {"original/consolidated.00.pth", "no use either"},
      {"sub folder/extra#1.json", "[]"},
  };
  /// Answers in the place of the hub's: by the path of the file, "" for the API.
  std::map<std::string, std::function<HttpResponse(const HttpRequest&)>> instead;
  /// Edits the answer of the API.
  std::function<void(nlohmann::json&)> edit_listing = [](nlohmann::json&) {};

  /// From now on it answers; what is set before needs no lock.
  std::string address() const { return server().address(); }
  /// Requests of `file`; of the API for "".
  std::vector<HttpRequest> requests_of(const std::string& file) const {
    std::vector<HttpRequest> found;
    for (const HttpRequest& request : server().requests())
      if (file_of(request) == file) found.push_back(request);
    return found;
  }
  static bool is_large(const std::string& name) {
    return name.ends_with(".safetensors") || name.ends_with(".pth");
  }
  static hub::BlobHash::Kind kind_of(const std::string& name) {
    return is_large(name) ? hub::BlobHash::Kind::kSha256 : hub::BlobHash::Kind::kGitBlob;
  }
  std::string blob_of(const std::string& name) const { return hash_of(files.at(name), kind_of(name)); }

 private:
  static std::string file_of(const HttpRequest& request) {
    const std::string before = "/org/name/resolve/" + kFakeCommit + "/";
    if (!request.path.starts_with(before)) return "";
    std::string name = request.path.substr(before.size());
    for (const auto& [from, to] : {std::pair("%20", " "), {"%23", "#"}})
      if (const size_t at = name.find(from); at != std::string::npos) name.replace(at, 3, to);
    return name;
  }
  HttpResponse answer(const HttpRequest& request) const {
    const std::string name = file_of(request);
    if (const auto other = instead.find(name); other != instead.end()) return other->second(request);
    if (name.empty())
      return request.path.starts_with("/api/models/org/name/revision/") ? listing()
                                                                        : HttpResponse{.status = 404};
    const auto file = files.find(name);
    return file == files.end() ? HttpResponse{.status = 404} : part_of(file->second, request);
  }
  HttpResponse listing() const {
    nlohmann::json siblings = nlohmann::json::array();
    for (const auto& [name, content] : files) {
      nlohmann::json item = {{"rfilename", name}, {"size", content.size()}, {"blobId", std::string(40, 'b')}};
      if (is_large(name)) {
        item["lfs"] = {{"sha256", blob_of(name)}, {"size", content.size()}, {"pointerSize", 130}};
      } else {
        item["blobId"] = blob_of(name);
      }
      siblings.push_back(item);
    }
    nlohmann::json root = {{"id", "org/name"}, {"sha", kFakeCommit}, {"siblings", siblings}};
    edit_listing(root);
    return {.body = root.dump()};
  }

  HttpServer& server() const {
    if (server_ == nullptr) {
      server_ = std::make_unique<HttpServer>([this](const HttpRequest& request) { return answer(request); });
    }
    return *server_;
  }

  mutable std::unique_ptr<HttpServer> server_;  // last: its threads use what is above
};

}  // namespace sluice::testing
