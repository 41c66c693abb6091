// `sluice trace replay`.
#pragma once

namespace sluice::apps {

class Command;

void add_trace_replay(Command& trace);

}  // namespace sluice::apps
