#include "gyre/model/sublayers/linear.h"

#include "gyre/kernels/linear.h"
#include "gyre/kernels/matrix_product.h"
#include "gyre/model/sublayers/decoding.h"

namespace gyre {
namespace {

ParameterSpec matrix_spec(const std::string& name, const LinearOptions& options) {
  ParameterSpec spec;
  spec.name = name + ".weight";
  spec.shape = {options.out, options.in};
  spec.initialization = {Initialization::Kind::Normal, options.deviation};
  spec.decay = true;
  spec.rotate = options.rotate;
  spec.row_blocks = options.row_blocks;
  spec.tied_to = options.tied_to;
  return spec;
}

bool is_widened(const MicrobatchShape& shape) {
  return shape.on_host && shape.element_bytes == 2 && !has_fast_bf16_products() && widens_bf16();
}

}  // namespace

Linear::Linear(ParameterList& parameters, const std::string& name, const LinearOptions& options)
    : out_(static_cast<double>(options.out)),
      in_(static_cast<double>(options.in)),
      weight_(parameters.add(matrix_spec(name, options))) {
  if (options.bias) bias_ = parameters.add_vector(name + ".bias", options.out, Initialization::Kind::Zeros);
}

at::Tensor Linear::forward(const WeightView& weights, const at::Tensor& x, const LayerContext& context,
                           Kept& kept) const {
  kept.input = x;
  const at::Tensor bias = bias_ ? weights[*bias_] : at::Tensor();
  const bool of_one = context.decoding != nullptr && x.numel() == x.size(-1);
  return of_one ? context.decoding->linears[this](x, weights[weight_], bias) : linear(x, weights[weight_], bias);
}

at::Tensor Linear::backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const {
  kept.grad_output = grad;
  return linear_backward_input(grad, weights[weight_]);
}

void Linear::backward_weights(Kept& kept, const GradientSums& gradients) const {
  const bool adds = gradients.holds(weight_);
  linear_backward_weight(kept.input, kept.grad_output, gradients.receive(weight_), adds);
  if (bias_) {
    const bool adds_bias = gradients.holds(*bias_);
    linear_backward_bias(kept.grad_output, gradients.receive(*bias_), adds_bias);
  }
  kept = {};
}

double Linear::product_bytes(const MicrobatchShape& shape) const {
  if (is_widened(shape)) return sizeof(float) * shape.tokens() * (out_ + in_);
  const bool temporary = shape.adds && shape.element_bytes == 2 && !adds_bf16_products_in_place(shape.on_host);
  return temporary ? sizeof(float) * out_ * in_ : 0;
}

double Linear::wide_bytes(const MicrobatchShape& shape) const {
  return is_widened(shape) ? sizeof(float) * (shape.tokens() * (out_ + in_) + out_ * in_) : 0;
}

}  // namespace gyre
