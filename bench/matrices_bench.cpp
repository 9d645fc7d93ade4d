// GEMMs of bf16 matrices on one thread: by gyre's kernels, by oneDNN on the same row-major matrices, and by libtorch.
//   matrices_bench [WIDTH] [ROUNDS] [ROWS]
// For the four matrices of a block of WIDTH and for a head with a vocabulary of 8,192: forward, dgrad, and wgrad added
// to an fp32 gradient. All take turns in every round, each time with other matrices, so that these come from memory, as
// in training. Prints medians in milliseconds of processor time.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "gyre/kernels/bf16/product.h"
#include "gyre/kernels/linear.h"
#include "gyre/kernels/onednn/product.h"
#include "gyre/tensors/host_memory.h"
#include "gyre/tensors/thread_count.h"
#include "timing.h"

namespace {

using namespace gyre;
using bf16::Kind;
using bf16::Product;

constexpr size_t kSets = 6;  // sets of matrices, used in turn

struct Matrices {
  at::Tensor x, weight, y, grad_x, grad_weight;
  Matrices(int64_t rows, int64_t in, int64_t out)
      : x(at::randn({rows, in}).to(at::kBFloat16)),
        weight(at::randn({out, in}).to(at::kBFloat16)),
        y(at::randn({rows, out}).to(at::kBFloat16)),
        grad_x(at::empty_like(x)),
        grad_weight(at::zeros({out, in})) {}
};

void run_by_onednn(const Product& p, const void* first, const void* second, void* result) {
  const auto *a = static_cast<const uint16_t*>(first), *b = static_cast<const uint16_t*>(second);
  if (p.kind == Kind::AddedWeight) {
    onednn::multiply_long({p.out, p.in, p.rows}, a, b, /*adds=*/true, static_cast<float*>(result));
  } else if (p.kind == Kind::Forward) {
    onednn::multiply({p.rows, p.out, p.in}, {a, p.in, false}, {b, p.in, true}, nullptr, static_cast<uint16_t*>(result));
  } else {
    onednn::multiply({p.rows, p.in, p.out}, {a, p.out, false}, {b, p.in, false}, nullptr,
                     static_cast<uint16_t*>(result));
  }
}

// One of the implementations.
struct Way {
  std::string name;
  std::function<void(const Product&, const void*, const void*, void*)> run;  // empty: libtorch
};

void multiply(const Way& way, Kind kind, Matrices& matrices) {
  if (!way.run) {
    if (kind == Kind::Forward) portable::linear(matrices.x, matrices.weight, {});
    if (kind == Kind::BackwardInput) portable::linear_backward_input(matrices.y, matrices.weight);
    if (kind == Kind::AddedWeight) portable::linear_backward_weight(matrices.x, matrices.y, matrices.grad_weight);
    return;
  }
  const Product product{kind, matrices.x.size(0), matrices.x.size(1), matrices.weight.size(0)};
  if (kind == Kind::Forward) way.run(product, matrices.x.data_ptr(), matrices.weight.data_ptr(), matrices.y.data_ptr());
  if (kind == Kind::BackwardInput)
    way.run(product, matrices.y.data_ptr(), matrices.weight.data_ptr(), matrices.grad_x.data_ptr());
  if (kind == Kind::AddedWeight)
    way.run(product, matrices.y.data_ptr(), matrices.x.data_ptr(), matrices.grad_weight.data_ptr());
}

void compare(const std::vector<Way>& ways, int64_t rows, int64_t in, int64_t out, int rounds) {
  std::vector<Matrices> sets;
  for (size_t i = 0; i < kSets; ++i) sets.emplace_back(rows, in, out);
  constexpr std::array<Kind, 3> kKinds = {Kind::Forward, Kind::BackwardInput, Kind::AddedWeight};
  constexpr std::array<const char*, 3> kNames = {"forward", "by the input", "by the weights"};
  for (size_t k = 0; k < kKinds.size(); ++k) {
    std::vector<std::vector<double>> seconds(ways.size());
    for (int round = -1; round < rounds; ++round) {  // the first round warms up
      for (size_t w = 0; w < ways.size(); ++w) {
        Matrices& matrices = sets[(static_cast<size_t>(round + 1) * ways.size() + w) % kSets];
        const double begin = bench::thread_seconds();
        multiply(ways[w], kKinds[k], matrices);
        if (round >= 0) seconds[w].push_back(bench::thread_seconds() - begin);
      }
    }
    fmt::print("{:>5} x {:<6} {:<15}", in, out, kNames[k]);
    const double flops = 2.0 * static_cast<double>(rows * in * out);
    for (const auto& way_seconds : seconds) {
      const double middle = bench::median(way_seconds);
      fmt::print("  {:>8.3f} ms {:>5.0f} GFLOP/s", 1e3 * middle, 1e-9 * flops / middle);
    }
    fmt::print("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const gyre::HostMemory memory;  // as in gyre-engine
  use_threads(1);
  const int64_t width = argc > 1 ? std::atoll(argv[1]) : 384;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 21;
  const int64_t rows = argc > 3 ? std::atoll(argv[3]) : 1024;
  std::vector<Way> ways;
  if (bf16::cpu_serves()) {
    ways.push_back({bf16::description(), [](const Product& product, const void* a, const void* b, void* c) {
                      bf16::run(product, a, b, c);
                    }});
  }
  if (onednn::cpu_serves()) {
    ways.push_back({onednn::description(), run_by_onednn});
  }
  ways.push_back({"libtorch", {}});
  fmt::print("{} rows, {} rounds; in turn:", rows, rounds);
  for (const Way& way : ways) fmt::print("  {}", way.name);
  fmt::print("\n");
  for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{
           {width, 3 * width}, {width, width}, {width, 4 * width}, {4 * width, width}, {width, 8192}}) {
    compare(ways, rows, in, out, rounds);
  }
}
