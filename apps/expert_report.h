// The report of what happened to the experts.
#pragma once

#include <string>

#include "device/device.h"
#include "experts/resident_experts.h"
#include "models/model.h"

namespace sluice::apps {

/// A few lines for people: hits, misses, predictions, bytes by cause, prompt passes, host waits.
std::string describe_report(const ExpertReport& report, const Device& device);
/// `total` and `layers` as JSON; see docs/report.md.
std::string report_json(const ExpertReport& report, const HostRowReport& rows, const Device& device);

}  // namespace sluice::apps
