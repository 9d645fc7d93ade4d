#include "gyre/optim/hessian_norm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <tuple>

#include "gyre/core/random.h"
#include "gyre/kernels/matrix_product.h"

namespace gyre {
namespace {

at::Tensor cauchy(int64_t rows, int64_t columns, RandomStream& stream) {
  const at::Tensor values = at::empty({rows, columns}, at::kFloat);
  float* data = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    data[i] = static_cast<float>(std::tan(std::numbers::pi * (stream.uniform() - 0.5)));
  }
  return values;
}

at::Tensor rotated(const at::Tensor& left, const at::Tensor& x, const at::Tensor& right) {
  const at::Tensor y = left.defined() ? matrix_product(left, x) : x;
  return right.defined() ? matrix_product(y, right) : y;
}
at::Tensor transposed(const at::Tensor& x) {
  return x.defined() ? x.t() : x;
}

// Entries of a block from one that is looked at to the next. Without a factor in common with the number of columns, so
// that they fall on all columns equally often.
int64_t stride(const HessianBlock& block) {
  constexpr int64_t kMostEntries = 1 << 16;
  int64_t stride = (block.rows * block.columns + kMostEntries - 1) / kMostEntries;
  while (std::gcd(stride, block.columns) > 1) ++stride;
  return stride;
}

// The mean of the median of n absolute values of Cauchy numbers, over their scale; n odd. Near 1/2 the quantile
// function tan(pi u / 2) has the second derivative pi^2, and the median's u the variance 1 / (4 (n + 2)): that is 1 +
// pi^2 / (8 (n + 2)). The further terms make it n - 1, to 0.05% from n = 15 on.
double bias_of_median(int n) {
  return 1 + std::numbers::pi * std::numbers::pi / (8.0 * (n - 1));
}

}  // namespace

double hessian_norm(const std::vector<HessianBlock>& blocks,
                    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& product, int draws,
                    uint64_t seed) {
  std::vector<std::vector<at::Tensor>> seen(blocks.size());  // [block][draw]: entries of |U^T (H x) V|
  for (int draw = 0; draw < draws; ++draw) {
    RandomStream stream(seed, StreamPurpose::Diagnostics, static_cast<uint64_t>(draw));
    std::vector<at::Tensor> x;
    for (const HessianBlock& block : blocks) {
      x.push_back(rotated(block.u, cauchy(block.rows, block.columns, stream), transposed(block.v)));
    }
    const auto hx = product(x);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const at::Tensor entries = rotated(transposed(blocks[i].u), hx[i], blocks[i].v).abs().flatten();
      seen[i].push_back(entries.slice(0, 0, entries.numel(), stride(blocks[i])).clone());
    }
  }
  double sum = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const at::Tensor scales = std::get<0>(at::stack(seen[i]).median(0));
    sum += scales.mean(at::kDouble).item<double>() * static_cast<double>(blocks[i].rows * blocks[i].columns);
  }
  return sum / bias_of_median(draws);
}

}  // namespace gyre
