#include "gyre/optim/weight_average.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/optim/parameter/state.h"

namespace gyre {
namespace {

// Each element is by itself, so neither vectors nor shards change its bits.
GYRE_CPU_KERNEL void move_loop(float* __restrict average, const float* __restrict weight, int64_t count, float rate) {
  for (int64_t i = 0; i < count; ++i) average[i] += rate * (weight[i] - average[i]);
}

}  // namespace

void portable::move_average(const at::Tensor& average, const at::Tensor& weight, double rate) {
  average.add_(weight - average, rate);
}

void move_average(const at::Tensor& average, const at::Tensor& weight, double rate) {
  if (!cpu::is_plain(average, at::kFloat) || !cpu::is_plain(weight, at::kFloat)) {
    return portable::move_average(average, weight, rate);
  }
  float* const to = average.data_ptr<float>();
  const float* from = weight.data_ptr<float>();
  cpu::for_elements(average.numel(), [&](int64_t begin, int64_t end) {
    move_loop(to + begin, from + begin, end - begin, static_cast<float>(rate));
  });
}

WeightAverage::WeightAverage(std::vector<ParameterSpec> specs, double decay, at::Device device)
    : specs_(std::move(specs)), decay_(decay), values_(make_flat_buffer(specs_, at::kFloat, device)) {}

void WeightAverage::restart(const Weights& weights, const NamedTensors& state) {
  const bool saved = std::any_of(specs_.begin(), specs_.end(),
                                 [&](const auto& spec) { return state.count(state_name(spec.name)) > 0; });
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (saved) {
      load_tensor(state, state_name(specs_[i].name), values_.tensors[i]);
    } else {
      values_.tensors[i].copy_(weights(i));
    }
  }
}

void WeightAverage::take_in(const Weights& weights, int64_t version) {
  const double rate = (1 - decay_) / (1 - std::pow(decay_, static_cast<double>(version + 1)));
  for (size_t i = 0; i < specs_.size(); ++i) move_average(values_.tensors[i], weights(i), rate);
}

NamedTensors WeightAverage::state() const {
  NamedTensors state;
  for (size_t i = 0; i < specs_.size(); ++i) state[state_name(specs_[i].name)] = values_.tensors[i];
  return state;
}

std::string WeightAverage::state_name(const std::string& parameter) {
  return parameter + "/ema";
}

}  // namespace gyre
