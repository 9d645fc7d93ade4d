// The contract of a layer: explicit forward and backward over weights that are an argument. Because the caller chooses
// the weights of each call, stashing (pass the version the forward read), no stashing (pass the latest), prediction and
// recomputation are the caller's decisions, and the backward splits into its input half (I) and weight half (W).
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

// Layers are immutable: one object serves every microbatch, worker and replica at once.
class Layer {
 public:
  virtual ~Layer() = default;

  // Within the model, e.g. "blocks.3.attention".
  virtual const std::string& name() const = 0;
  // Of its parameters' full names, e.g. "blocks.3". Layers may share one, if no two parameters are called the same.
  virtual const std::string& prefix() const { return name(); }
  // All that it reads; at most one of a whole model is another layer's (ParameterSpec::tied_to).
  virtual std::vector<ParameterSpec> parameters() const = 0;

  // Weights come in the order of parameters(), all in the compute type (fp32 or bf16).
  // input: what the previous layer returned; the first layer gets the batch's inputs. Returns the output; the last
  // layer returns the mean loss (0-dim fp32) when the context has targets. With LayerContext::loss_in_backward its
  // value may come with the backward, and is then of the weights that the backward is given.
  virtual at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                             Saved& saved) const = 0;

  // grad_output: gradient by this layer's output; of a loss, on the host. Returns the gradient by its input (undefined
  // for the first layer), and leaves in `saved` just what backward_weights needs. `weights` need not be those the
  // forward read.
  virtual at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Saved& saved) const = 0;

  // Adds the gradients by the weights to `gradients` (fp32, same order and shapes), whether those hold a sum yet or
  // not, and empties `saved`.
  virtual void backward_weights(Saved& saved, const GradientSums& gradients) const = 0;

  // Both halves, for a layer that needs less memory for them together.
  virtual at::Tensor backward(const WeightView& weights, const at::Tensor& grad_output, Saved& saved,
                              const GradientSums& gradients) const {
    at::Tensor grad_input = backward_input(weights, grad_output, saved);
    backward_weights(saved, gradients);
    return grad_input;
  }

  // Whether it can go on behind tokens that it has read before (LayerContext::decoding).
  virtual bool decodes() const { return false; }

  // Multiply-adds of one forward for a microbatch of `tokens` tokens, for balancing stages.
  virtual double cost(int64_t tokens) const = 0;
  // Bytes that a forward in training keeps of such a microbatch, by which runs that cannot fit are refused: never more
  // than it does keep. 0: not known.
  virtual double kept_bytes(const MicrobatchShape&) const { return 0; }
  // Bytes that its backward holds at most beside those: what comes and goes. About; 0: little, or not known.
  virtual double passing_bytes(const MicrobatchShape&) const { return 0; }
  // Bytes that it keeps besides kept_bytes from backward_input to backward_weights, if these are apart. About; 0:
  // little, or not known.
  virtual double split_bytes(const MicrobatchShape&) const { return 0; }
};

using Layers = std::vector<std::shared_ptr<const Layer>>;

}  // namespace gyre
