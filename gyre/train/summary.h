// Describes a run for the user before its first update.
#pragma once

#include <string>
#include <vector>

#include "gyre/config/config.h"
#include "gyre/core/memory_limit.h"
#include "gyre/data/sources.h"
#include "gyre/model/layer.h"
#include "gyre/plan/partition.h"
#include "gyre/schedule/schedule.h"
#include "gyre/train/done_before.h"
#include "gyre/train/memory.h"

namespace gyre {

// A few aligned lines: model, data, updates, schedule, memory; then the stages with their layers, weights and delays.
// may_copy: checkpoints may be written from a copy.
std::string summarise(const Config& config, DoneBefore before, const Dataset& dataset, const Schedule& schedule,
                      const Layers& layers, const std::vector<LayerRange>& ranges, const PredictedMemory& memory,
                      bool may_copy, const MemoryLimit& limit);

// A line that says how many cores stay idle and how to use them, if more threads in each worker would: who comes from
// PyTorch expects all of them to be used. Otherwise empty. workers_here: of the run, on this host.
std::string idle_cores(const Config& config, int workers_here);

}  // namespace gyre
