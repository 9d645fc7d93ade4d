// Any torch::nn::Module as a layer, so that users can train their own models through a pipeline. Autograd records one
// graph per microbatch in flight, which costs some speed against layers with an explicit backward.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gyre/model/layer.h"

namespace gyre {

class ModuleLayer final : public Layer {
 public:
  using Forward = std::function<at::Tensor(torch::nn::Module& module, const at::Tensor& input)>;
  // 0-dim mean loss of a microbatch.
  using Loss = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& targets)>;

  // module: must be cloneable (torch::nn::Cloneable, as Sequential and all of torch's own are). Its parameters' values
  // are the initial weights; matrices decay and take part in basis rotation. `loss` makes this the last layer of a
  // model. The module may draw random numbers only from torch's own generator, which is not part of gyre's determinism.
  // Errors: InputError for a module with buffers (running statistics belong to no version and no microbatch).
  ModuleLayer(std::string name, std::shared_ptr<torch::nn::Module> module, Forward forward, Loss loss = {});

  const std::string& name() const override { return name_; }
  std::vector<ParameterSpec> parameters() const override;
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Saved& saved) const override;
  // With the version that the forward read, the gradient of what it computed. With another, or one that is not known,
  // the forward is computed again first.
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Saved& saved) const override;
  void backward_weights(Saved& saved, const GradientSums& gradients) const override;
  double cost(int64_t tokens) const override;

 private:
  // A clone of the module for one microbatch in flight, on the device of its weights. Its parameters share the memory
  // of a weight version.
  struct Copy {
    at::Device device;
    std::shared_ptr<torch::nn::Module> module;
    std::vector<at::Tensor> parameters;
  };
  struct InFlight;
  struct Kept;

  std::unique_ptr<Copy> take_copy(at::Device device) const;
  void give_back(std::unique_ptr<Copy> copy) const;
  // Runs the module in the recording copy of `flight`.
  void record(const WeightView& weights, InFlight& flight) const;

  std::string name_;
  std::shared_ptr<torch::nn::Module> module_;
  Forward forward_;
  Loss loss_;
  // Copies that no microbatch uses, for whichever replica asks next: all that replicas share and change.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Copy>> free_;
};

}  // namespace gyre
