#include "gyre/model/sublayers/output_loss.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "gyre/kernels/cross_entropy.h"
#include "gyre/tensors/device.h"
#include "gyre/tensors/wide_type.h"

namespace gyre {
namespace {

// Every piece of rows adds a matrix product to the output matrix's gradient, which is a pass over the model's largest
// matrix. With this many rows per piece the pass is a small part of the products' time (bench/head_bench). GPUs are
// faster at products than at passes, so they take more.
constexpr int64_t kRowsAtOnce = 2048, kRowsAtOnceOnGpus = 8192;

// Cuts into pieces of nearly equal length, because a short piece costs as much as a full one.
std::vector<at::Tensor> cut(const at::Tensor& rows, int64_t pieces) {
  return rows.split((rows.size(0) + pieces - 1) / pieces);
}

}  // namespace

OutputLoss::OutputLoss(ParameterList& parameters, const std::string& name, const LinearOptions& options,
                       int64_t rows_at_once)
    : width_(options.in), vocabulary_(options.out), rows_at_once_(rows_at_once), output_(parameters, name, options) {}

int64_t OutputLoss::rows_at_once(bool on_host) const {
  if (rows_at_once_ > 0) return rows_at_once_;
  return on_host ? kRowsAtOnce : kRowsAtOnceOnGpus;
}

int64_t OutputLoss::count_pieces(const at::Tensor& targets) const {
  const int64_t most = rows_at_once(!has_streams(targets.device()));
  return std::max<int64_t>(1, (targets.size(0) + most - 1) / most);
}

at::Tensor OutputLoss::logits(const WeightView& weights, const at::Tensor& x, const LayerContext& context) const {
  Linear::Kept unused;
  return output_.forward(weights, x, context, unused);
}

at::Tensor OutputLoss::forward(const WeightView& weights, const at::Tensor& x, const at::Tensor& targets,
                               const LayerContext& context, Kept& kept) const {
  const at::Tensor row_targets = on_device(targets, x.device());
  at::Tensor sum = at::zeros({}, x.options().dtype(at::kDouble));
  const bool needs_loss = !context.training || !context.loss_in_backward;
  if (needs_loss) {
    const int64_t pieces = count_pieces(row_targets);
    const auto input_pieces = cut(x.reshape({-1, width_}), pieces), target_pieces = cut(row_targets, pieces);
    for (size_t i = 0; i < input_pieces.size(); ++i) {
      at::Tensor piece_logits = logits(weights, input_pieces[i], context);
      sum.add_(cross_entropy_in_place(piece_logits, target_pieces[i], 1.0));
    }
  }
  at::Tensor loss = sum.div_(static_cast<double>(row_targets.size(0))).to(wide_type(x));
  if (context.training) kept = {x, row_targets, needs_loss ? at::Tensor() : loss, {}};
  return loss;
}

at::Tensor OutputLoss::backward_input(const WeightView& weights, const at::Tensor& grad_loss, Kept& kept) const {
  return backward_in_pieces(weights, grad_loss, kept, 1, [] {});
}

void OutputLoss::backward_weights(Kept& kept, const GradientSums& gradients) const {
  output_.backward_weights(kept.output, gradients);
}

at::Tensor OutputLoss::backward(const WeightView& weights, const at::Tensor& grad_loss, Kept& kept,
                                const GradientSums& gradients) const {
  return backward_in_pieces(weights, grad_loss, kept, count_pieces(kept.targets),
                            [&] { output_.backward_weights(kept.output, gradients); });
}

// piece_done: called after each piece, when kept.output holds the gradient of its logits; it may empty kept.output.
template <typename PieceDone>
at::Tensor OutputLoss::backward_in_pieces(const WeightView& weights, const at::Tensor& grad_loss, Kept& kept,
                                          int64_t pieces, PieceDone&& piece_done) const {
  const at::Tensor input = std::exchange(kept.input, {}), all_targets = std::exchange(kept.targets, {});
  const auto rows = static_cast<double>(all_targets.size(0));
  const auto inputs = cut(input.reshape({-1, width_}), pieces), targets = cut(all_targets, pieces);
  at::Tensor sum = at::zeros({}, input.options().dtype(at::kDouble));
  std::vector<at::Tensor> grads;
  for (size_t i = 0; i < inputs.size(); ++i) {
    at::Tensor piece_logits = output_.forward(weights, inputs[i], {}, kept.output);
    sum.add_(cross_entropy_in_place(piece_logits, targets[i], grad_loss.item<double>() / rows));
    const at::Tensor& grad_logits = piece_logits;  // overwritten in place
    grads.push_back(output_.backward_input(weights, grad_logits, kept.output));
    piece_done();
  }
  if (const at::Tensor loss = std::exchange(kept.loss, {}); loss.defined()) {
    loss.add_(sum.div_(rows).to(loss.scalar_type()));
  }
  return (grads.size() == 1 ? grads[0] : at::cat(grads)).view(input.sizes());
}

double OutputLoss::kept_bytes(const MicrobatchShape& shape) const {
  constexpr double kTarget = 8;
  return output_.kept_bytes(shape) + shape.tokens() * kTarget;
}

double OutputLoss::split_bytes(const MicrobatchShape& shape) const {
  return shape.tokens() * static_cast<double>(vocabulary_) * shape.element_bytes;
}

double OutputLoss::passing_bytes(const MicrobatchShape& shape) const {
  const double pieces = std::max(1.0, std::ceil(shape.tokens() / static_cast<double>(rows_at_once(shape.on_host))));
  const double gradient_of_input = output_.kept_bytes(shape);
  MicrobatchShape in_pieces = shape;
  in_pieces.adds |= pieces > 1;
  const double of_loss = cross_entropy_bytes(shape.tokens() / pieces, static_cast<double>(vocabulary_), shape.on_host);
  in_pieces.sequences /= pieces;
  const double of_products = std::max(output_.product_bytes(in_pieces), output_.wide_bytes(in_pieces));
  return split_bytes(shape) / pieces + gradient_of_input + std::max(of_loss, of_products);
}

}  // namespace gyre
