// The host backend with a worker thread a stream: real concurrency, for stress under ThreadSanitizer.
#pragma once

#include <memory>

#include "device/device.h"

namespace sluice {

/// Each worker computes with a pool of its own of one thread. What an operation throws comes out of the next
/// host wait. Calls come from one host thread at a time.
std::unique_ptr<Device> make_threaded_device();

}  // namespace sluice
