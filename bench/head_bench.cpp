// What computing the logits in pieces of rows costs, and how much memory it saves: the output matrix with its loss in
// bf16, forward and backward of a microbatch, with pieces of several sizes in turn and with all rows at once.
//   head_bench [WIDTH] [VOCABULARY] [ROWS] [ROUNDS]
// Processor time on one thread. "peak": of tensors, beyond weights, gradients and the input. "default": as in training.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gyre/model/sublayers/output_loss.h"
#include "gyre/tensors/host_memory.h"
#include "gyre/tensors/thread_count.h"
#include "support.h"

namespace {

using namespace gyre;

struct Sizes {
  int64_t width = 768, vocabulary = 50257, rows = 8192;
};

class Head {
 public:
  Head(const Sizes& sizes, int64_t rows_at_once)
      : output_(parameters_, "output", options(sizes), rows_at_once),
        name_(rows_at_once == 0 ? "default" : std::to_string(rows_at_once)) {}

  void pass(const std::vector<at::Tensor>& weights, const at::Tensor& x, const at::Tensor& targets,
            std::vector<at::Tensor>& gradients) const {
    LayerContext context;
    context.loss_in_backward = true;
    OutputLoss::Kept kept;
    std::vector<char> holds(1);  // as in a window's first microbatch
    output_.forward(weights, x, targets, context, kept);
    output_.backward(weights, at::scalar_tensor(1.0), kept, {gradients, holds});
  }
  const std::string& name() const { return name_; }

  std::vector<double> seconds = {};
  double peak = 0;  // bytes

 private:
  static LinearOptions options(const Sizes& sizes) {
    LinearOptions options;
    options.out = sizes.vocabulary;
    options.in = sizes.width;
    options.bias = false;
    return options;
  }

  ParameterList parameters_;
  OutputLoss output_;
  std::string name_;
};

}  // namespace

int main(int argc, char** argv) {
  HostMemory memory;
  Sizes sizes;
  int64_t rounds = 5;
  int64_t* const given[] = {&sizes.width, &sizes.vocabulary, &sizes.rows, &rounds};
  for (int i = 1; i < argc && i <= 4; ++i) *given[i - 1] = std::atoll(argv[i]);
  for (const int64_t* number : given) {
    if (*number > 0) continue;
    fmt::print(stderr, "head_bench: WIDTH, VOCABULARY, ROWS and ROUNDS are 1 at least\n");
    return 2;
  }
  use_threads(1);
  const auto bf16 = at::TensorOptions().dtype(at::kBFloat16);
  const std::vector<at::Tensor> weights{at::randn({sizes.vocabulary, sizes.width}).mul_(0.02).to(at::kBFloat16)};
  std::vector<at::Tensor> gradients{at::zeros({sizes.vocabulary, sizes.width})};
  const at::Tensor x = at::randn({sizes.rows, sizes.width}, bf16);
  const at::Tensor targets = at::randint(sizes.vocabulary, {sizes.rows}, at::kLong);

  std::vector<Head> heads;
  for (const int64_t rows : {int64_t{512}, int64_t{1024}, int64_t{2048}, int64_t{4096}, int64_t{0}, sizes.rows}) {
    if (rows <= sizes.rows) heads.emplace_back(sizes, rows);
  }
  for (int64_t round = 0; round <= rounds; ++round) {
    for (Head& head : heads) {
      memory.forget_peak();
      const size_t before = memory.bytes().live;
      const double start = bench::thread_seconds();
      head.pass(weights, x, targets, gradients);
      if (round > 0) head.seconds.push_back(bench::thread_seconds() - start);  // round 0 warms up
      head.peak = static_cast<double>(memory.bytes().peak - before);
    }
  }
  const double all = bench::median(heads.back().seconds);
  fmt::print("{:>14} {:>10} {:>12} {:>9}\n", "rows at once", "ms", "of all rows'", "peak, MB");
  for (const Head& head : heads) {
    const double time = bench::median(head.seconds);
    fmt::print("{:>14} {:>10.1f} {:>12.3f} {:>9.1f}\n", head.name(), 1e3 * time, time / all, head.peak / 1e6);
  }
}
