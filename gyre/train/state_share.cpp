#include "gyre/train/state_share.h"

#include <ATen/ATen.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gyre/optim/state_bytes.h"
#include "gyre/train/measurements.h"

namespace gyre {
namespace {

// Copies to the CPU. A tensor that nobody else has, neither the tensor nor its memory, is a copy already.
void copy_all(NamedTensors& tensors) {
  for (auto& [name, tensor] : tensors) {
    const bool live = tensor.use_count() > 1 || tensor.storage().use_count() > 1;
    tensor = tensor.to(at::kCPU, tensor.scalar_type(), false, /*copy=*/live);
  }
}

std::set<std::string> names_of(const std::vector<ParameterSpec>& parameters) {
  std::set<std::string> names;
  for (const ParameterSpec& parameter : parameters) names.insert(parameter.name);
  return names;
}

// Tensors with the shapes and type of the masters, without values.
NamedTensors shapes_of(const std::vector<ParameterSpec>& parameters) {
  const auto shape_alone = at::TensorOptions().dtype(at::kFloat).device(at::kMeta);
  NamedTensors shapes;
  for (const ParameterSpec& parameter : parameters) shapes[parameter.name] = at::empty(parameter.shape, shape_alone);
  return shapes;
}

}  // namespace

ShareSizes StateShare::sizes() const {
  constexpr int64_t kManifestAndDirectory = 1 << 16;
  const std::vector<ParameterSpec> parameters = pipeline_.parameters_here();
  // What the optimizers may hold at the time of a save and do not hold now.
  const double passing = optimizer_passing_bytes(pipeline_.plan().optimizer.value(), parameters).saved;
  return {kManifestAndDirectory + shard_bytes(shapes_of(parameters)) + shard_bytes(pipeline_.optimizer_state()) +
              static_cast<int64_t>(passing),
          optimizer_bytes(pipeline_)};
}

void StateShare::restore(const CheckpointReader& checkpoint) {
  const std::set<std::string> own = names_of(pipeline_.parameters_here());
  // The name of an optimizer's state begins with its parameter's: "name/what", or "name[1]/what" for a block of the
  // parameter.
  const auto is_own = [&](const std::string& name) { return own.count(name.substr(0, name.find_first_of("/["))) > 0; };
  checkpoint.check_presence({Part::Model, Part::Optimizer}, is_own);
  // Mapped: a run that fits beside no second copy of its state can be resumed too.
  pipeline_.restore(checkpoint.map(Part::Model, is_own), checkpoint.map(Part::Optimizer, is_own),
                    checkpoint.record().step);
}

void StateShare::begin_with(const CheckpointReader& checkpoint) {
  const std::set<std::string> own = names_of(pipeline_.parameters_here());
  const auto is_own = [&](const std::string& name) { return own.count(name) > 0; };
  checkpoint.check_presence({Part::Model}, is_own);
  pipeline_.restore(checkpoint.map(Part::Model, is_own), {}, 0);
}

ShareParts StateShare::take(bool copy) {
  weights_ = pipeline_.weights();
  optimizer_ = pipeline_.optimizer_state();
  if (copy) {
    copy_all(weights_);
    copy_all(optimizer_);
  }
  return {!weights_.empty(), !optimizer_.empty()};
}

std::vector<WrittenShard> StateShare::write(const std::filesystem::path& directory, const ShardNumbers& numbers) {
  const NamedTensors weights = std::exchange(weights_, {}), optimizer = std::exchange(optimizer_, {});
  return write_shards(directory, weights, optimizer, numbers, files_);
}

}  // namespace gyre
