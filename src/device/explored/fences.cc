// A short list; protocols have few fences.
#include "device/explored/fences.h"

#include <algorithm>

namespace sluice {

std::string_view name_of(FenceKind kind) {
  switch (kind) {
    case FenceKind::kRecord:
      return "record";
    case FenceKind::kStreamWait:
      return "stream wait";
    case FenceKind::kHostWait:
      return "host wait";
    case FenceKind::kDone:
      return "done";
  }
  return "unknown";
}

std::string describe(const Fence& fence) {
  const char* link = fence.kind == FenceKind::kRecord || fence.kind == FenceKind::kDone ? " of '" : " for '";
  return std::string(name_of(fence.kind)) + link + fence.target + "' on '" + fence.stream + "'";
}

void FenceLog::drop(FenceKind kind, std::string stream, std::string target, int64_t nth) {
  drops_.push_back({{kind, std::move(stream), std::move(target)}, nth});
}

size_t FenceLog::use(FenceKind kind, const std::string& stream, const std::string& target, bool& dropped) {
  auto at = std::find_if(fences_.begin(), fences_.end(),
                         [&](const Fence& fence) { return fence.same(kind, stream, target); });
  if (at == fences_.end()) at = fences_.insert(at, Fence{kind, stream, target});
  ++at->uses;
  dropped = std::any_of(drops_.begin(), drops_.end(), [&](const Drop& drop) {
    return drop.fence.same(kind, stream, target) && (drop.nth == kEvery || drop.nth == at->uses);
  });
  return static_cast<size_t>(at - fences_.begin());
}

}  // namespace sluice
