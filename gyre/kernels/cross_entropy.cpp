#include "gyre/kernels/cross_entropy.h"
#include "gyre/tensors/profile_scope.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gyre {
namespace {

constexpr int64_t kElementsAtOnce = int64_t{1} << 19;  // 2 MiB of fp32: about a core's cache

}  // namespace

at::Tensor cross_entropy_in_place(at::Tensor& logits, const at::Tensor& targets) {
  const ProfileScope scope("gyre::cross_entropy");
  const int64_t rows = logits.size(0);
  const auto wide = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const int64_t step = std::max<int64_t>(1, kElementsAtOnce / logits.size(1));
  at::Tensor loss = at::zeros({}, logits.options().dtype(wide));
  for (int64_t begin = 0; begin < rows; begin += step) {
    const int64_t count = std::min(step, rows - begin);
    at::Tensor piece = logits.narrow(0, begin, count);
    const at::Tensor target = targets.narrow(0, begin, count).unsqueeze(1);
    at::Tensor log_probabilities = at::log_softmax(piece, 1, wide);
    loss.sub_(log_probabilities.gather(1, target).sum());
    at::Tensor gradient = log_probabilities.exp_();
    gradient.scatter_add_(1, target, at::full({count, 1}, -1.0, gradient.options()));
    piece.copy_(gradient.div_(static_cast<double>(rows)));
  }
  return loss.div_(static_cast<double>(rows));
}

void cross_entropy_backward_in_place(at::Tensor& grad_logits, const at::Tensor& grad_loss) {
  const ProfileScope scope("gyre::cross_entropy");
  // A pass over the vocabulary saved, where the factor need not be fetched from a device.
  if (grad_loss.is_cpu() && grad_loss.item<double>() == 1) return;
  grad_logits.mul_(grad_loss);
}

}  // namespace gyre
