// Builds the schedule of a configuration. Free of torch, so that a run can be simulated without loading it.
#pragma once

#include "gyre/config/config.h"
#include "gyre/schedule/builders.h"

namespace gyre {

ScheduleOptions schedule_options(const Config& config);
// [optimizer] clip_scope; None if nothing is clipped.
ClipScope clip_scope(const Config& config);
// The schedule that [pipeline] names, built in or from a file. Throws InputError that says what does not fit.
Schedule build_schedule(const Config& config);
// Which version of the weights a backward reads: [pipeline] weights or, for "auto", the optimizer's or the schedule's.
WeightPolicy weight_policy(const Config& config, const Schedule& schedule);

}  // namespace gyre
