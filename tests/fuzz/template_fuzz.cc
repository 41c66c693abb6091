// Chat templates: the template, a zero byte, and the messages as JSON. Without those there are two.
#include "text/chat_template.h"

#include <string>

#include "base/error.h"
#include "fuzz/target.h"
#include "text/chat_template_inputs.h"
#include "text/json_input.h"
#include "text/utf8.h"

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMessages = R"([{"role": "user", "content": "Hi, caf\u00e9?"},
    {"role": "assistant", "content": null, "tool_calls": [{"type": "function", "id": "c1",
     "function": {"name": "f", "arguments": {"items": [1, 2.5, true, null], "x": "y"}}}]}])";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = text_of(data, size);
  const size_t end = std::min(text.find('\0'), size);
  const std::string_view messages = end == size ? kMessages : text.substr(end + 1);
  sluice::ChatTemplateInputs inputs;
  inputs.tools = Json::parse(R"([{"type": "function", "function": {"name": "f", "parameters": {}}}])");
  try {
    inputs.messages = sluice::parse_json(messages, "messages", sluice::ErrorCode::kInvalidArgument);
    const auto chat_template = sluice::ChatTemplate::parse(text.substr(0, end), "<s>", "</s>");
    SLUICE_CHECK(sluice::is_valid_utf8(chat_template.render(inputs)));
  } catch (const sluice::Error&) {
  }
  return 0;
}
