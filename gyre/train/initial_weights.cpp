#include "gyre/train/initial_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/build/build.h"
#include "gyre/build/model_identity.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/model/stage.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

// The step of a path that ends in checkpoints/step-00000100.
std::optional<int64_t> named_step(const fs::path& path) {
  if (path.parent_path().filename() != "checkpoints") return std::nullopt;
  for (const int64_t step : list_checkpoints(path.parent_path())) {
    if (checkpoint_path(path.parent_path(), step) == path) return step;
  }
  return std::nullopt;
}

// Whether a model of that context has the same parameters: one without learned positions.
bool fits_context(const Config& config, const nlohmann::ordered_json& saved) {
  const int64_t context = saved.value("context", config.model.context);
  if (context == config.model.context) return true;
  Config other = config;
  other.model.context = context;
  const Stage ours(build_layers(config), 0), theirs(build_layers(other), 0);
  return std::equal(ours.parameters().begin(), ours.parameters().end(), theirs.parameters().begin(),
                    theirs.parameters().end(),
                    [](const ParameterSpec& a, const ParameterSpec& b) { return a.shape == b.shape; });
}

}  // namespace

InitialWeights::InitialWeights(const fs::path& init_from)
    : root(init_from.has_filename() ? init_from : init_from.parent_path()) {
  if (const auto named = named_step(root)) {
    root = root.parent_path().parent_path();
    step = *named;
    return;
  }
  const auto newest = latest_checkpoint(run().checkpoints());
  if (!newest) {
    throw InputError(fmt::format("[run] init_from: {} is no run with a checkpoint, and no checkpoint of one",
                                 init_from.string()));
  }
  step = *newest;
}

std::optional<CheckpointReader> open_initial_weights(const Config& config) {
  if (config.run.init_from.empty()) return std::nullopt;
  const InitialWeights from(config.run.init_from);
  CheckpointReader checkpoint(from.run().checkpoints(), from.step);
  const nlohmann::ordered_json& saved = checkpoint.record().model;
  auto differs = first_difference(saved, config, {"context"});
  if (!differs && !fits_context(config, saved)) differs = first_difference(saved, config);
  if (!differs) return checkpoint;
  throw InputError(
      fmt::format("[model] {} is {}, but {}, which [run] init_from names, has {}; give the same [model]: it is in "
                  "{}",
                  differs->key, differs->wanted.dump(), from.root.string(), differs->saved.dump(),
                  from.run().config().string()));
}

}  // namespace gyre
