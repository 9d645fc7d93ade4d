#include "gyre/model/sublayers/attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "gyre/kernels/attention_of_one.h"
#include "gyre/model/sublayers/decoding.h"

namespace gyre {
namespace {

LinearOptions qkv_options(const AttentionOptions& options) {
  const int64_t queries = options.heads.query * options.head_size, keys = options.heads.key_value * options.head_size;
  LinearOptions linear;
  linear.out = queries + 2 * keys;
  linear.in = options.width;
  linear.bias = options.qkv_bias;
  linear.rotate = true;
  linear.row_blocks = {queries, keys, keys};
  return linear;
}

LinearOptions projection_options(const AttentionOptions& options) {
  LinearOptions linear;
  linear.out = options.width;
  linear.in = options.heads.query * options.head_size;
  linear.bias = options.bias;
  linear.deviation = options.projection_deviation;
  linear.rotate = true;
  return linear;
}

// The part of qkv (batch, context, ...) that rotary positions change: (batch, heads, context, size), a view.
at::Tensor queries_and_keys(const at::Tensor& qkv, const AttentionHeads& heads) {
  return heads_of(qkv, heads.query + 2 * heads.key_value).narrow(1, 0, heads.query + heads.key_value);
}

}  // namespace

Attention::Attention(ParameterList& parameters, const std::string& name, const AttentionOptions& options)
    : options_(options),
      qkv_(parameters, name + ".qkv", qkv_options(options_)),
      projection_(parameters, name + ".projection", projection_options(options_)) {
  if (!options_.norms) return;
  const NormOptions norm{NormKind::RmsNorm, options_.head_size, false, options_.epsilon};
  query_norm_.emplace(parameters, name + ".q_norm", norm);
  key_norm_.emplace(parameters, name + ".k_norm", norm);
}

at::Tensor Attention::forward(const WeightView& weights, const at::Tensor& x, const LayerContext& context,
                              Kept& kept) const {
  const at::Tensor qkv = qkv_.forward(weights, x, context, kept.qkv);
  kept.heads = split_heads(qkv, options_.heads);
  if (options_.norms) {
    kept.heads.query = query_norm_->forward(weights, kept.heads.query, context, kept.query_norm);
    kept.heads.key = key_norm_->forward(weights, kept.heads.key, context, kept.key_norm);
  }
  if (options_.rotary) {
    const int64_t first = context.decoding == nullptr ? 0 : context.decoding->position;
    const RotaryAngles angles = options_.rotary->angles(first, x.size(1), x);
    if (options_.norms) {
      rotate_in_place(kept.heads.query, angles);
      rotate_in_place(kept.heads.key, angles);
    } else {
      at::Tensor both = queries_and_keys(qkv, options_.heads);
      rotate_in_place(both, angles);
    }
  }
  if (context.decoding != nullptr) {
    return projection_.forward(weights, attend_from(*context.decoding, kept.heads), context, kept.projection);
  }
  const Attended attended = attention(kept.heads, options_.causal);
  kept.softmax_rows = attended.softmax_rows;
  kept.recorded = attended.recorded;
  return projection_.forward(weights, attended.output, context, kept.projection);
}

at::Tensor Attention::attend_from(DecodingState& decoding, const HeadTensors& heads) const {
  auto& [keys, values] = decoding.attentions[this];
  const int64_t tokens = heads.key.size(2), total = decoding.position + tokens;
  if (decoding.position == 0) {
    const int64_t batch = heads.key.size(0), count = options_.heads.key_value;
    keys = at::empty({batch, count, decoding.capacity, options_.head_size}, heads.key.options());
    values = at::empty_like(keys);
  }
  keys.narrow(2, decoding.position, tokens).copy_(heads.key);
  values.narrow(2, decoding.position, tokens).copy_(heads.value);
  if (decoding.position == 0) return attention(heads, options_.causal).output;
  return attention_of_one({heads.query, keys, values}, total);
}

at::Tensor Attention::backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const {
  const at::Tensor grad_attended = projection_.backward_input(weights, grad, kept.projection);
  const Attended attended{kept.projection.input, std::exchange(kept.softmax_rows, {}),
                          std::exchange(kept.recorded, {})};
  const at::Tensor grad_qkv =
      attention_backward(grad_attended, std::exchange(kept.heads, {}), attended, options_.causal);
  HeadTensors heads = split_heads(grad_qkv, options_.heads);
  if (options_.rotary) {
    at::Tensor both = queries_and_keys(grad_qkv, options_.heads);
    rotate_back_in_place(both, options_.rotary->angles(0, grad.size(1), grad));
  }
  if (options_.norms) {
    heads.query.copy_(query_norm_->backward_input(weights, heads.query, kept.query_norm));
    heads.key.copy_(key_norm_->backward_input(weights, heads.key, kept.key_norm));
  }
  return qkv_.backward_input(weights, grad_qkv, kept.qkv);
}

void Attention::backward_weights(Kept& kept, const GradientSums& gradients) const {
  qkv_.backward_weights(kept.qkv, gradients);
  projection_.backward_weights(kept.projection, gradients);
  if (!options_.norms) return;
  query_norm_->backward_weights(kept.query_norm, gradients);
  key_norm_->backward_weights(kept.key_norm, gradients);
}

double Attention::cost() const {
  return qkv_.cost() + projection_.cost() +
         2 * static_cast<double>(options_.heads.query * options_.head_size) * static_cast<double>(options_.context);
}

double Attention::kept_bytes(const MicrobatchShape& shape) const {
  const auto size = static_cast<double>(options_.head_size);
  const double elements_per_token = static_cast<double>(options_.heads.query + 2 * options_.heads.key_value) * size;
  double norms = 0;
  if (options_.norms) {
    norms = static_cast<double>(options_.heads.query) * query_norm_->kept_bytes(shape) +
            static_cast<double>(options_.heads.key_value) * key_norm_->kept_bytes(shape);
  }
  const double softmax = shape.on_host ? softmax_bytes(options_.heads, shape.element_bytes) : 0;
  const double bytes_per_token = elements_per_token * shape.element_bytes + softmax;
  return qkv_.kept_bytes(shape) + norms + shape.tokens() * bytes_per_token + projection_.kept_bytes(shape);
}

// In the input half, while attention's backward runs: the gradients of the layer's output, of attention's output and of
// queries, keys and values.
double Attention::passing_bytes(const MicrobatchShape& shape) const {
  const auto size = static_cast<double>(options_.head_size);
  const double attended = static_cast<double>(options_.heads.query) * size,
               heads = static_cast<double>(options_.heads.query + 2 * options_.heads.key_value) * size;
  const double gradients = static_cast<double>(options_.width) + attended + heads;
  const double working =
      shape.on_host ? attention_working_bytes(options_.heads, size, shape.context, options_.causal, shape.element_bytes)
                    : 0;
  const double wide = std::max(qkv_.wide_bytes(shape), projection_.wide_bytes(shape));
  const double of_inputs = shape.tokens() * gradients * shape.element_bytes + std::max(shape.sequences * working, wide);
  return std::max(of_inputs, weights_passing_bytes(shape));
}

double Attention::weights_passing_bytes(const MicrobatchShape& shape) const {
  const double grad_input = shape.tokens() * static_cast<double>(options_.width) * shape.element_bytes;
  return split_bytes(shape) + grad_input + std::max(qkv_.product_bytes(shape), projection_.product_bytes(shape));
}

// The gradient of the layer's output. That of queries, keys and values takes their place.
double Attention::split_bytes(const MicrobatchShape& shape) const {
  return shape.tokens() * static_cast<double>(options_.width) * shape.element_bytes;
}

}  // namespace gyre
