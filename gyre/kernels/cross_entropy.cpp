#include "gyre/kernels/cross_entropy.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/cuda/kernels.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/tensors/profile_scope.h"
#include "gyre/tensors/wide_type.h"

namespace gyre {
namespace {

using cpu::load;
using cpu::store;

// In the portable path: 64 MiB of fp32, and 512 MiB on GPUs, where a piece is a dozen kernels however small it is.
constexpr int64_t kElementsAtOnce = int64_t{1} << 24, kElementsAtOnceOnGpus = int64_t{1} << 27;

// For each row of logits x with target t: the loss is log(sum_i e^(x_i)) - x_t, and x becomes weight (softmax(x) - [i =
// t]). scratch: whole_lanes(width) elements. Returns the sum of the losses.
template <typename T>
GYRE_INLINE double for_rows(T* x, const int64_t* targets, float* __restrict scratch, int64_t rows, int64_t width,
                            float weight) {
  const int64_t whole = cpu::whole_lanes(width);
  double loss = 0;
  for (int64_t row = 0; row < rows; ++row, x += width) {
    cpu::load_row(x, scratch, width);
    const float max = cpu::lane_max(scratch, whole);
    const float sum = cpu::lane_sum(whole, [=](int64_t i) { return scratch[i] = cpu::exp_negative(scratch[i] - max); });
    const int64_t target = targets[row];
    loss += std::log(static_cast<double>(sum)) + (double{max} - load(x + target));
    const float factor = weight / sum;
    for (int64_t i = 0; i < width; ++i) store(x + i, scratch[i] * factor);
    store(x + target, scratch[target] * factor - weight);
  }
  return loss;
}

GYRE_CPU_KERNEL double kernel(float* x, const int64_t* targets, float* scratch, int64_t rows, int64_t width,
                              float weight) {
  return for_rows(x, targets, scratch, rows, width, weight);
}
GYRE_CPU_KERNEL double kernel(c10::BFloat16* x, const int64_t* targets, float* scratch, int64_t rows, int64_t width,
                              float weight) {
  return for_rows(x, targets, scratch, rows, width, weight);
}

template <typename T>
at::Tensor on_cpu(at::Tensor& logits, const at::Tensor& targets, double weight) {
  const int64_t rows = logits.size(0), width = logits.size(1);
  const at::Tensor contiguous_targets = targets.contiguous();
  const auto* first = contiguous_targets.data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    TORCH_CHECK_INDEX(first[row] >= 0 && first[row] < width, "target ", first[row], " of ", width, " classes");
  }
  T* const x = logits.data_ptr<T>();
  std::vector<double> losses(static_cast<size_t>(cpu::part_count(rows, width)));
  cpu::for_parts(static_cast<int64_t>(losses.size()), rows, [&](int64_t part, int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(cpu::whole_lanes(width)));
    losses[static_cast<size_t>(part)] =
        kernel(x + begin * width, first + begin, scratch.data(), end - begin, width, static_cast<float>(weight));
  });
  return at::scalar_tensor(std::accumulate(losses.begin(), losses.end(), 0.0), at::kDouble);
}

}  // namespace

at::Tensor cross_entropy_in_place(at::Tensor& logits, const at::Tensor& targets, double weight) {
  const ProfileScope scope("gyre::cross_entropy");
  if (cpu::is_plain(logits, at::kFloat)) return on_cpu<float>(logits, targets, weight);
  if (cpu::is_plain(logits, at::kBFloat16)) return on_cpu<c10::BFloat16>(logits, targets, weight);
  at::Tensor loss;
  if (cuda::cross_entropy_in_place(logits, targets, weight, loss)) return loss;
  return portable::cross_entropy_in_place(logits, targets, weight);
}

double cross_entropy_bytes(double rows, double vocabulary, bool on_host) {
  constexpr double kTwoInFp32 = 8;
  return on_host || cuda::has_cross_entropy()
             ? 0
             : kTwoInFp32 * std::min(rows * vocabulary, static_cast<double>(kElementsAtOnceOnGpus));
}

namespace portable {

at::Tensor cross_entropy_in_place(at::Tensor& logits, const at::Tensor& targets, double weight) {
  const int64_t rows = logits.size(0);
  const int64_t at_once = logits.is_cuda() ? kElementsAtOnceOnGpus : kElementsAtOnce;
  const int64_t step = std::max<int64_t>(1, at_once / logits.size(1));
  at::Tensor loss = at::zeros({}, logits.options().dtype(wide_type(logits)));
  for (int64_t begin = 0; begin < rows; begin += step) {
    const int64_t count = std::min(step, rows - begin);
    const at::Tensor piece = logits.narrow(0, begin, count), target = targets.narrow(0, begin, count).unsqueeze(1);
    at::Tensor log_probabilities = at::log_softmax(piece, 1, wide_type(logits));
    loss.sub_(log_probabilities.gather(1, target).sum());
    at::Tensor gradient = log_probabilities.exp_();
    // Of a number, which no other element meets, it is one kernel on CUDA also where bits must repeat.
    gradient.scatter_(1, target, -1.0, "add");
    piece.copy_(gradient.mul_(weight));
  }
  return loss.to(at::kDouble);
}

}  // namespace portable

}  // namespace gyre
