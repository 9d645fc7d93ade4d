#include "gyre/train/chosen_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/report/metrics_reader.h"
#include "gyre/train/resume.h"

namespace gyre {

int64_t choose_checkpoint(const RunDirectory& run, std::optional<int64_t> asked) {
  const auto steps = list_checkpoints(run.checkpoints());
  if (steps.empty()) {
    refuse_lost_checkpoints(run, read_record(run.metrics(), 0));
    throw InputError(fmt::format("{}: has no checkpoint yet; train it until one is saved ([run] checkpoint_every)",
                                 run.root().string()));
  }
  if (!asked) return steps.back();
  if (std::ranges::find(steps, *asked) != steps.end()) return *asked;
  throw InputError(fmt::format("{}: has no checkpoint of step {}; there are: {}", run.root().string(), *asked,
                               fmt::join(steps, ", ")));
}

}  // namespace gyre
