// Generating text with a KV cache, and with a forward of all tokens for each new one: tokens/s of both in turn, and the
// median of the rounds' ratios. GPT, 8 layers of width 384, 6 heads, vocabulary 8192, random weights, one thread;
// a prompt of CONTEXT - 64 tokens, then TOKENS more, at most 64, so that the context never overflows (without the
// cache, a quarter of them).
//   generation_bench [ROUNDS [CONTEXT [TOKENS [TYPE]]]]      (5 rounds, 1024, 32, bf16; or fp32)
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "gyre/inspect/decoder.h"
#include "gyre/kernels/linear.h"
#include "gyre/model/gpt.h"
#include "gyre/tensors/host_memory.h"
#include "support.h"

namespace {

using namespace gyre;
using Clock = std::chrono::steady_clock;

double tokens_per_second(Decoder decoder, int64_t prompt, int64_t tokens) {
  const std::vector<int32_t> text(static_cast<size_t>(prompt), 17);
  at::Tensor logits = decoder.read(text);
  const auto started = Clock::now();
  for (int64_t n = 0; n < tokens; ++n) {
    const auto next = static_cast<int32_t>(logits.argmax().item<int64_t>());
    logits = decoder.read({&next, 1});
  }
  return static_cast<double>(tokens) / std::chrono::duration<double>(Clock::now() - started).count();
}

}  // namespace

int main(int argc, char** argv) {
  const gyre::HostMemory memory;  // as in gyre-engine
  const auto argument = [&](int n, int64_t otherwise) { return argc > n ? std::atoll(argv[n]) : otherwise; };
  const int64_t rounds = argument(1, 5), context = argument(2, 1024), tokens = std::min<int64_t>(argument(3, 32), 64);
  const at::ScalarType type = argc > 4 && std::string_view(argv[4]) == "fp32" ? at::kFloat : at::kBFloat16;
  at::set_num_threads(1);
  heed_limit_of_instructions();
  ModelSettings settings;
  settings.layers = 8;
  settings.width = 384;
  settings.heads = 6;
  settings.context = context;
  settings.vocabulary = 8192;
  const Stage stage(build_gpt(settings), 0);
  std::vector<at::Tensor> weights;
  for (const ParameterSpec& spec : stage.parameters()) weights.push_back(initial_value(spec, 1).to(type));
  std::vector<double> ratios;
  for (int64_t round = 0; round < rounds; ++round) {
    const double with = tokens_per_second(Decoder(stage, weights, context), context - 64, tokens);
    const double without = tokens_per_second(Decoder(stage, weights, context, false), context - 64, tokens / 4);
    ratios.push_back(with / without);
    fmt::print("with {:8.1f} tokens/s  without {:8.2f}  ratio {:.1f}\n", with, without, ratios.back());
  }
  fmt::print("median ratio {:.1f}\n", bench::median(ratios));
}
