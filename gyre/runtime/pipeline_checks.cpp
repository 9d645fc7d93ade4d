#include "gyre/runtime/pipeline_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

void check(bool is_sound, const char* option, const char* what) {
  if (!is_sound) throw InputError(fmt::format("RuntimeOptions: {} must be {}", option, what));
}

// A forward-only schedule has only the first of the pipelines.
bool is_placed_as(const Schedule& schedule, const Schedule& pipeline) {
  const auto &own = schedule.placement, &placement = pipeline.placement;
  if (!schedule.forward_only) return own == placement;
  return own.size() <= placement.size() && std::equal(own.begin(), own.end(), placement.begin());
}

bool has_optimizers(const Pipeline& pipeline) {
  return std::ranges::all_of(pipeline.workers(), [](const auto& worker) {
    return std::ranges::all_of(worker.second->owners,
                               [](const auto& owner) { return owner.second.optimizer != nullptr; });
  });
}

}  // namespace

void check_ranges(const Schedule& schedule, const Layers& layers, const std::vector<LayerRange>& ranges) {
  if (schedule.placement.empty()) throw InputError("the pipeline's schedule is empty; make_schedule() makes one");
  if (std::ranges::any_of(layers, [](const auto& layer) { return layer == nullptr; })) {
    throw InputError("one of the model's layers is null");
  }
  if (ranges.size() != static_cast<size_t>(schedule.stages)) {
    throw InputError(fmt::format("the pipeline has {} and {} of layers; give one range for each stage",
                                 counted(schedule.stages, "stage"), counted(std::ssize(ranges), "range")));
  }
  int begin = 0;
  for (size_t stage = 0; stage < ranges.size(); ++stage) {
    const auto [first, end] = ranges[stage];
    const bool is_last = stage + 1 == ranges.size();
    const auto count = static_cast<int>(layers.size());
    if (first != begin || end <= first || end > count || (is_last && end != count)) {
      throw InputError(
          fmt::format("stage {} has layers {} to {} of {}; the stages' ranges must follow each other and "
                      "cover all layers",
                      stage, first, end, count));
    }
    begin = end;
  }
}

void check_options(const RuntimeOptions& options, const Schedule& schedule, bool trains) {
  check(!trains || options.learning_rate != nullptr, "learning_rate", "given, since there is an optimizer");
  check(options.compute == at::kFloat || options.compute == at::kBFloat16, "compute", "kFloat or kBFloat16");
  check(options.devices.empty() || options.devices.size() == static_cast<size_t>(schedule.workers), "devices",
        "empty, or one for each worker");
  check(options.discrepancy >= 0 && options.discrepancy <= 1, "discrepancy", "between 0 and 1");
  check(options.clip >= 0, "clip", "0 or more");
  check(options.ema_decay >= 0 && options.ema_decay < 1, "ema_decay", "at least 0 and less than 1");
  check(options.max_skipped >= 0, "max_skipped", "0 or more");
  check(options.reduction_part >= 1, "reduction_part", "1 or more");
  check(options.threads_per_worker >= 1, "threads_per_worker", "1 or more");
  check(options.stall_seconds > 0, "stall_seconds", "more than 0");
}

namespace {

// name: in the model.
void check_parameter(const std::string& name, const ParameterSpec& spec) {
  if (name.find_first_of("/[") != std::string::npos) {
    throw InputError(
        fmt::format("the name of the parameter '{}' has a '/' or '[', behind which the optimizer's state has names of "
                    "its own; give its layer another name",
                    name));
  }
  const auto& rows = spec.row_blocks;
  const int64_t sum = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  if (rows.empty() || (!spec.shape.empty() && sum == spec.shape[0])) return;
  throw InputError(fmt::format("the parameter '{}' has shape ({}) and row_blocks of {}; they must be all its rows",
                               name, fmt::join(spec.shape, ", "), fmt::join(rows, " + ")));
}

}  // namespace

void check_parameters(const Layers& layers) {
  std::set<std::string> names;
  bool is_tied = false;
  for (const auto& layer : layers) {
    for (const ParameterSpec& spec : layer->parameters()) {
      if (!spec.tied_to.empty()) {
        if (layer == layers.back() && !std::exchange(is_tied, true)) continue;
        throw InputError(fmt::format("layer '{}' is tied to '{}'; only a model's last layer can be tied, to one weight",
                                     layer->name(), spec.tied_to));
      }
      const std::string name = fmt::format("{}.{}", layer->prefix(), spec.name);
      check_parameter(name, spec);
      if (names.insert(name).second) continue;
      throw InputError(
          fmt::format("two parameters of the model have the name '{}'; give their layers different names", name));
    }
  }
}

void check_segment(const Pipeline& pipeline, const Segment& segment) {
  const Schedule& schedule = *segment.schedule;
  if (!is_placed_as(schedule, pipeline.schedule())) {
    throw InputError(fmt::format("schedule {}: its placement is not the pipeline's", schedule.name));
  }
  const int64_t unit = schedule.forward_only ? 1 : schedule.window;
  if (segment.microbatches < 0 || segment.microbatches % unit != 0) {
    throw InputError(fmt::format("a segment of {} cannot be run; give whole windows of schedule {}, of {}",
                                 counted(segment.microbatches, "microbatch"), schedule.name,
                                 counted(unit, "microbatch")));
  }
  if (!schedule.forward_only && !has_optimizers(pipeline)) {
    throw InputError("a pipeline without an optimizer can only be evaluated");
  }
  if (segment.weights == ModelWeights::Ema && pipeline.options().ema_decay == 0) {
    throw InputError("there are no averages of weights to evaluate: RuntimeOptions::ema_decay is 0");
  }
}

}  // namespace gyre
