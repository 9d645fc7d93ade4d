// Chooses the next token by a model's logits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "gyre/core/random.h"

namespace gyre {

struct SamplingOptions {
  double temperature = 0.8;  // 0: the likeliest token
  int64_t top_k = 0;         // among the k likeliest; 0: all
  double top_p = 1;          // among the likeliest that have this probability together (Holtzman et al., 2020)
};

// Throws InputError for options out of range.
void check(const SamplingOptions& options);

// Draws from softmax(logits / temperature), restricted to the top_k likeliest and, of those, to the fewest likeliest
// that make up top_p of it. Ties go to the smaller token, so that the order is fixed. logits: (vocabulary) fp32; -inf
// excludes a token. Throws RunError if none is finite, or one is NaN or +inf.
int64_t sample(const at::Tensor& logits, const SamplingOptions& options, RandomStream& stream);

}  // namespace gyre
