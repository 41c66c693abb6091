// The system's lists of memory nodes.
#pragma once

#include <string>
#include <vector>

namespace sluice {

/// "0", "0-1" or "0,2-3", as in /sys/devices/system/node; {0} for anything else.
std::vector<int> parse_node_list(const std::string& text);

}  // namespace sluice
