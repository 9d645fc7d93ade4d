// Passes over memory between fp32 and bf16, each once: conversions cost as much as the products they are made for.
#pragma once

#include <ATen/core/Tensor.h>

#include "gyre/optim/parameter/split_weight.h"

namespace gyre {

// x in bf16, in x's own layout (a transposed view stays one).
at::Tensor to_bf16(const at::Tensor& x);
// average <- beta average + (1 - beta) x. average: fp32, may be a part of a matrix; x: fp32 or bf16, same shape.
void average_into(const at::Tensor& average, const at::Tensor& x, double beta);
// w <- keep w - rate x. w: fp32, or in halves; x: fp32 or bf16, same shape.
void subtract_scaled(const at::Tensor& w, const at::Tensor& x, double rate, double keep);
void subtract_scaled(const SplitWeight& w, const at::Tensor& x, double rate, double keep);
// y <- a - b. y: fp32 matrix, may be a part of another; a, b: fp32 or bf16, same shape.
void set_difference(const at::Tensor& y, const at::Tensor& a, const at::Tensor& b);

namespace portable {
at::Tensor to_bf16(const at::Tensor& x);
void average_into(const at::Tensor& average, const at::Tensor& x, double beta);
void subtract_scaled(const at::Tensor& w, const at::Tensor& x, double rate, double keep);
void subtract_scaled(const SplitWeight& w, const at::Tensor& x, double rate, double keep);
void set_difference(const at::Tensor& y, const at::Tensor& a, const at::Tensor& b);
}  // namespace portable

}  // namespace gyre
