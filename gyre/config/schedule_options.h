// The part of a configuration that makes a schedule. Free of torch, so that a run can be simulated without loading it.
#pragma once

#include "gyre/config/config.h"
#include "gyre/schedule/builders.h"

namespace gyre {

ScheduleOptions schedule_options(const Config& config);
// The schedule that [pipeline] names, a builtin or a file; InputError says what does not fit.
Schedule build_schedule(const Config& config);
// What a backward reads under this configuration.
WeightPolicy weight_policy(const Config& config, const Schedule& schedule);

}  // namespace gyre
