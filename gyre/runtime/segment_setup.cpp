#include "gyre/runtime/segment_setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/core/error.h"

namespace gyre {
namespace {

const Segment& checked(const Pipeline& pipeline, const Segment& segment) {
  const Schedule& schedule = *segment.schedule;
  const auto& placement = pipeline.schedule().placement;
  const auto& own = schedule.placement;
  // A forward-only schedule has only the first of the pipelines.
  const bool fits = schedule.forward_only
                        ? own.size() <= placement.size() && std::equal(own.begin(), own.end(), placement.begin())
                        : own == placement;
  if (!fits) throw InputError(fmt::format("schedule {}: its placement is not the pipeline's", schedule.name));
  return segment;
}

}  // namespace

SegmentSetup::SegmentSetup(Pipeline& pipeline, const Segment& segment, SegmentObserver* observer,
                           const WrapTransport& wrap)
    : bells(checked(pipeline, segment).schedule->workers),
      memory(bells),
      wrapped(wrap ? wrap(memory, bells) : nullptr),
      numbers(*segment.schedule) {
  if (observer != nullptr) {
    conductor = std::make_unique<Conductor>(pipeline.plan(), pipeline.conductor(), segment, transport(), *observer);
  }
  // Walking a long program takes a while, so the plan has done it for its own schedule.
  const PipelinePlan& plan = pipeline.plan();
  const bool is_own = segment.schedule == &plan.schedule;
  const auto in_flight = is_own ? plan.in_flight : most_in_flight(*segment.schedule);
  for (const auto& [number, state] : pipeline.workers()) {
    workers.push_back(std::make_unique<Worker>(*state, plan, segment, numbers, in_flight, transport()));
  }
}

ProcessMemory SegmentSetup::process_memory() const {
  std::vector<at::Device> devices;
  for (const auto& worker : workers) {
    if (std::find(devices.begin(), devices.end(), worker->device()) == devices.end())
      devices.push_back(worker->device());
  }
  return ProcessMemory::now(devices);
}

}  // namespace gyre
