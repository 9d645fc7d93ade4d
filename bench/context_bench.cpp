// How time per token and memory grow with the context, compared with the number of multiply-adds. One transformer block
// in bf16, 4,096 tokens per pass: from sixteen sequences of 256 to one of 4,096.
//   context_bench [WIDTH] [ROUNDS]
// Measures forward and backward of every context in turn, ROUNDS times, in processor time. Multiply-adds of a token:
// three times the weights of the block's matrices (forward, and both gradients) and, for attention, of which only the
// causal half is needed, six times half the context times the width. "kept": bytes that a forward saves for its
// backward. "peak": of tensors, beyond weights, gradients and the input.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "gyre/model/gpt.h"
#include "gyre/model/stage.h"
#include "gyre/tensors/flat_buffer.h"
#include "gyre/tensors/host_memory.h"
#include "gyre/tensors/thread_count.h"
#include "support.h"

namespace {

using namespace gyre;

constexpr int64_t kTokens = 4096, kHead = 64;
constexpr int64_t kContexts[] = {256, 512, 1024, 2048, 4096};

class Block {
 public:
  Block(int64_t width, int64_t context)
      : stage_(block(width, context), 1),
        weights_(make_flat_buffer(stage_.parameters(), at::kBFloat16, at::kCPU)),
        gradients_(make_flat_buffer(stage_.parameters(), at::kFloat, at::kCPU)),
        input_(at::randn({kTokens / context, context, width}).to(at::kBFloat16)) {
    for (size_t i = 0; i < weights_.tensors.size(); ++i) {
      weights_.tensors[i].copy_(initial_value(stage_.parameters()[i], 1));
    }
  }

  void pass() {
    StageSaved saved;
    const at::Tensor output = stage_.forward(weights_.tensors, input_, {}, saved);
    kept_bytes_ = saved_bytes(saved);
    stage_.backward(weights_.tensors, output, saved, gradients_.tensors);
  }
  int64_t kept_bytes() const { return kept_bytes_; }

 private:
  static Layers block(int64_t width, int64_t context) {
    ModelSettings gpt;
    gpt.layers = 1;
    gpt.width = width;
    gpt.heads = width / kHead;
    gpt.context = context;
    gpt.vocabulary = 2;
    const Layers layers = build_gpt(gpt);
    return {layers.begin() + 1, layers.end() - 1};  // without embedding and head
  }

  Stage stage_;
  FlatBuffer weights_, gradients_;
  at::Tensor input_;
  int64_t kept_bytes_ = 0;
};

// Multiply-adds per token.
double multiply_adds(int64_t width, int64_t context) {
  const auto w = static_cast<double>(width), c = static_cast<double>(context);
  return 3 * 12 * w * w + 6 * c / 2 * w;
}

struct Measured {
  int64_t context;
  std::unique_ptr<Block> block;
  std::vector<double> seconds = {};
  double peak = 0;  // bytes
};

void measure(Measured& measured, HostMemory& memory) {
  memory.forget_peak();
  const size_t before = memory.bytes().live;
  const double start = bench::thread_seconds();
  measured.block->pass();
  measured.seconds.push_back(bench::thread_seconds() - start);
  measured.peak = static_cast<double>(memory.bytes().peak - before);
}

void print(const std::vector<Measured>& all, int64_t width) {
  const auto time = [](const Measured& measured) { return bench::median(measured.seconds); };
  const Measured& shortest = all.front();
  fmt::print("{:>8} {:>16} {:>7} {:>10} {:>6} {:>9} {:>9}\n", "context", "us of a token", "growth", "products'",
             "ratio", "kept, MB", "peak, MB");
  for (const Measured& measured : all) {
    const double growth = time(measured) / time(shortest),
                 count = multiply_adds(width, measured.context) / multiply_adds(width, shortest.context);
    fmt::print("{:>8} {:>16.2f} {:>7.2f} {:>10.2f} {:>6.2f} {:>9.1f} {:>9.1f}\n", measured.context,
               1e6 * time(measured) / static_cast<double>(kTokens), growth, count, growth / count,
               static_cast<double>(measured.block->kept_bytes()) / 1e6, measured.peak / 1e6);
  }
}

}  // namespace

int main(int argc, char** argv) {
  HostMemory memory;
  const int64_t width = argc > 1 ? std::atoll(argv[1]) : 384;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  if (width < kHead || width % kHead != 0 || rounds < 1) {
    fmt::print(stderr, "context_bench: WIDTH is a multiple of {}, ROUNDS 1 at least\n", kHead);
    return 2;
  }
  use_threads(1);
  std::vector<Measured> all;
  for (const int64_t context : kContexts) all.push_back({context, std::make_unique<Block>(width, context)});
  for (Measured& measured : all) measured.block->pass();  // warms up
  for (int round = 0; round < rounds; ++round) {
    for (Measured& measured : all) measure(measured, memory);
  }
  print(all, width);
}
