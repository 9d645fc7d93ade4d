#include "gyre/runtime/need.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gyre {
namespace {

std::string owners(const Schedule& schedule, int stage) {
  const std::vector<int> workers = owners_of(schedule, stage);
  return fmt::format("worker{} {}", workers.size() == 1 ? "" : "s", fmt::join(workers, ", "));
}

}  // namespace

std::string describe(const Schedule& schedule, const Action& action, const Need& need) {
  const auto [kind, pipeline, stage, m] = action;
  const auto done_by = [&](const Action& other) {
    return fmt::format("{} from worker {}", to_string(other, schedule.pipelines), schedule.worker_of(other));
  };
  switch (need.what) {
    case Need::What::Activation:
      return "the activation of " + done_by({ActionKind::Forward, pipeline, stage - 1, m});
    case Need::What::TiedWeight:
      return "the tied weight of " + done_by({ActionKind::Forward, pipeline, 0, m});
    case Need::What::Gradient:
      return "the gradient of " + done_by(backward_of(schedule, pipeline, stage + 1, m, ActionKind::BackwardInput));
    case Need::What::FirstVersion:
      return fmt::format("the segment's first weights of stage {} from {}", stage, owners(schedule, stage));
    case Need::What::OutputRoom:
      return fmt::format("room to send its output to worker {}", schedule.worker_of(pipeline, stage + 1));
    case Need::What::DrainPoint:
      return "the point where the pipeline drains";
    case Need::What::Sums:
      return fmt::format("the gradients of window {} of stage {}", m, stage);
    case Need::What::Norms:
      return fmt::format("the norms of window {} from other owners", m);
    case Need::What::Version:
      return fmt::format("update {} of stage {} by {}", m, stage, owners(schedule, stage));
    case Need::What::ReportRoom:
      return "room to report";
  }
  return "";
}

std::vector<int> owners_of(const Schedule& schedule, int stage) {
  std::vector<int> owners;
  for (const auto& shard : schedule.owner) owners.push_back(shard[stage]);
  return owners;
}

}  // namespace gyre
