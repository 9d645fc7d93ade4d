#include "gyre/model/stage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "gyre/core/random.h"
#include "gyre/tensors/shape.h"

namespace gyre {

Stage::Stage(Layers layers, int first_layer) : layers_(std::move(layers)), first_layer_(first_layer) {
  size_t weight_count = 0;
  for (const auto& layer : layers_) {
    offsets_.push_back(weight_count);
    for (ParameterSpec& parameter : layer->parameters()) {
      const size_t place = weight_count++;
      if (parameter.tied_to.empty()) {
        parameter.name = layer->prefix() + "." + parameter.name;
        parameters_.push_back(std::move(parameter));
      } else {
        assert(!tied_);
        parameter.name = std::exchange(parameter.tied_to, {});
        tied_ = {std::move(parameter), place};
      }
    }
  }
  offsets_.push_back(weight_count);
}

std::vector<at::Tensor> Stage::with_tied(std::span<const at::Tensor> own, const at::Tensor& tied) const {
  std::vector<at::Tensor> all(own.begin(), own.end());
  if (tied_) all.insert(all.begin() + static_cast<std::ptrdiff_t>(tied_->place), tied);
  return all;
}

std::vector<at::Tensor> Stage::all_of(std::span<const at::Tensor> own) const {
  if (!tied_) return {own.begin(), own.end()};
  const auto is_tied = [&](const ParameterSpec& parameter) { return parameter.name == tied_->spec.name; };
  const auto found = std::find_if(parameters_.begin(), parameters_.end(), is_tied);
  assert(found != parameters_.end());
  return with_tied(own, own[static_cast<size_t>(found - parameters_.begin())]);
}

int64_t Stage::parameter_count() const {
  int64_t total = 0;
  for (const ParameterSpec& parameter : parameters_) total += numel(parameter.shape);
  return total;
}

bool Stage::decodes() const {
  return std::all_of(layers_.begin(), layers_.end(), [](const auto& layer) { return layer->decodes(); });
}

at::Tensor Stage::forward(const WeightView& weights, const at::Tensor& input, LayerContext context,
                          StageSaved& saved) const {
  saved.resize(layers_.size());
  at::Tensor x = input;
  for (size_t i = 0; i < layers_.size(); ++i) x = forward_layer(i, weights, x, context, saved[i]);
  return x;
}

at::Tensor Stage::backward_input(const WeightView& weights, at::Tensor grad_output, StageSaved& saved) const {
  for (size_t i = layers_.size(); i-- > 0;) grad_output = backward_input_layer(i, weights, grad_output, saved[i]);
  return grad_output;
}

void Stage::backward_weights(StageSaved& saved, const GradientSums& gradients) const {
  for (size_t i = layers_.size(); i-- > 0;) layers_[i]->backward_weights(saved[i], gradients_of(i, gradients));
}

at::Tensor Stage::backward(const WeightView& weights, at::Tensor grad_output, StageSaved& saved,
                           const GradientSums& gradients) const {
  for (size_t i = layers_.size(); i-- > 0;) grad_output = backward_layer(i, weights, grad_output, saved[i], gradients);
  return grad_output;
}

at::Tensor Stage::forward_layer(size_t layer, const WeightView& weights, const at::Tensor& input, LayerContext context,
                                Saved& saved) const {
  context.layer = first_layer_ + static_cast<int>(layer);
  return layers_[layer]->forward(weights_of(layer, weights), input, context, saved);
}

at::Tensor Stage::backward_input_layer(size_t layer, const WeightView& weights, const at::Tensor& grad_output,
                                       Saved& saved) const {
  return layers_[layer]->backward_input(weights_of(layer, weights), grad_output, saved);
}

at::Tensor Stage::backward_layer(size_t layer, const WeightView& weights, const at::Tensor& grad_output, Saved& saved,
                                 const GradientSums& gradients) const {
  return layers_[layer]->backward(weights_of(layer, weights), grad_output, saved, gradients_of(layer, gradients));
}

WeightView Stage::weights_of(size_t layer, const WeightView& weights) const {
  return weights.part(offsets_[layer], offsets_[layer + 1] - offsets_[layer]);
}

GradientSums Stage::gradients_of(size_t layer, const GradientSums& gradients) const {
  return gradients.part(offsets_[layer], offsets_[layer + 1] - offsets_[layer]);
}

int64_t saved_bytes(std::span<const Saved> saved) {
  std::map<const void*, int64_t> storages;
  for (const Saved& layer : saved) {
    layer.for_each_tensor([&](const at::Tensor& tensor) {
      storages[tensor.storage().unsafeGetStorageImpl()] = static_cast<int64_t>(tensor.storage().nbytes());
    });
  }
  int64_t bytes = 0;
  for (const auto& [storage, size] : storages) bytes += size;
  return bytes;
}

at::Tensor initial_value(const ParameterSpec& parameter, uint64_t seed) {
  const auto options = at::TensorOptions().dtype(at::kFloat);
  switch (parameter.initialization.kind) {
    case Initialization::Kind::Zeros:
      return at::zeros(parameter.shape, options);
    case Initialization::Kind::Ones:
      return at::ones(parameter.shape, options);
    case Initialization::Kind::Value:
      return parameter.initialization.value.to(at::kFloat).clone();
    case Initialization::Kind::Normal:
      break;
  }
  at::Tensor value = at::empty(parameter.shape, options);
  RandomStream stream(seed, StreamPurpose::Initialization, stable_hash(parameter.name));
  stream.fill_normal({value.data_ptr<float>(), static_cast<size_t>(value.numel())}, parameter.initialization.deviation);
  return value;
}

}  // namespace gyre
