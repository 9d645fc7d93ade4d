#include "gyre/runtime/segment_setup.h"

#include <fmt/format.h>

#include "gyre/core/error.h"

namespace gyre {
namespace {

// A forward-only program holds nothing in flight; two waiting messages hide the hand-over.
constexpr int64_t kForwardOnlyCapacity = 2;

std::vector<std::shared_ptr<Doorbell>> make_bells(int workers) {
  std::vector<std::shared_ptr<Doorbell>> bells;
  for (int worker = 0; worker < workers; ++worker) bells.push_back(std::make_shared<Doorbell>());
  return bells;
}

}  // namespace

SegmentSetup::SegmentSetup(Pipeline& pipeline, const Segment& segment)
    : bells(make_bells(segment.schedule->workers)),
      shared{pipeline,
             segment,
             ReplicaNumbers(*segment.schedule),
             Intake(segment.microbatches, segment.schedule->window, segment.stop),
             NormExchange(segment.schedule->stages, bells),
             {},
             {},
             {},
             {}} {
  const Schedule& schedule = *segment.schedule;
  const auto& placement = pipeline.schedule().placement;
  const bool fits = schedule.forward_only ? schedule.placement[0] == placement[0] : schedule.placement == placement;
  if (!fits) throw InputError(fmt::format("schedule {}: its placement is not the pipeline's", schedule.name));
  pipeline.begin_segment();
  // No owner makes, and no replica finishes, more windows than a repetition has before the other side takes them.
  const int64_t windows = schedule.shift / schedule.window + 2;
  for (int p = 0; p < schedule.pipelines; ++p) {
    auto& activations = shared.activations.emplace_back(schedule.stages);
    auto& gradients = shared.gradients.emplace_back(schedule.stages);
    auto& reductions = shared.reductions.emplace_back(schedule.stages);
    auto& versions = shared.versions.emplace_back(schedule.stages);
    for (int stage = 0; stage < schedule.stages; ++stage) {
      const auto& here = bells[schedule.worker_of(p, stage)];
      const auto& owner = bells[schedule.owner[stage]];
      const std::string place = fmt::format("{}:{}", p, stage);
      reductions[stage] =
          std::make_unique<MemoryChannel<ReducedGradient>>(here, owner, windows, place + " to its owner");
      versions[stage] = std::make_unique<MemoryChannel<WeightReader>>(owner, here, windows, place + " from its owner");
      if (stage + 1 == schedule.stages) continue;
      const int64_t capacity = schedule.forward_only ? kForwardOnlyCapacity : max_in_flight(schedule, p, stage);
      const auto& above = bells[schedule.worker_of(p, stage + 1)];
      activations[stage + 1] = std::make_unique<MemoryChannel<at::Tensor>>(here, above, capacity, place + " upwards");
      gradients[stage] = std::make_unique<MemoryChannel<at::Tensor>>(above, here, capacity, "downwards to " + place);
    }
  }
}

void SegmentSetup::add_workers(const WorkerSink& sink) {
  for (int worker = 0; worker < shared.segment.schedule->workers; ++worker) {
    workers.push_back(std::make_unique<Worker>(worker, shared, sink));
  }
}

SegmentReport SegmentSetup::report(double seconds) const {
  SegmentReport report;
  const size_t stages = shared.segment.schedule->stages;
  report.microbatches = shared.intake.limit();
  report.seconds = seconds;
  report.costs.resize(stages);
  report.sizes.resize(stages);
  report.delay.resize(stages);
  report.mismatch.resize(stages);
  report.skipped.resize(stages);
  report.peak_in_flight.resize(stages);
  report.peak_weight_buffers.resize(stages);
  for (const auto& worker : workers) {
    report.workers.push_back(worker->report());
    worker->contribute(report);
  }
  return report;
}

}  // namespace gyre
