#include "gyre/inspect/hessian.h"

#include <ATen/ATen.h>

#include <cmath>
#include <memory>
#include <tuple>
#include <utility>

#include "gyre/kernels/matrix_product.h"
#include "gyre/optim/hessian_norm.h"
#include "gyre/optim/parameter/basis_rotation.h"
#include "gyre/tensors/matrix_block.h"

namespace gyre {
namespace {

constexpr int64_t kBasisMicrobatches = 32;  // for the bases of a run that has none
constexpr double kStep = 0.02;              // length of the step of a finite difference

// Saves the last gradient, and leaves the weights unchanged.
class GradientKeeper final : public Optimizer {
 public:
  explicit GradientKeeper(StageTensors& kept) : kept_(kept) {}
  void step(std::span<const at::Tensor>, std::span<const at::Tensor> gradients, const UpdateContext&) override {
    kept_.clear();
    for (const at::Tensor& gradient : gradients) kept_.push_back(gradient.clone());
  }
  NamedTensors state() const override { return {}; }
  void load_state(const NamedTensors&) override {}

 private:
  StageTensors& kept_;
};

// A matrix that basis rotation rotates, and its place in the model.
struct RotatableMatrix {
  int stage = 0;
  size_t parameter = 0;  // of the stage
  MatrixBlock block;

  at::Tensor of(const std::vector<StageTensors>& tensors) const { return block.of(tensors[stage][parameter]); }
};

std::vector<RotatableMatrix> rotatable_matrices(const WindowPipeline& model) {
  std::vector<RotatableMatrix> matrices;
  for (int stage = 0; stage < model.stages(); ++stage) {
    const auto& specs = model.specs(stage);
    for (size_t i = 0; i < specs.size(); ++i) {
      for (MatrixBlock& block : matrix_blocks(specs[i])) matrices.push_back({stage, i, std::move(block)});
    }
  }
  return matrices;
}

class Measurement {
 public:
  Measurement(WindowPipeline& model, const HessianOptions& options)
      : model_(model), options_(options), matrices_(rotatable_matrices(model)), gradients_(model.stages()) {
    model.replace_optimizers(
        [&](int stage, std::unique_ptr<Optimizer>) { return std::make_unique<GradientKeeper>(gradients_[stage]); });
    for (int stage = 0; stage < model.stages(); ++stage) {
      weights_.emplace_back();
      for (const at::Tensor& master : model.pipeline().owner(stage).weights.masters()) {
        weights_.back().push_back(master.clone());
      }
    }
  }

  HessianNorms run() {
    std::vector<HessianBlock> own, rotated;
    for (const RotatableMatrix& matrix : matrices_) own.push_back({matrix.block.rows, matrix.block.columns, {}, {}});
    rotated = own;
    HessianNorms norms;
    norms.own_bases = take_own_bases(rotated);
    if (!norms.own_bases) estimate_bases(rotated);
    int64_t products = 0;
    const auto product = [&](const std::vector<at::Tensor>& x) {
      auto result = hessian_product(x);
      if (options_.progress) options_.progress(++products, 2L * options_.draws);
      return result;
    };
    norms.own = hessian_norm(own, product, options_.draws, options_.seed);
    norms.rotated = hessian_norm(rotated, product, options_.draws, options_.seed);
    return norms;
  }

 private:
  // The mean gradient over microbatches [first, first + count) at `weights`: valid until the next call.
  const std::vector<StageTensors>& gradient(const std::vector<StageTensors>& weights, int64_t first, int64_t count) {
    for (int stage = 0; stage < model_.stages(); ++stage) model_.set_weights(stage, weights[stage]);
    model_.run(first, count, 1);
    return gradients_;
  }

