// Adapts any torch::nn::Module as a layer, so that users can train their own models through a pipeline. Autograd
// records one graph per microbatch in flight, which is somewhat slower than layers with an explicit backward.
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
  // Parameters have the compute type. Inputs have the type of the layer before, and those of the first layer the
  // batch's: with bf16 compute and fp32 inputs, its forward must cast them, as in
  // input.to(module.parameters()[0].scalar_type()).
  using Forward = std::function<at::Tensor(torch::nn::Module& module, const at::Tensor& input)>;
  // 0-dim mean loss of a microbatch.
  using Loss = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& targets)>;

  // module: must be cloneable (torch::nn::Cloneable, as Sequential and all of torch's own are). Its parameters' values
  // are the initial weights; matrices have weight decay and basis rotation. With `loss` this is the last layer of a
  // model. Random numbers that the module draws come from torch's generator, which gyre's determinism does not cover.
  // Errors: InputError for a module with buffers (running statistics belong to no version and no microbatch), with
  // frozen parameters, or with one parameter in two places, and for no module or forward. In training, a layer
  // with a loss throws InputError if the batch has no targets, or its loss has dimensions.
  ModuleLayer(std::string name, std::shared_ptr<torch::nn::Module> module, Forward forward, Loss loss = {});

  const std::string& name() const override { return name_; }
  std::vector<ParameterSpec> parameters() const override;
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Saved& saved) const override;
  // Uses the graph that the forward recorded if `weights` have the version that the forward read. With another version,
  // or an unknown one, runs the forward again first.
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Saved& saved) const override;
  void backward_weights(Saved& saved, const GradientSums& gradients) const override;
  double cost(int64_t tokens) const override;

 private:
  // A clone of the module for one microbatch in flight, on the microbatch's device. Its parameters alias the tensors of
  // a weight version.
  struct Copy {
    at::Device device;
    std::shared_ptr<torch::nn::Module> module;
    std::vector<at::Tensor> parameters;
  };
  struct InFlight;
  struct Kept;

  std::unique_ptr<Copy> take_copy(at::Device device) const;
  void give_back(std::unique_ptr<Copy> copy) const;
  // Runs the forward with `weights` in the flight's copy of the module; fills flight.output.
  void record(const WeightView& weights, InFlight& flight) const;

  std::string name_;
  std::shared_ptr<torch::nn::Module> module_;
  Forward forward_;
  Loss loss_;
  // Copies that no microbatch uses, for whichever replica asks next. The only mutable state that replicas share.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Copy>> free_;
};

}  // namespace gyre
