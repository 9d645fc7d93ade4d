// What bf16 costs in loss, for each kind of basis rotation's matrix products: a noisy quadratic of known curvature, f =
// tr(W^T A W B) / 2 over a square W, with gradients A W B + 0.3 A^1/2 Z B^1/2 that are DELAY updates old.
//   products_bench [SIZE] [UPDATES] [DELAY]
// A and B have eigenvalues from 1 down to 1 / SPAN in random bases. Prints f after the run (the mean over its last
// tenth, divided by f at the start) for every SPAN, choice of types and two seeds.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <deque>
#include <string>
#include <tuple>
#include <vector>

#include "gyre/optim/config.h"
#include "gyre/optim/learning_rate.h"
#include "gyre/optim/settings/basis_rotation_settings.h"

namespace {

using namespace gyre;

struct Side {
  at::Tensor matrix, root;
};
Side side(int64_t size, double span) {
  const at::Tensor q = std::get<0>(at::linalg_qr(at::randn({size, size})));
  const at::Tensor eigenvalues = at::logspace(0, -std::log10(span), size, 10, at::kFloat);
  return {(q * eigenvalues).mm(q.t()), (q * eigenvalues.sqrt()).mm(q.t())};
}

double final_loss(const OptimizerConfig& config, int64_t size, double span, int64_t updates, int64_t delay,
                  uint64_t seed) {
  at::manual_seed(seed);
  const Side a = side(size, span), b = side(size, span);
  ParameterSpec spec;
  spec.name = "w";
  spec.shape = {size, size};
  spec.rotate = true;
  const auto optimizer = make_optimizer(config, {spec}, at::kCPU);
  const LearningRateSchedule rate{
      .peak = 1e-2, .warmup = updates / 20, .total = updates, .decay = "cosine", .floor = 0.1};
  const at::Tensor w = at::randn({size, size});
  const auto loss = [&] { return 0.5 * (w * a.matrix.mm(w).mm(b.matrix)).sum(at::kDouble).item<double>(); };
  const double start = loss();
  std::deque<at::Tensor> past = {w.clone()};
  const int64_t tail = updates - updates / 10;
  double sum = 0;
  for (int64_t t = 1; t <= updates; ++t) {
    at::Tensor gradient = a.matrix.mm(past.front()).mm(b.matrix);
    gradient.add_(a.root.mm(at::randn({size, size})).mm(b.root), 0.3);
    UpdateContext context;
    context.update = t;
    context.delay = std::min(t - 1, delay);
    context.learning_rate = rate.at(t);
    optimizer->step(std::vector<at::Tensor>{w}, std::vector<at::Tensor>{gradient}, context);
    past.push_back(w.clone());
    if (static_cast<int64_t>(past.size()) > delay + 1) past.pop_front();
    if (t > tail) sum += loss() / start;
  }
  return sum / static_cast<double>(updates - tail);
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  const int64_t size = argc > 1 ? std::atoll(argv[1]) : 256;
  const int64_t updates = argc > 2 ? std::atoll(argv[2]) : 1000;
  const int64_t delay = argc > 3 ? std::atoll(argv[3]) : 7;
  const std::vector<std::tuple<const char*, bool, bool, bool>> arms = {{"all fp32", false, false, false},
                                                                       {"rotation bf16", true, false, false},
                                                                       {"covariance bf16", false, true, false},
                                                                       {"iteration bf16", false, false, true},
                                                                       {"all bf16", true, true, true}};
  fmt::print("size {}, {} updates, delay {}\n{:>8} {:>18} {:>12} {:>12}\n", size, updates, delay, "span", "products",
             "seed 1", "seed 2");
  for (const double span : {1e4, 1e6}) {
    for (const auto& [name, rotation, covariance, iteration] : arms) {
      OptimizerConfig config;
      config.weight_decay = 0;
      config.own = gyre::BasisRotationSettings{.products = rotation ? "bf16" : "fp32",
                                               .covariance_products = covariance ? "bf16" : "fp32",
                                               .iteration_products = iteration ? "bf16" : "fp32"};
      fmt::print("{:>8.0e} {:>18}", span, name);
      for (const uint64_t seed : {1, 2}) {
        fmt::print(" {:>12.4e}", final_loss(config, size, span, updates, delay, seed));
        std::fflush(stdout);
      }
      fmt::print("\n");
    }
  }
}
