#include "gyre/inspect/diagnostics.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "gyre/build/batches.h"
#include "gyre/build/build.h"
#include "gyre/config/schedule_options.h"
#include "gyre/core/error.h"
#include "gyre/data/sources.h"
#include "gyre/inspect/hessian.h"
#include "gyre/inspect/late_updates.h"
#include "gyre/optim/hessian_norm.h"
#include "gyre/schedule/delay.h"

namespace gyre {
namespace {

// The run's configuration with the vocabulary of its tokens. Throws InputError if the tokens have changed.
Config resolved(const TrainedModel& model, const Dataset& dataset) {
  Config config = model.config;
  dataset.check_identity(model.data, {DataPart::Train});
  resolve_vocabulary(config, dataset);
  return config;
}

// What a part of the work tells of itself.
std::function<void(int64_t, int64_t)> progress_of(const DiagnosticsOptions& options, const char* thing) {
  if (!options.progress) return {};
  return [&options, thing](int64_t done, int64_t all) { options.progress(done, all, thing); };
}

}  // namespace

void check_draws(int draws) {
  if (draws == 0 || (draws >= kLeastDraws && draws % 2 == 1)) return;
  throw InputError(
      fmt::format("--draws is {}; give an odd number from {} on, or 0 to leave the norm out", draws, kLeastDraws));
}

Diagnostics diagnose(const TrainedModel& model, const DiagnosticsOptions& options) {
  check_draws(options.draws);
  if (!model.config.data.is_given()) {
    throw InputError("the run has no tokens of its own: its model was imported; train from it, and diagnose that run");
  }
  const Dataset dataset = Dataset::open(model.config.data);
  const Config config = resolved(model, dataset);
  const Schedule schedule = build_schedule(config);
  const CheckpointState& checkpoint = model.checkpoint;
  const auto batches = train_batches(config, dataset, checkpoint).source;

  Diagnostics result;
  result.step = checkpoint.step;
  {
    RuntimeOptions unclipped = runtime_options(config, schedule);
    unclipped.clip = 0;
    WindowPipeline pipeline(config, *batches, unclipped, std::nullopt);
    result.parameters = rotatable_weights(pipeline);
    if (options.draws > 0) {
      pipeline.pipeline().restore(checkpoint.weights, {}, 0);
      result.hessian = measure_hessian(pipeline, {options.draws, options.microbatches, checkpoint.microbatches,
                                                  static_cast<uint64_t>(config.run.seed), &checkpoint.optimizer,
                                                  progress_of(options, "Hessian product")});
    }
  }

  LateUpdatesOptions late;
  late.delays = longest_delays(schedule).delay;
  late.mean_delays = mean_delays_by_stage(schedule);
  late.optimizer = optimizer_config(config);
  late.window = schedule.window;
  late.first_microbatch = checkpoint.microbatches;
  late.first_update = checkpoint.step;
  late.updates = options.updates;
  late.progress = progress_of(options, "late update");
  WindowPipeline pipeline(config, *batches, runtime_options(config, schedule), late.optimizer);
  pipeline.pipeline().restore(checkpoint.weights, checkpoint.optimizer, checkpoint.step);
  const auto comparisons = compare_late_updates(pipeline, late);
  for (size_t stage = 0; stage < comparisons.size(); ++stage) {
    result.stages.push_back({late.delays[stage], comparisons[stage].cosine, comparisons[stage].oscillation});
  }
  return result;
}

std::string to_json(const Diagnostics& d) {
  nlohmann::ordered_json json = {{"step", d.step},          {"parameters", d.parameters},
                                 {"hessian_norm", nullptr}, {"rotated_norm", nullptr},
                                 {"own_bases", nullptr},    {"stages", nlohmann::ordered_json::array()}};
  if (d.hessian) {
    json["hessian_norm"] = d.hessian->own;
    json["rotated_norm"] = d.hessian->rotated;
    json["own_bases"] = d.hessian->own_bases;
  }
  const auto optional = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  for (const StageDiagnostics& stage : d.stages) {
    json["stages"].push_back(
        {{"delay", stage.delay}, {"cosine", optional(stage.cosine)}, {"oscillation", optional(stage.oscillation)}});
  }
  return json.dump();
}

}  // namespace gyre
