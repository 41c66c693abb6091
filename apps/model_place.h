// What --model names.
#pragma once

#include <optional>
#include <string>

#include "apps/arguments.h"

namespace sluice::apps {

/// The folder of the model that a user names: `name` itself where it is there, else the snapshot of
/// `org/name[@revision]` in the Hugging Face cache. Throws Error kNotFound, with the command that fetches it
/// where it could be a name, or kInvalidArgument (a file).
std::string find_model(const std::string& name);

/// Likewise what --tokenizer names: a tokenizer.json, a folder, or a model in the cache.
std::string find_tokenizer(const std::string& name);

/// The value of --model. Its folder is looked for when it is first asked for, not while options are parsed: a
/// command line that is wrong in itself is refused first.
class ModelPlace {
 public:
  /// Adds --model; `holds` says what the folder must hold: "config.json and safetensors files".
  Argument add_to(Command& command, const std::string& holds);

  bool given() const { return !name_.empty(); }
  const std::string& name() const { return name_; }
  /// Throws as find_model.
  const std::string& folder() const;

 private:
  std::string name_;
  mutable std::optional<std::string> folder_;
};

}  // namespace sluice::apps
