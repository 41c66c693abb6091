// Chat templates: messages to the text that a model was trained on.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace sluice {

struct ChatTemplateInputs;  // chat_template_inputs.h: needs nlohmann's full header

/// A parsed chat template. Immutable; render may be called from several threads.
class ChatTemplate {
 public:
  /// `chat_template.jinja` in `folder`, else the field of tokenizer_config.json (a string, or the list entry
  /// named "default"). BOS and EOS come from tokenizer_config.json. Throws Error kNotFound, kBadFile (syntax:
  /// line and column).
  static ChatTemplate load(const std::filesystem::path& folder);
  static ChatTemplate parse(std::string_view source, std::string bos_token = "", std::string eos_token = "");
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  /// Throws Error kInvalidArgument with the template's own message where it raises, kBadFile for a run-time
  /// error of the template (line named), kUnsupported past 64 MB of output, depth 100, or 10 M steps and
  /// 20,000 more for each message (100 M at most).
  std::string render(const ChatTemplateInputs& inputs) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
