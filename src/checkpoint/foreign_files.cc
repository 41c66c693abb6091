// Goes by the ends of names; nothing is opened.
#include "checkpoint/foreign_files.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <vector>

#include "checkpoint/quantization.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

struct Kind {
  std::string_view end, what;
};
constexpr Kind kKinds[] = {
    {".gguf", "a GGUF file"},
    {".ggml", "a GGML file"},
    {".bin", "a PyTorch file"},
    {".pth", "a PyTorch file"},
    {".pt", "a PyTorch file"},
    {".h5", "a TensorFlow file"},
    {".msgpack", "a Flax file"},
    {".onnx", "an ONNX file"},
    {".safetensors", "a safetensors file under another name than model.safetensors, without an index"},
};

std::string describe(const std::string& name) {
  for (const Kind& kind : kKinds) {
    if (!name.ends_with(kind.end)) continue;
    return "holds " + name + ", " + std::string(kind.what) +
           ", which is not read: use the model's safetensors checkpoint as transformers writes it, in " +
           kSupportedFormats;
  }
  return "";
}

}  // namespace

std::string describe_foreign_weights(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return describe(path.filename().string());
  std::vector<std::string> names;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (std::string text = describe(name); !text.empty()) return text;
  }
  return "";
}

}  // namespace sluice
