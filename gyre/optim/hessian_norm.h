// The (1,1)-norm of a Hessian, sum_ij |H_ij|, by products with it alone. Adam's convergence under delay depends on it,
// and a rotation is worth what it takes away from it (basis-rotation paper, section 3).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace gyre {

// A matrix of the model, (rows, columns), seen in the coordinates U^T W V; undefined: its own.
struct HessianBlock {
  int64_t rows = 0, columns = 0;
  at::Tensor u, v;
};

inline constexpr int kLeastDraws = 15;

// product(x) is H x: one tensor per block, in the blocks' own coordinates. With independent Cauchy entries in x, (H
// x)_i is Cauchy with scale sum_j |H_ij|, which is the median of its absolute value; the norm is the sum of these over
// i. The median of a few draws is too large on average, by a factor that the estimate is divided by. `draws`: how many
// products, kLeastDraws at least; odd, so that the median is one of them. Large blocks look at every n-th entry alone,
// so that memory stays bounded.
double hessian_norm(const std::vector<HessianBlock>& blocks,
                    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& product, int draws,
                    uint64_t seed);

}  // namespace gyre
