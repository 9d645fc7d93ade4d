// From a configuration to the objects that run it. Every check that needs more than one room is here, so that a wrong
// configuration fails before anything is created or written.
#pragma once

#include <memory>
#include <vector>

#include "gyre/build/balance.h"
#include "gyre/build/devices.h"
#include "gyre/config/config.h"
#include "gyre/config/schedule_options.h"
#include "gyre/data/sources.h"
#include "gyre/model/layer.h"
#include "gyre/optim/config.h"
#include "gyre/plan/partition.h"
#include "gyre/runtime/pipeline.h"

namespace gyre {

// If the configuration leaves the vocabulary open, sets it to the data's plus the model's special tokens. These are the
// tokenizer's own, if it has them and the configuration gives no others. Throws InputError if the vocabulary is set and
// smaller than that.
void resolve_vocabulary(Config& config, const Dataset& dataset);
// The largest vocabulary that data of a resolved model may have: the model's without its special tokens.
int64_t token_vocabulary(const ModelSettings& model);

// [pipeline] threads_per_worker. Throws InputError if this machine has fewer cores, which a configuration alone cannot
// tell.
int threads_per_worker(const Config& config);

// The type to compute in, by [run] precision.
at::ScalarType compute_type(const Config& config);

Layers build_layers(const Config& config);
// The work between two updates (build/balance.h).
BalancedWork balanced_work(const Config& config);
// Balanced by that work, for the configuration's schedule or another with as many stages. Throws InputError if there
// are more stages than layers.
std::vector<LayerRange> build_partition(const Config& config, const Schedule& schedule, const Layers& layers);
OptimizerConfig optimizer_config(const Config& config);
// All but the devices, which build_pipeline finds.
RuntimeOptions runtime_options(const Config& config, const Schedule& schedule);
std::unique_ptr<Pipeline> build_pipeline(const Config& config);
// The same with a schedule that build_schedule made. `here`: the workers of this process, by default all. `process`:
// this one, among those of its host.
std::unique_ptr<Pipeline> build_pipeline(const Config& config, Schedule schedule, WorkerRange here = {},
                                         HostProcess process = {});
// The same stages and weights, to be evaluated alone: without optimizers and averages of weights.
std::unique_ptr<Pipeline> build_evaluated_pipeline(const Config& config);

// The InputError of the functions above for too many stages, found without allocating anything.
void check_stages(const Config& config);

}  // namespace gyre
