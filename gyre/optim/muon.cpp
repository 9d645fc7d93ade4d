#include "gyre/optim/muon.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "gyre/kernels/linear.h"
#include "gyre/optim/parameter/rotation_products.h"
#include "gyre/optim/parameter/state.h"

namespace gyre {
namespace {

constexpr int kIterations = 5;

// X <- 3.4445 X - 4.7750 (X X^T) X + 2.0315 (X X^T)^2 X, several times: singular values go to about 1.
at::Tensor orthogonalised(const at::Tensor& momentum, bool bf16) {
  const bool tall = momentum.size(0) > momentum.size(1);
  at::Tensor x = tall ? momentum.t() : momentum;
  x = x / (x.norm() + 1e-7);
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    const at::Tensor a = product_in_fp32(x, x.t(), bf16);
    const at::Tensor b = product_in_fp32(a, a, bf16).mul_(2.0315).add_(a, -4.7750);
    x = product_in_fp32(b, x, bf16).add_(x, 3.4445);
  }
  return tall ? x.t() : x;
}

}  // namespace

MuonMatrices::MuonMatrices(const MuonConfig&, const ParameterSpec& spec, std::vector<MatrixBlock> blocks,
                           at::Device device)
    : name_(spec.name), decay_(spec.decay), blocks_(std::move(blocks)), momentum_(state_zeros(spec, device)) {}

void MuonMatrices::step(const MuonConfig& config, const at::Tensor& weight, const at::Tensor& gradient,
                        const UpdateContext& context) {
  constexpr double kMomentum = 0.95;
  const double rate = context.learning_rate * config.matrix_lr_ratio;
  momentum_.mul_(kMomentum).add_(gradient, 1 - kMomentum);
  const at::Tensor ahead = gradient.mul(1 - kMomentum).add_(momentum_, kMomentum);
  if (decay_) weight.mul_(1 - rate * config.weight_decay);
  for (const MatrixBlock& block : blocks_) {
    const double scale = std::sqrt(std::max(1.0, static_cast<double>(block.rows) / static_cast<double>(block.columns)));
    block.of(weight).sub_(orthogonalised(block.of(ahead), config.products == "bf16"), rate * scale);
  }
}

void MuonMatrices::save(NamedTensors& state) const {
  state[name_ + "/momentum"] = momentum_;
}

void MuonMatrices::load(const NamedTensors& state) {
  load_tensor(state, name_ + "/momentum", momentum_);
}

double MuonMatrices::state_bytes(const MuonConfig&, const ParameterSpec& spec, const std::vector<MatrixBlock>&) {
  return state_tensor_bytes(spec);
}

// The momentum that is made orthogonal and, of one block after the other, X, the next X and two squares of its shorter
// side, with rounded copies of a product's factors, which are wide again where the CPU has no instructions for bf16;
// and the weight, if it was in halves.
StepBytes MuonMatrices::step_bytes(const MuonConfig& config, const ParameterSpec& spec,
                                   const std::vector<MatrixBlock>& blocks, bool in_halves) {
  double most = 0;
  for (const MatrixBlock& block : blocks) {
    const auto rows = static_cast<double>(block.rows), columns = static_cast<double>(block.columns);
    const double shorter = std::min(rows, columns);
    const bool rounds = config.products == "bf16" && shorter >= kBf16From;
    const double copied = has_fast_bf16_products() ? sizeof(c10::BFloat16) : sizeof(float);
    const double element = 2 * sizeof(float) + (rounds ? copied : 0);
    most = std::max(most, element * (rows * columns + shorter * shorter));
  }
  const double bytes = (in_halves ? 2 : 1) * state_tensor_bytes(spec) + most;
  return {bytes, bytes};
}

double MuonMatrices::update_cost(const MuonConfig&, const std::vector<MatrixBlock>& blocks) {
  double cost = 0;
  for (const MatrixBlock& block : blocks) {
    const auto less = static_cast<double>(std::min(block.rows, block.columns));
    const auto more = static_cast<double>(std::max(block.rows, block.columns));
    cost += kIterations * less * less * (2 * more + less);
  }
  return cost;
}

}  // namespace gyre
