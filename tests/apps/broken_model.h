// A copy of a tiny checkpoint, to be broken and run.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/program.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "checkpoint/safetensors.h"
#include "text/small_tokenizer.h"

namespace sluice::testing {

// A copy of a tiny checkpoint, to be broken, and ids to run through it.
class BrokenModel : public ::testing::Test {
 protected:
  void copy(const std::string& name) {
    namespace fs = std::filesystem;
    fs::create_directory(model_);
    for (const auto& entry : fs::directory_iterator(golden_folder(name))) {
      fs::copy_file(entry.path(), model_ / entry.path().filename());
    }
    write_ids("[1, 2, 3]");
  }
  void write_ids(const std::string& json) { write_file_atomically(ids_, json); }

  void edit_config(const std::function<void(nlohmann::json&)>& edit) {
    auto config = nlohmann::json::parse(read_text_file(model_ / "config.json"));
    edit(config);
    write_file_atomically(model_ / "config.json", config.dump());
  }
  void edit_tensors(const std::function<void(std::vector<TensorToWrite>&)>& edit) {
    const std::filesystem::path path = model_ / "model.safetensors", edited = model_ / "edited";
    const SafetensorsFile file = SafetensorsFile::open(path);
    std::vector<TensorToWrite> tensors;
    for (const Tensor& tensor : file.tensors()) {
      tensors.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
    }
    edit(tensors);
    write_safetensors(edited, tensors);
    std::filesystem::rename(edited, path);
  }

  /// Ids 0 to 255 are the bytes; 300 is <end>; the ids between are of no token.
  void write_tokenizer() {
    SmallTokenizer tokenizer;
    tokenizer.added_tokens = '[' + added_token(300, "<end>", R"("special": true)") + ']';
    write_file_atomically(model_ / "tokenizer.json", tokenizer.json());
  }

  Arguments eval() const { return {"eval", "--model", model_, "--ids", ids_}; }

  TemporaryFolder folder_;
  const std::filesystem::path model_ = folder_ / "model";
  const std::filesystem::path ids_ = folder_ / "ids.json";
};

}  // namespace sluice::testing
