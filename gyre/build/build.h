// From a configuration to the objects that run it. Every check that needs more than one room is here, so that a wrong
// configuration fails before anything is created or written.
#pragma once

#include <memory>
#include <vector>

#include "gyre/build/balance.h"
#include "gyre/config/config.h"
#include "gyre/config/schedule_options.h"
#include "gyre/data/dataset.h"
#include "gyre/model/layer.h"
#include "gyre/optim/config.h"
#include "gyre/plan/partition.h"
#include "gyre/runtime/pipeline.h"

namespace gyre {

// Takes the vocabulary from the data when the configuration leaves it open. InputError for one that is smaller than the
// data's with the model's special tokens.
void resolve_vocabulary(Config& config, int64_t data_vocabulary);

// [pipeline] threads_per_worker, of which the configuration alone cannot know how many there can be. InputError for
// more than this machine has cores.
int threads_per_worker(const Config& config);

// Of [run] precision.
at::ScalarType compute_type(const Config& config);

Layers build_layers(const Config& config);
// The work between two updates (build/balance.h).
BalancedWork balanced_work(const Config& config);
// Balanced by that, for the configuration's schedule or another of as many stages. InputError for more stages than
// layers.
std::vector<LayerRange> build_partition(const Config& config, const Schedule& schedule, const Layers& layers);
OptimizerConfig optimizer_config(const Config& config);
RuntimeOptions runtime_options(const Config& config, const Schedule& schedule);
std::unique_ptr<Pipeline> build_pipeline(const Config& config);
// With the schedule that build_schedule made, and the workers that are `here`.
std::unique_ptr<Pipeline> build_pipeline(const Config& config, Schedule schedule, WorkerRange here = {});

// What they would complain of, found without allocating anything.
void check_stages(const Config& config);
void check_clipping(const Config& config, const Schedule& schedule);

}  // namespace gyre
