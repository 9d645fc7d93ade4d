// The contract of a layer: explicit forward and backward, with the weights as an argument. Because the caller chooses
// the weights of each call, weight stashing (pass the version that the forward read), no stashing (pass the latest),
// prediction and recomputation are the caller's decisions. The backward is split into its input half (I, dgrad) and
// weight half (W, wgrad).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gyre/model/saved.h"
#include "gyre/model/sublayers/context.h"
#include "gyre/tensors/gradient_sums.h"
#include "gyre/tensors/parameter.h"
#include "gyre/tensors/weight_view.h"

namespace gyre {

// Layers are immutable: one object serves all microbatches, workers and replicas at the same time.
class Layer {
 public:
  virtual ~Layer() = default;

  // The layer's name within the model, e.g. "blocks.3.attention".
  virtual const std::string& name() const = 0;
  // Prefix of its parameters' full names, e.g. "blocks.3". Layers may share a prefix if their parameters' names differ.
  virtual const std::string& prefix() const { return name(); }
  // All parameters that it reads. At most one in a whole model belongs to another layer (ParameterSpec::tied_to).
  virtual std::vector<ParameterSpec> parameters() const = 0;

  // Weights come in the order of parameters(), all in the compute type (fp32 or bf16).
  // input: the previous layer's output; the batch's inputs for the first layer. Returns the output; the last layer
  // returns the mean loss (0-dim fp32) if the context has targets. With LayerContext::loss_in_backward the backward may
  // write the loss into that tensor instead, computed with the weights that the backward is given.
  virtual at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                             Saved& saved) const = 0;

  // grad_output: gradient with respect to the output; for a loss, a scalar on the host. Returns the gradient with
  // respect to the input (undefined for the first layer) and leaves in `saved` only what backward_weights needs.
  // `weights` may differ from those that the forward read.
  virtual at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Saved& saved) const = 0;

  // Adds the gradients of the weights to `gradients` (fp32, same order and shapes) and empties `saved`. Entries of
  // `gradients` that hold no sum yet are overwritten.
  virtual void backward_weights(Saved& saved, const GradientSums& gradients) const = 0;

  // Both halves in one call. Layers override it where that needs less memory.
  virtual at::Tensor backward(const WeightView& weights, const at::Tensor& grad_output, Saved& saved,
                              const GradientSums& gradients) const {
    at::Tensor grad_input = backward_input(weights, grad_output, saved);
    backward_weights(saved, gradients);
    return grad_input;
  }

  // Whether it can continue from tokens that it has already read (LayerContext::decoding).
  virtual bool decodes() const { return false; }

  // Multiply-adds of one forward for a microbatch of `tokens` tokens, for balancing stages.
  virtual double cost(int64_t tokens) const = 0;
  // Lower bound of the bytes that a training forward saves for the backward of such a microbatch. Runs that cannot fit
  // are refused by it. 0: not known.
  virtual double kept_bytes(const MicrobatchShape&) const { return 0; }
  // Peak bytes of temporary tensors in the backward, besides kept_bytes. An estimate; 0: little, or not known.
  virtual double passing_bytes(const MicrobatchShape&) const { return 0; }
  // The part of passing_bytes that is there together with the gradients of its own weights, in a backward that
  // allocates them as it goes. An estimate.
  virtual double weights_passing_bytes(const MicrobatchShape& shape) const { return passing_bytes(shape); }
  // Bytes held from backward_input to backward_weights, besides kept_bytes, if the two are called separately. An
  // estimate; 0: little, or not known.
  virtual double split_bytes(const MicrobatchShape&) const { return 0; }
};

using Layers = std::vector<std::shared_ptr<const Layer>>;

}  // namespace gyre
