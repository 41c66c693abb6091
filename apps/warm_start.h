// Which experts a command starts with, and what it leaves to the next one.
#pragma once

#include "apps/expert_options.h"
#include "checkpoint/checkpoint.h"
#include "experts/trace.h"

namespace sluice::apps {

/// The model as traces name it. Throws Error kUnsupported for a model without experts.
TraceModel trace_model(const Model& model);

/// Fills slots from --warm-from and --residency (what the file names goes first; a file that is not there yet
/// is no error). Throws Error for files that are cut short, damaged or of another model.
void warm_start(const ExpertOptions& options, const Checkpoint& checkpoint, Runtime& runtime);
/// The MoE layers in the order in which their experts should take the near memory, by what warm_start() will
/// put into slots; empty where that is not known. Throws Error for a residency file as warm_start() does.
std::vector<int64_t> expert_order(const ExpertOptions& options, const Checkpoint& checkpoint,
                                  const ModelInfo& info);
/// Writes --residency.
void save_residency(const ExpertOptions& options, const Checkpoint& checkpoint, Runtime& runtime);

}  // namespace sluice::apps
