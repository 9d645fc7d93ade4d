// By how much rotary positions turn the pairs of elements of a head, with or without a stretch for long contexts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "gyre/model/settings/llama_settings.h"

namespace gyre {

// (size / 2), fp64: pair i of a head with `size` elements turns by rope_theta^(-2 i / size) from one position to the
// next, before any stretch. "linear" (Chen et al., 2023) divides all of them by the factor. "llama3" (as the published
// code of Llama 3.1 does it) divides those that turn fewer than low_freq_factor times within the original context, and
// leaves those that turn high_freq_factor times or more; between the two, frequencies change over linearly.
at::Tensor rope_frequencies(const LlamaSettings& settings, int64_t size);

}  // namespace gyre
