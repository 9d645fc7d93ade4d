#include "gyre/model/rope_frequencies.h"

#include <ATen/ATen.h>

#include <numbers>

#include "gyre/kernels/rotary.h"

namespace gyre {

at::Tensor rope_frequencies(const LlamaSettings& settings, int64_t size) {
  const at::Tensor usual = rotary_frequencies(size, settings.rope_theta);
  const RopeScaling& scaling = settings.rope_scaling;
  if (scaling.kind == "none") return usual;
  const at::Tensor stretched = usual / scaling.factor;
  if (scaling.kind == "linear") return stretched;
  const at::Tensor turns = usual * (static_cast<double>(scaling.original_context) / (2 * std::numbers::pi));
  const at::Tensor kept =
      ((turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)).clamp(0, 1);
  return kept * usual + (1 - kept) * stretched;
}

}  // namespace gyre
