// AdamW's steps of many parameters on a device, by libtorch's function that makes all of them in a few kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "gyre/optim/parameter/update_context.h"
#include "gyre/optim/settings/optimizer_kind.h"

namespace gyre {

// What AdamW reads and changes of several parameters, each list in the same order. All fp32.
struct AdamwTensors {
  std::vector<at::Tensor> weights, gradients, exp_avgs, exp_avg_sqs;
};

class FusedAdamw {
 public:
  // Whether this libtorch has the function.
  static bool is_there();

  // Returns whether make() will make this step. It makes none on the CPU, where gyre's loop takes one parameter after
  // another, none with moments in bf16 and none of tensors that are not contiguous.
  bool take(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
            const at::Tensor& exp_avg_sq, double weight_decay);
  // The steps, as adamw_step makes them but for rounding (optim/parameter/adam_kernel.h). Gradients are scratch.
  void make(const AdamSettings& config, const UpdateContext& context);

 private:
  std::map<double, AdamwTensors> taken_;  // by weight decay
};

namespace fused {
// The function itself, on any device that libtorch has it for. Throws std::logic_error where is_there() is false.
void adamw(const AdamwTensors& tensors, double weight_decay, const AdamSettings& config, const UpdateContext& context);
}  // namespace fused

}  // namespace gyre
