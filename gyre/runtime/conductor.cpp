#include "gyre/runtime/conductor.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/schedule/delay.h"

namespace gyre {
namespace {

// [worker]: whether it takes no microbatches in, as those do that do not have the first stage.
std::vector<bool> takes_nothing_in(const Schedule& schedule) {
  std::vector<bool> workers(static_cast<size_t>(schedule.workers), true);
  for (const auto& placement : schedule.placement) workers[static_cast<size_t>(placement[0])] = false;
  return workers;
}

// The mismatches under a policy whose backwards read what their forwards read: all are 0.
std::map<int64_t, int64_t> without_mismatch(const std::map<int64_t, int64_t>& mismatches) {
  std::map<int64_t, int64_t> none;
  for (const auto& [mismatch, microbatches] : mismatches) none[0] += microbatches;
  return none;
}

void compare(int stage, const char* what, const std::map<int64_t, int64_t>& seen,
             const std::map<int64_t, int64_t>& expected) {
  if (seen == expected) return;
  throw RunError(
      fmt::format("stage {}: the {} seen, with their microbatches {}, differ from the schedule's analysis, {}; this is "
                  "a fault of gyre, please report it with the run's config.toml",
                  stage, what, seen, expected));
}

}  // namespace

Conductor::Conductor(const PipelinePlan& plan, ConductorState& state, const Segment& segment, Transport& transport,
                     SegmentObserver& observer)
    : plan_(plan),
      state_(state),
      segment_(segment),
      observer_(observer),
      links_(*segment.schedule, transport),
      seen_(links_.reports.size()),
      updates_(static_cast<size_t>(segment.schedule->stages)),
      skipped_(static_cast<size_t>(segment.schedule->stages)),
      holds_(takes_nothing_in(*segment.schedule)),
      limit_(segment.microbatches) {
  state_.skipped_in_a_row.resize(skipped_.size());
}

void Conductor::attend() {
  if (!interrupted_ && segment_.drains_at_stop && segment_.stop.stop_requested()) {
    interrupted_ = true;
    // Hold first, announce after: whatever reacts to the announcement comes too late to be taken in.
    if (drain_ == Drain::None && !finished()) ask_to_hold();
    observer_.on_interrupt();
  }
  hear_all();
  end_if_diverged();
  // Asked during a drain too: it may find a request to stop.
  const bool drains = segment_.wants_drain && segment_.wants_drain();
  if (drains && drain_ == Drain::None && !finished()) ask_to_hold();
  if (drain_ == Drain::Holding && std::all_of(holds_.begin(), holds_.end(), [](bool held) { return held; }))
    set_limit();
  // The drain may have another cause, and be under way when the interrupt comes.
  if (interrupted_ && drain_ == Drain::Limited && !std::exchange(told_, true)) observer_.on_drain(limit_);
}

void Conductor::hear_all() {
  for (size_t worker = 0; worker < links_.reports.size(); ++worker) {
    while (const auto message = arrived_on(host(), links_.reports[worker]->try_receive())) {
      hear(worker, to_report(*message));
    }
  }
}

void Conductor::hear(size_t worker, Report report) {
  if (const auto* loss = std::get_if<LossReport>(&report)) {
    hear(*loss);
  } else if (auto* update = std::get_if<UpdateReport>(&report)) {
    if (const auto whole = joined(std::move(*update))) hear(*whole);
  } else if (const auto* held = std::get_if<HeldReport>(&report)) {
    hear(worker, *held);
  } else {
    hear(worker, std::get<FinalReport>(std::move(report)));
  }
}

void Conductor::hear(const LossReport& report) {
  const int64_t microbatch = segment_.first_microbatch + report.microbatch;
  const auto loss = report.loss.item<double>();
  const int64_t window = report.microbatch / segment_.schedule->window;
  count_loss(window);
  if (std::isfinite(loss) || plan_.options.max_skipped > 0) {
    if (window < first_bad_window()) observer_.on_loss(microbatch, loss);
    return;
  }
  Fault fault{window, microbatch, {}};
  if (bad_loss_ && !fault.is_before(*bad_loss_)) return;
  fault.what = fmt::format("the {}loss of microbatch {} is {}; lower [optimizer] lr, or lengthen its warmup",
                           segment_.schedule->forward_only ? "validation " : "", microbatch,
                           std::isnan(loss) ? std::fabs(loss) : loss);  // the sign of a NaN means nothing
  bad_loss_ = std::move(fault);
}

void Conductor::count_loss(int64_t window) {
  ++losses_[window];
  while (!losses_.empty() && losses_.begin()->first == whole_windows_ &&
         losses_.begin()->second == segment_.schedule->window) {
    losses_.erase(losses_.begin());
    ++whole_windows_;
  }
}

// The report of a stage's whole update, once the reports of all its shards have come.
std::optional<UpdateReport> Conductor::joined(UpdateReport report) {
  const auto count = static_cast<size_t>(segment_.schedule->shards());
  if (count == 1) return report;
  const std::pair key(report.stage, report.window);
  auto& shards = shards_[key];
  shards.resize(count);
  const auto number = static_cast<size_t>(report.shard);
  shards[number] = std::move(report);
  std::vector<at::Tensor> norms;
  for (const auto& shard : shards) {
    if (!shard) return std::nullopt;
    norms.push_back(shard->squared_norms);
  }
  UpdateReport whole = *shards.front();  // all were clipped by the same norm
  whole.squared_norms = at::cat(norms);
  shards_.erase(key);
  return whole;
}

void Conductor::hear(const UpdateReport& report) {
  const auto stage = static_cast<size_t>(report.stage);
  ++updates_[stage];
  int64_t& in_a_row = state_.skipped_in_a_row[stage];
  if (std::isfinite(report.norm)) {
    in_a_row = 0;
  } else {
    skipped_[stage].push_back(report.window);
    ++in_a_row;
  }
  if (in_a_row > plan_.options.max_skipped) {
    const Fault fault{report.window, report.stage, describe_skip(report, in_a_row)};
    if (!bad_gradient_ || fault.is_before(*bad_gradient_)) bad_gradient_ = fault;
  } else if (report.window < first_bad_window()) {
    const at::Tensor norms = report.squared_norms.contiguous();
    const auto* values = norms.data_ptr<double>();
    observer_.on_update(report.stage, segment_.first_update + report.window + 1, {values, values + norms.numel()});
  }
}

// The first window for which the run cannot go on; past all, if there is none yet.
int64_t Conductor::first_bad_window() const {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  return std::min(bad_loss_ ? bad_loss_->window : kNone, bad_gradient_ ? bad_gradient_->window : kNone);
}

void Conductor::end_if_diverged() {
  if (!bad_loss_ && !bad_gradient_) return;
  const int64_t bad = first_bad_window();
  const bool has_updates = !segment_.schedule->forward_only;
  const bool is_known = whole_windows_ > bad && (!has_updates || std::ranges::min(updates_) > bad);
  if (!is_known && !finished()) return;
  int64_t skipped = 0;
  for (const auto& windows : skipped_) {
    skipped += std::ranges::count_if(windows, [bad](int64_t window) { return window <= bad; });
  }
  observer_.on_divergence(skipped);
  throw Divergence(bad_loss_ && bad_loss_->window == bad ? bad_loss_->what : bad_gradient_->what);
}

std::string Conductor::describe_skip(const UpdateReport& report, int64_t in_a_row) const {
  const at::Tensor norms = report.squared_norms.contiguous();
  const auto* begin = norms.data_ptr<double>();
  const auto* end = begin + norms.numel();
  const auto* bad = std::find_if(begin, end, [](double squared) { return !std::isfinite(squared); });
  const std::string what =
      bad == end ? "the norm of the model's gradient"
                 : fmt::format("the gradient of '{}'", plan_.stages[report.stage].parameters()[bad - begin].name);
  return fmt::format("update {} of stage {}: {} is not finite{}; lower [optimizer] lr, or lengthen its warmup",
                     segment_.first_update + report.window + 1, report.stage, what,
                     in_a_row > 1 ? fmt::format(", {} times in a row", in_a_row) : "");
}

void Conductor::hear(size_t worker, const HeldReport& report) {
  holds_[worker] = true;
  admitted_ = std::max(admitted_, report.admitted);
}

void Conductor::hear(size_t worker, FinalReport report) {
  // A worker that has ended has taken in all that there was.
  if (!holds_[worker]) admitted_ = limit_;
  holds_[worker] = true;
  seen_[worker] = std::move(report);
  ++ended_;
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
  for (const auto& windows : skipped_) report.skipped.push_back(std::ssize(windows));
  for (const FinalReport& seen : seen_) {
    report.workers.push_back(seen.worker);
    for (size_t stage = 0; stage < seen.costs.size(); ++stage) {
      for (const auto& [kind, cost] : seen.costs[stage]) {
        ActionCost& all = report.costs[stage][kind];
        // Of several replicas' first actions, all but one are counted among the others.
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
    }
  }
  compare_with_analysis(report);
  return report;
}

// What was seen must be what the schedule's analysis predicts, or the segment is not the one that was planned.
void Conductor::compare_with_analysis(const SegmentReport& report) const {
  const DelayAnalysis expected = analyse_delays(*segment_.schedule, report.microbatches);
  for (int stage = 0; stage < segment_.schedule->stages; ++stage) {
    const auto& mismatch = expected.mismatch[stage];
    compare(stage, "delays", report.delay[stage], expected.delay[stage]);
    compare(stage, "mismatches", report.mismatch[stage],
            reads_latest(plan_.options.weights) ? mismatch : without_mismatch(mismatch));
  }
}

}  // namespace gyre
