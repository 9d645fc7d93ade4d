#include "gyre/runtime/conductor.h"

#include <algorithm>
#include <utility>

namespace gyre {
namespace {

// Workers that take microbatches in: those of the first stage.
std::vector<bool> takes_in(const Schedule& schedule) {
  std::vector<bool> workers(static_cast<size_t>(schedule.workers));
  for (const auto& placement : schedule.placement) workers[static_cast<size_t>(placement[0])] = true;
  return workers;
}

}  // namespace

Conductor::Conductor(const Segment& segment, Transport& transport, SegmentObserver& observer)
    : segment_(segment),
      observer_(observer),
      links_(*segment.schedule, transport),
      seen_(links_.reports.size()),
      holds_(takes_in(*segment.schedule)),
      limit_(segment.microbatches) {
  holds_.flip();
}

void Conductor::attend() {
  if (!interrupted_ && segment_.interrupt.stop_requested()) {
    interrupted_ = true;
    // Asked before anybody is told, so that nothing that answers the telling is taken in.
    if (drain_ == Drain::None && !finished()) ask_to_hold();
    observer_.on_interrupt();
  }
  for (size_t worker = 0; worker < links_.reports.size(); ++worker) {
    while (const auto message = links_.reports[worker]->try_receive()) {
      hear(worker, to_report(*message));
    }
  }
  if (drain_ == Drain::None && !finished() && segment_.stop && segment_.stop()) ask_to_hold();
  if (drain_ == Drain::Holding && std::all_of(holds_.begin(), holds_.end(), [](bool held) { return held; }))
    set_limit();
  // The drain may have another cause, and be under way when the interrupt comes.
  if (interrupted_ && drain_ == Drain::Limited && !std::exchange(told_, true)) observer_.on_drain(limit_);
}

void Conductor::hear(size_t worker, Report report) {
  if (const auto* loss = std::get_if<LossReport>(&report)) {
    observer_.on_loss(segment_.first_microbatch + loss->microbatch, loss->loss);
  } else if (const auto* update = std::get_if<UpdateReport>(&report)) {
    observer_.on_update(update->stage, segment_.first_update + update->window + 1, update->squared_norms);
  } else if (const auto* held = std::get_if<HeldReport>(&report)) {
    holds_[worker] = true;
    admitted_ = std::max(admitted_, held->admitted);
  } else if (auto* end = std::get_if<FinalReport>(&report)) {
    // Whoever has ended has taken in all that there was.
    if (!holds_[worker]) admitted_ = limit_;
    holds_[worker] = true;
    seen_[worker] = std::move(*end);
    ++ended_;
  }
}

void Conductor::ask_to_hold() {
  drain_ = Drain::Holding;
  for (size_t worker = 0; worker < holds_.size(); ++worker) {
    if (!holds_[worker]) links_.control[worker]->send(hold_message());
  }
}

void Conductor::set_limit() {
  drain_ = Drain::Limited;
  const int64_t window = segment_.schedule->window;
  limit_ = std::min(limit_, (admitted_ + window - 1) / window * window);
  for (const auto& worker : links_.control) worker->send(limit_message(limit_));
}

SegmentReport Conductor::report(double seconds) const {
  SegmentReport report;
  const auto stages = static_cast<size_t>(segment_.schedule->stages);
  report.microbatches = limit_;
  report.seconds = seconds;
  report.costs.resize(stages);
  report.sizes.resize(stages);
  report.delay.resize(stages);
  report.mismatch.resize(stages);
  report.skipped.resize(stages);
  report.peak_in_flight.resize(stages);
  report.peak_weight_buffers.resize(stages);
  for (const FinalReport& seen : seen_) {
    report.workers.push_back(seen.worker);
    for (size_t stage = 0; stage < seen.costs.size(); ++stage) {
      for (const auto& [kind, cost] : seen.costs[stage]) {
        ActionCost& all = report.costs[stage][kind];
        // Of several replicas' first actions all but one count as the others do.
        (all.count == 0 ? all.first_seconds : all.seconds) += cost.first_seconds;
        all.count += cost.count;
        all.seconds += cost.seconds;
      }
    }
    for (const FinalReport::Replica& replica : seen.replicas) {
      const auto stage = static_cast<size_t>(replica.stage);
      StageSizes& sizes = report.sizes[stage];
      sizes.activation_bytes = std::max(sizes.activation_bytes, replica.sizes.activation_bytes);
      sizes.output_bytes = std::max(sizes.output_bytes, replica.sizes.output_bytes);
      for (const auto& [delay, count] : replica.delay) report.delay[stage][delay] += count;
      for (const auto& [mismatch, count] : replica.mismatch) report.mismatch[stage][mismatch] += count;
      report.peak_in_flight[stage] = std::max(report.peak_in_flight[stage], replica.peak_in_flight);
    }
    for (const FinalReport::Owner& owner : seen.owners) {
      report.skipped[static_cast<size_t>(owner.stage)] = owner.skipped;
      report.peak_weight_buffers[static_cast<size_t>(owner.stage)] = owner.peak_weight_buffers;
    }
  }
  return report;
}

}  // namespace gyre
