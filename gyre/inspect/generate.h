// gyre generate: text from a trained run.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "gyre/inspect/sampling.h"
#include "gyre/inspect/trained_model.h"

namespace gyre {

struct GenerateOptions {
  std::string prompt;
  int64_t tokens = 200;
  SamplingOptions sampling;
  uint64_t seed = 1;
  std::stop_token stop;
};

// Calls `write` with text as it becomes certain (whole UTF-8 characters), the prompt not included. The same options
// give the same text. Throws InputError for an empty prompt, options out of range, and a model or run that cannot
// continue text.
void generate(const TrainedModel& model, const GenerateOptions& options,
              const std::function<void(std::string_view)>& write);

}  // namespace gyre
