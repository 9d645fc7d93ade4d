#include "gyre/runtime/segment_setup.h"

#include <algorithm>

#include "gyre/runtime/pipeline_checks.h"

namespace gyre {
namespace {

const Segment& checked(const Pipeline& pipeline, const Segment& segment) {
  check_segment(pipeline, segment);
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
