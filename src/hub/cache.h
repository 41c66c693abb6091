// The cache that programs share for models from the Hugging Face hub:
//   models--org--name/refs/main            the commit that a branch or tag stands for
//   models--org--name/blobs/ETAG           content
//   models--org--name/snapshots/COMMIT/... links to the blobs, by the files' names
// https://huggingface.co/docs/huggingface_hub/guides/manage-cache
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "hub/model_name.h"

namespace sluice::hub {

/// HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub.
std::filesystem::path cache_folder();

/// A model's part of the cache; need not exist.
std::filesystem::path repo_folder(const std::filesystem::path& cache, const ModelName& name);
/// The file that says which commit `revision` is.
std::filesystem::path ref_file(const std::filesystem::path& repo, const std::string& revision);
std::filesystem::path snapshot_folder(const std::filesystem::path& repo, const std::string& commit);

/// The folder with the files of the revision (a branch, a tag or a whole commit); nothing where the cache has
/// none. Throws Error kBadFile for a ref that names no commit.
std::optional<std::filesystem::path> find_snapshot(const std::filesystem::path& cache, const ModelName& name);

}  // namespace sluice::hub
