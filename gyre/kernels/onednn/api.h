// Wrappers of oneDNN's API. This is the only file that knows the difference between oneDNN 2.x (Debian 12 has 2.6) and
// 3.x: how descriptors of primitives are created. The version is detected from oneDNN's types at compile time, so the
// compiler always parses both branches.
#pragma once

#include <dnnl.hpp>

namespace gyre::onednn {

template <typename Description = dnnl::memory::desc>
dnnl::memory::data_type type_of(const Description& description) {
  if constexpr (requires { description.data_type(); }) {  // 2.x
    return description.data_type();
  } else {
    return description.get_data_type();
  }
}
// Whether a description is empty (default-constructed).
inline bool is_nothing(const dnnl::memory::desc& description) {
  return type_of(description) == dnnl::memory::data_type::undef;
}

// result = source weights (+ bias). An empty bias description means no bias.
template <typename Matmul = dnnl::matmul>
typename Matmul::primitive_desc matmul(const dnnl::engine& engine, const dnnl::memory::desc& source,
                                       const dnnl::memory::desc& weights, const dnnl::memory::desc& bias,
                                       const dnnl::memory::desc& result, const dnnl::primitive_attr& attributes = {}) {
  const bool biased = !is_nothing(bias);
  if constexpr (requires { typename Matmul::desc; }) {  // 2.x
    const auto desc =
        biased ? typename Matmul::desc(source, weights, bias, result) : typename Matmul::desc(source, weights, result);
    return {desc, attributes, engine};
  } else {
    if (biased) return {engine, source, weights, bias, result, attributes};
    return {engine, source, weights, result, attributes};
  }
}

// y = x W^T: x (rows, in), W (out, in), y (rows, out).
template <typename Forward = dnnl::inner_product_forward>
typename Forward::primitive_desc linear_forward(const dnnl::engine& engine, const dnnl::memory::desc& x,
                                                const dnnl::memory::desc& weights, const dnnl::memory::desc& y) {
  constexpr auto kKind = dnnl::prop_kind::forward_training;
  if constexpr (requires { typename Forward::desc; }) {
    return {typename Forward::desc(kKind, x, weights, y), engine};
  } else {
    return {engine, kKind, x, weights, y};
  }
}

// The gradient of x; `forward` is a hint.
template <typename Backward = dnnl::inner_product_backward_data>
typename Backward::primitive_desc linear_backward_data(const dnnl::engine& engine, const dnnl::memory::desc& grad_x,
                                                       const dnnl::memory::desc& weights,
                                                       const dnnl::memory::desc& grad_y,
                                                       const dnnl::inner_product_forward::primitive_desc& forward) {
  if constexpr (requires { typename Backward::desc; }) {
    return {typename Backward::desc(grad_x, weights, grad_y), engine, forward};
  } else {
    return {engine, grad_x, weights, grad_y, forward};
  }
}

// The gradient of W; `forward` is a hint.
template <typename Backward = dnnl::inner_product_backward_weights>
typename Backward::primitive_desc linear_backward_weights(const dnnl::engine& engine, const dnnl::memory::desc& x,
                                                          const dnnl::memory::desc& grad_weights,
                                                          const dnnl::memory::desc& grad_y,
                                                          const dnnl::inner_product_forward::primitive_desc& forward,
                                                          const dnnl::primitive_attr& attributes = {}) {
  if constexpr (requires { typename Backward::desc; }) {
    return {typename Backward::desc(x, grad_weights, grad_y), attributes, engine, forward};
  } else {
    return {engine, x, grad_weights, grad_y, forward, attributes};
  }
}

}  // namespace gyre::onednn
