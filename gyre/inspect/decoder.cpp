#include "gyre/inspect/decoder.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

namespace gyre {

Decoder::Decoder(const Stage& stage, std::vector<at::Tensor> weights, int64_t context, bool caches)
    : stage_(stage), weights_(std::move(weights)), context_(context), caches_(caches && stage.decodes()) {
  state_.capacity = context;
}

at::Tensor Decoder::read(std::span<const int32_t> tokens) {
  const c10::NoGradGuard no_grad;
  const auto context = static_cast<size_t>(context_);
  read_.insert(read_.end(), tokens.begin(), tokens.end());
  const bool full = state_.position + static_cast<int64_t>(tokens.size()) > context_;
  const bool begins = state_.position == 0;
  const size_t seen = std::min(read_.size(), caches_ && full && !begins ? std::max<size_t>(1, context / 2) : context);
  if (!caches_ || begins || full) {
    read_.erase(read_.begin(), read_.end() - static_cast<std::ptrdiff_t>(seen));
    if (!caches_) return forward(read_, nullptr);
    state_.position = 0;
    tokens = read_;
    at::Tensor logits = forward(tokens, &state_);
    state_.position = static_cast<int64_t>(tokens.size());
    return logits;
  }
  at::Tensor logits;
  for (const int32_t& token : tokens) {
    logits = forward({&token, 1}, &state_);
    ++state_.position;
  }
  return logits;
}

at::Tensor Decoder::forward(std::span<const int32_t> tokens, DecodingState* decoding) const {
  const at::Tensor input = at::tensor(std::vector<int64_t>(tokens.begin(), tokens.end()), at::kLong).unsqueeze(0);
  LayerContext context;
  context.training = false;
  context.decoding = decoding;
  StageSaved saved;
  const at::Tensor logits = stage_.forward(weights_, input, context, saved);  // (1, tokens or 1, vocabulary)
  return logits[0][logits.size(1) - 1].to(at::kFloat).contiguous();
}

}  // namespace gyre
