#include "gyre/train/initial_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gyre/build/build.h"
#include "gyre/build/model_identity.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/wrong_file.h"
#include "gyre/model/stage.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

// The step of `path` if it is a checkpoint's: RUN/checkpoints/step-00000100.
std::optional<int64_t> named_step(const fs::path& path) {
  if (path.parent_path().filename() != "checkpoints") return std::nullopt;
  for (const int64_t step : list_checkpoints(path.parent_path())) {
    if (checkpoint_path(path.parent_path(), step) == path) return step;
  }
  return std::nullopt;
}

// The first key of [model] that differs and must not. A key with value 0 is worked out from other keys, so it is left
// to misfit(), which compares shapes. So is the context, which fixes a shape only where positions are learned. Rotary
// positions may be others, as for a longer context, but not because they were forgotten: a default is compared.
std::optional<ModelDifference> difference(const nlohmann::ordered_json& saved, const Config& config) {
  std::vector<std::string> free = {"context"};
  const nlohmann::ordered_json wanted = model_identity(config), usual = default_identity(config.model.kind);
  for (const auto& [key, value] : wanted.items()) {
    const bool is_worked_out = value == 0 || (saved.contains(key) && saved.at(key) == 0);
    const bool is_other_rotation = key.starts_with("rope_") && value != usual.at(key);
    if (is_worked_out || is_other_rotation) free.push_back(key);
  }
  return first_difference(saved, config, free);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, " x "));
}

// Compares the shapes of the checkpoint's tensors with those that `config` gives. Returns the fault, or an empty
// string.
std::string misfit(const CheckpointReader& checkpoint, const Config& config) {
  auto shapes = checkpoint.shapes();
  const Stage model(build_layers(config), 0);
  for (const ParameterSpec& parameter : model.parameters()) {
    const auto found = shapes.find(parameter.name);
    if (found == shapes.end() || found->second == parameter.shape) continue;
    return fmt::format("[model] makes {} {}, and it is {} in", parameter.name, shape_text(parameter.shape),
                       shape_text(found->second));
  }
  return "";
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
    throw InputError(fmt::format("[run] init_from: {} is neither a run with a checkpoint nor a checkpoint of a run{}",
                                 init_from.string(), hint_of_import(root)));
  }
  step = *newest;
}

std::optional<CheckpointReader> open_initial_weights(const Config& config) {
  if (config.run.init_from.empty()) return std::nullopt;
  const InitialWeights from(config.run.init_from);
  CheckpointReader checkpoint(from.run().checkpoints(), from.step);
  if (const auto differs = difference(checkpoint.record().model, config)) {
    throw InputError(fmt::format(
        "[model] {} is {}, but {}, which [run] init_from names, has {}; give the same [model]: it is in {}",
        differs->key, differs->wanted.dump(), from.root.string(), differs->saved.dump(), from.run().config().string()));
  }
  const std::string fault = misfit(checkpoint, config);
  if (fault.empty()) return checkpoint;
  throw InputError(fmt::format("{} {}, which [run] init_from names; give the same [model]: it is in {}", fault,
                               from.root.string(), from.run().config().string()));
}

}  // namespace gyre