  // H x by a central difference of gradients, (g(W + h x) - g(W - h x)) / 2h.
  std::vector<at::Tensor> hessian_product(const std::vector<at::Tensor>& x) {
    double squared = 0;
    for (const at::Tensor& block : x) squared += block.square().sum(at::kDouble).item<double>();
    const double h = kStep / std::sqrt(squared);
    std::vector<at::Tensor> result;
    for (const double sign : {1.0, -1.0}) {
      std::vector<StageTensors> moved;
      for (const StageTensors& stage : weights_) {
        moved.emplace_back();
        for (const at::Tensor& weight : stage) moved.back().push_back(weight.clone());
      }
      for (size_t i = 0; i < matrices_.size(); ++i) matrices_[i].of(moved).add_(x[i], sign * h);
      const auto& gradients = gradient(moved, options_.first_microbatch, options_.microbatches);
      for (size_t i = 0; i < matrices_.size(); ++i) {
        if (sign > 0) {
          result.push_back(matrices_[i].of(gradients).clone());
        } else {
          result[i].sub_(matrices_[i].of(gradients)).div_(2 * h);
        }
      }
    }
    return result;
  }

  // Takes the optimizer's bases; false if there are none. A sketch is completed by orthogonal directions.
  bool take_own_bases(std::vector<HessianBlock>& blocks) const {
    const auto completed = [](const at::Tensor& basis) {
      if (!basis.defined() || basis.size(0) == basis.size(1)) return basis;
      return std::get<0>(at::linalg_qr(basis, "complete"));
    };
    bool any = false;
    for (size_t i = 0; i < matrices_.size(); ++i) {
      const SavedBases bases = saved_bases(*options_.optimizer_state, matrices_[i].block.name);
      blocks[i].u = completed(bases.left);
      blocks[i].v = completed(bases.right);
      any |= blocks[i].u.defined() || blocks[i].v.defined();
    }
    return any;
  }

  // Eigenvectors of G G^T and G^T G, summed over fresh microbatches.
  void estimate_bases(std::vector<HessianBlock>& blocks) {
    std::vector<std::pair<at::Tensor, at::Tensor>> covariances;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const auto options = matrices_[i].of(weights_).options();
      covariances.emplace_back(at::zeros({blocks[i].rows, blocks[i].rows}, options),
                               at::zeros({blocks[i].columns, blocks[i].columns}, options));
    }
    for (int64_t m = 0; m < kBasisMicrobatches; ++m) {
      const auto& gradients = gradient(weights_, options_.first_microbatch + options_.microbatches + m, 1);
      for (size_t i = 0; i < matrices_.size(); ++i) {
        const at::Tensor g = matrices_[i].of(gradients);
        covariances[i].first.add_(matrix_product(g, g.t()));
        covariances[i].second.add_(matrix_product(g.t(), g));
      }
    }
    // In fp64, since LAPACK's decomposition in fp32 fails for sides from about 2900 on.
    const auto basis = [](const at::Tensor& c) {
      const double trace = c.trace().item<double>();
      if (trace <= 0) return at::Tensor();
      return std::get<1>(at::linalg_eigh((c / trace).to(at::kDouble))).to(c.scalar_type());
    };
    for (size_t i = 0; i < blocks.size(); ++i) {  // a basis takes its covariance's place
      blocks[i].u = basis(std::exchange(covariances[i].first, {}));
      blocks[i].v = basis(std::exchange(covariances[i].second, {}));
    }
  }

  WindowPipeline& model_;
  const HessianOptions& options_;
  std::vector<RotatableMatrix> matrices_;
  std::vector<StageTensors> weights_, gradients_;  // [stage]
};

}  // namespace

int64_t rotatable_weights(const WindowPipeline& model) {
  int64_t count = 0;
  for (const RotatableMatrix& matrix : rotatable_matrices(model)) count += matrix.block.rows * matrix.block.columns;
  return count;
}

HessianNorms measure_hessian(WindowPipeline& model, const HessianOptions& options) {
  return Measurement(model, options).run();
}

}  // namespace gyre
