// The parts of a device that every backend shares.
#include "device/device.h"

namespace sluice {

void Device::count_wait(std::string_view why) {
  const auto found = host_waits_.find(why);
  if (found != host_waits_.end()) {
    ++found->second;
  } else {
    host_waits_.emplace(why, 1);
  }
}

}  // namespace sluice
