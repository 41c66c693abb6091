// What a chat template is rendered with. Apart from chat_template.h because nlohmann's header is heavy.
#pragma once

#include <nlohmann/json.hpp>

namespace sluice {

struct ChatTemplateInputs {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  nlohmann::ordered_json tools;  // null: none
  bool add_generation_prompt = true;
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();  // further variables by name
};

}  // namespace sluice
