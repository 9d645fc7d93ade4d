// Special tokens of a model that a tokenizer may have too, such as BERT's [CLS]: whose numbers they take.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gyre/model/settings/model_settings.h"

namespace gyre {

// The numbers that the settings give; empty if they leave them open, or the kind has no such tokens.
std::map<std::string, int64_t> given_tokens(const ModelSettings& settings);
// The numbers that the model uses. The vocabulary must be known: tokens that are left open are its last.
std::map<std::string, int64_t> used_tokens(const ModelSettings& settings);
// Whether the kind has such tokens and the settings leave their numbers open.
bool has_open_tokens(const ModelSettings& settings);
// If the settings leave the numbers open, and `numbers` has all the tokens, within the vocabulary if that is known:
// gives them these numbers.
void take_tokens(const std::map<std::string, int64_t>& numbers, ModelSettings& settings);
// What settings without a vocabulary leave to a run's data is as it was when the run began with `begun`.
void leave_as_begun(const ModelSettings& begun, ModelSettings& settings);

}  // namespace gyre
