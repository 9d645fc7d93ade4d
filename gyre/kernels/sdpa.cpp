#include "gyre/kernels/sdpa.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <stdexcept>
#include <vector>

namespace gyre::sdpa {
namespace {

// libtorch's functions are found by their argument's namespace, so that those it lacks are no errors.
template <typename Tensor>
constexpr bool kIsThere = requires(const Tensor& x) {
  scaled_dot_product_attention(x, x, x, {}, 0.0, true);
};

template <typename Tensor>
Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, bool causal) {
  constexpr double kNoDropout = 0;
  const int64_t group = query.size(1) / key.size(1);
  if constexpr (!kIsThere<Tensor>) {
    throw std::logic_error("this libtorch has no scaled_dot_product_attention");
  } else if constexpr (requires {
                         scaled_dot_product_attention(query, key, value, {}, kNoDropout, causal, {}, true);
                       }) {
    return scaled_dot_product_attention(query, key, value, {}, kNoDropout, causal, {}, group > 1);
  } else {  // before 2.5 it wants a key and a value for each query
    if (group == 1) return scaled_dot_product_attention(query, key, value, {}, kNoDropout, causal);
    return scaled_dot_product_attention(query, key.repeat_interleave(group, 1), value.repeat_interleave(group, 1), {},
                                        kNoDropout, causal);
  }
}

}  // namespace

bool is_there() {
  return kIsThere<at::Tensor>;
}

// The backward of the fused kernels has arguments that change from version to version, so autograd calls it.
Attended attention(const HeadTensors& inputs, bool causal) {
  const at::AutoGradMode recording(true);
  for (const at::Tensor& input : {inputs.query, inputs.key, inputs.value}) input.requires_grad_();
  Attended attended;
  attended.recorded = attend(inputs.query, inputs.key, inputs.value, causal);
  const at::Tensor by_position = attended.recorded.detach().transpose(1, 2);
  attended.output = by_position.reshape({by_position.size(0), by_position.size(1), -1});
  return attended;
}

at::Tensor attention_backward(const at::Tensor& grad, const HeadTensors& inputs, const Attended& attended) {
  const AttentionHeads heads{inputs.query.size(1), inputs.key.size(1)};
  const auto gradients = torch::autograd::grad({attended.recorded}, {inputs.query, inputs.key, inputs.value},
                                               {heads_of(grad, heads.query)});
  std::vector<at::Tensor> by_position;  // (batch, context, heads, size)
  for (const at::Tensor& gradient : gradients) by_position.push_back(gradient.transpose(1, 2));
  return at::cat(by_position, 2).view({grad.size(0), grad.size(1), -1});
}

}  // namespace gyre::sdpa
