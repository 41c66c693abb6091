// The flags that say where expert rows lie in host memory, and what became of them.
#pragma once

#include <string>

#include "experts/host_rows.h"

namespace sluice::apps {

class Command;

struct HostRowFlags {
  std::string numa = "gpu", lock = "auto", memory_limit;

  void add_to(Command& command);
  /// Throws Error kInvalidArgument for a node that is not there and for a limit that is no number of bytes.
  HostRowOptions resolve() const;
};

/// A line for each thing that is not as it should be: staged layers and what they cost, pages whose placement
/// was refused. Empty where all is well.
std::string describe_refusals(const HostRowReport& report);
/// "expert rows: 1.23 GB, all locked; node 0 100 %".
std::string describe_host_rows(const HostRowReport& report);

}  // namespace sluice::apps
