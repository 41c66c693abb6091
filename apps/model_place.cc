// Folders first, then the cache.
#include "apps/model_place.h"

#include <system_error>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "hub/cache.h"
#include "hub/model_name.h"

namespace sluice::apps {

std::string find_model(const std::string& name) {
  std::error_code ignored;
  const auto on_hub = hub::parse_model_name(name);
  if (std::filesystem::exists(name, ignored) || !on_hub) {
    check_model_folder(name);
    return name;
  }
  const std::filesystem::path cache = hub::cache_folder();
  if (const auto snapshot = hub::find_snapshot(cache, *on_hub)) return snapshot->string();
  throw Error(ErrorCode::kNotFound, name + ": no such folder, and no such model in " + cache.string() +
                                        "; `sluice pull " + name + "` fetches it");
}

std::string find_tokenizer(const std::string& name) {
  std::error_code ignored;  // whoever reads it says what else is wrong
  if (std::filesystem::exists(name, ignored)) return name;
  if (hub::parse_model_name(name)) return find_model(name);
  throw Error(ErrorCode::kNotFound, name + ": no such file or folder");
}

Argument ModelPlace::add_to(Command& command, const std::string& holds) {
  return command
      .option("--model", name_,
              "Folder with " + holds + ", or the name of a model in the Hugging Face cache (sluice pull)")
      .type("DIR|ORG/NAME");
}

const std::string& ModelPlace::folder() const {
  if (!folder_) folder_ = find_model(name_);
  return *folder_;
}

}  // namespace sluice::apps
