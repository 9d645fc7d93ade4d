// The time of everything in a block except GEMMs with weights, on one thread: the passes over a microbatch, and AdamW.
//   passes_bench [WIDTH] [CONTEXT] [ROUNDS] [SEQUENCES]
// Heads of 64. Every round times each pass once, with cold caches. Prints medians in milliseconds of processor time,
// and nanoseconds per element computed. Attention includes its matrix products; its softmax is also timed alone, causal
// and block by block, as attention calls it.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "gyre/kernels/activation.h"
#include "gyre/kernels/attention.h"
#include "gyre/kernels/attention_blocks.h"
#include "gyre/kernels/attention_softmax.h"
#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/layer_norm.h"
#include "gyre/optim/parameter/adam_kernel.h"
#include "gyre/tensors/host_memory.h"
#include "gyre/tensors/thread_count.h"
#include "timing.h"

namespace {

using namespace gyre;

struct Pass {
  std::string name;
  double elements;
  std::function<void()> run;
  std::vector<double> seconds = {};
};

// The softmax of all blocks of all heads, and its backward, which recomputes the probabilities.
struct Softmax {
  int64_t context, heads;
  double scale = attention_scale(64);
  std::vector<c10::BFloat16> products, scores, grad;
  std::vector<float> scratch;
  std::vector<cpu::SoftmaxRow> rows;
  Softmax(int64_t context_length, int64_t head_count)
      : context(context_length),
        heads(head_count),
        products(static_cast<size_t>(kBlockQueries * context_length)),
        scores(products.size()),
        grad(products.size()),
        scratch(static_cast<size_t>(cpu::whole_lanes(context_length))),
        rows(static_cast<size_t>(context_length)) {
    const at::Tensor random = at::randn({static_cast<int64_t>(products.size())}).mul_(8).to(at::kBFloat16);
    std::copy_n(random.data_ptr<c10::BFloat16>(), products.size(), products.begin());
  }
  void forward() {
    for (int64_t head = 0; head < heads; ++head) {
      for (const AttentionBlock& block : attention_blocks(context, true)) {
        std::copy_n(products.begin(), block.rows * block.seen, scores.begin());
        cpu::attention_softmax(scores.data(), scratch.data(), rows.data() + block.first, block.rows, block.seen, scale,
                               true);
      }
    }
  }
  void backward() {
    for (int64_t head = 0; head < heads; ++head) {
      for (const AttentionBlock& block : attention_blocks(context, true)) {
        std::copy_n(products.begin(), block.rows * block.seen, scores.begin());
        std::copy_n(products.begin(), block.rows * block.seen, grad.begin());
        cpu::attention_softmax_backward(grad.data(), scores.data(), rows.data() + block.first, block.rows, block.seen,
                                        scale, true);
      }
    }
  }
};

at::Tensor random(at::IntArrayRef sizes) {
  return at::randn(sizes).to(at::kBFloat16);
}

}  // namespace

int main(int argc, char** argv) {
  const gyre::HostMemory memory;  // as in gyre-engine
  use_threads(1);
  const int64_t width = argc > 1 ? std::atoll(argv[1]) : 384;
  const int64_t context = argc > 2 ? std::atoll(argv[2]) : 256;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 21;
  const int64_t sequences = argc > 4 ? std::atoll(argv[4]) : 4;
  const AttentionHeads heads{width / 64, width / 64};

  const at::Tensor x = random({sequences, context, width}), grad = random({sequences, context, width});
  const at::Tensor qkv = random({sequences, context, 3 * width});
  const at::Tensor wide = random({sequences, context, 4 * width}), grad_wide = random({sequences, context, 4 * width});
  const at::Tensor weight = random({width}), bias = random({width});
  const HeadTensors qkv_heads = split_heads(qkv, heads);
  const Attended attended = attention(qkv_heads, true);
  const LayerNormResult normed = layer_norm(x, weight, bias, 1e-5);
  const at::Tensor sum = random({sequences, context, width});
  Softmax softmax(context, sequences * heads.query);
  const auto state = [&] { return at::rand({12 * width * width}); };
  const at::Tensor master = state(), gradient = state(), exp_avg = state(), exp_avg_sq = state();
  const at::Tensor exp_avg_bf16 = exp_avg.to(at::kBFloat16), exp_avg_sq_bf16 = exp_avg_sq.to(at::kBFloat16);
  const AdamFactors factors = adam_factors(0.9, 0.999, 1e-8, 10);
  const at::Tensor version = master.to(at::kBFloat16), other_version = version.clone();
  // As in the first stage's update, where the outgoing version is still being read.
  const SplitWeight halves{version, at::zeros({12 * width * width}, at::kShort), other_version};

  const auto x_elements = static_cast<double>(x.numel()), wide_elements = static_cast<double>(wide.numel());
  const auto scores = static_cast<double>(sequences * heads.query * context * (context + 1) / 2);
  const auto parameters = static_cast<double>(master.numel());
  std::vector<Pass> passes = {
      {"softmax", scores, [&] { softmax.forward(); }},
      {"softmax, backward", scores, [&] { softmax.backward(); }},
      {"attention", scores, [&] { attention(qkv_heads, true); }},
      {"attention, backward", scores, [&] { attention_backward(grad, qkv_heads, attended, true); }},
      {"gelu", wide_elements, [&] { activate(wide, Activation::Gelu); }},
      {"gelu, backward", wide_elements, [&] { activate_backward(grad_wide, wide, Activation::Gelu); }},
      {"tanh's gelu, backward", wide_elements, [&] { activate_backward(grad_wide, wide, Activation::GeluTanh); }},
      {"layer norm", x_elements, [&] { layer_norm(x, weight, bias, 1e-5); }},
      {"layer norm, backward", x_elements, [&] { layer_norm_backward(grad, x, normed.mean, normed.rstd, weight); }},
      {"layer norm, output again", x_elements, [&] { layer_norm_output(x, normed.mean, normed.rstd, weight, bias); }},
      {"sum of branches", x_elements, [&] { sum.add_(x); }},
      {"AdamW, a block", parameters, [&] { adamw_step(master, gradient, exp_avg, exp_avg_sq, factors, 1e-3, 0, 0.5); }},
      {"AdamW, in halves", parameters,
       [&] { adamw_step(halves, gradient, exp_avg, exp_avg_sq, factors, 1e-3, 0, 0.5); }},
      {"the same, bf16 moments", parameters,
       [&] { adamw_step(halves, gradient, exp_avg_bf16, exp_avg_sq_bf16, factors, 1e-3, 0, 0.5); }},
  };
  constexpr size_t kLine = 64, kMoreThanCaches = size_t{256} << 20;
  std::vector<char> other(kMoreThanCaches);
  for (int round = -1; round < rounds; ++round) {
    for (Pass& pass : passes) {
      for (size_t i = 0; i < other.size(); i += kLine) ++other[i];
      const double begin = bench::thread_seconds();
      pass.run();
      if (round >= 0) pass.seconds.push_back(bench::thread_seconds() - begin);
    }
  }
  for (const Pass& pass : passes) {
    const double middle = bench::median(pass.seconds);
    fmt::print("{:<28} {:>8.3f} ms {:>7.3f} ns\n", pass.name, 1e3 * middle, 1e9 * middle / pass.elements);
  }
}
