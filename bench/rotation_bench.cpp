// What basis rotation costs: tokens per second of training with it, divided by those with AdamW, for several numbers of
// tokens per update. One transformer block stands for the model (embedding and head, which are not rotated, would only
// improve the ratio).
//   rotation_bench [WIDTH] [ROUNDS] [parts]
// Measures forward and backward of one microbatch, AdamW's update and a whole cycle of rotation's updates with its
// refresh in turn, ROUNDS times. An iteration of n tokens is n / microbatch passes and one update. Times are the
// thread's processor time, which other programs disturb less. A refresh in the background needs passes to run beside:
// for it, iterations of 4096 tokens are measured, and the pass is subtracted.
//   parts: also prints the times of the parts of each method's update
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/model/gpt.h"
#include "gyre/model/stage.h"
#include "gyre/optim/config.h"
#include "gyre/optim/parameter/split_weight.h"
#include "gyre/optim/settings/basis_rotation_settings.h"
#include "gyre/tensors/flat_buffer.h"
#include "gyre/tensors/host_memory.h"
#include "support.h"

namespace {

using Rotation = gyre::BasisRotationSettings;

using namespace gyre;
using bench::median;
using bench::thread_seconds;

constexpr int64_t kContext = 512;
constexpr int64_t kTokens[] = {1024, 4096, 16384, 65536, 131072};

double seconds_of(const std::function<void()>& work) {
  const double start = thread_seconds();
  work();
  return thread_seconds() - start;
}

// While it lives, records the processor seconds of basis rotation's parts, which are named for libtorch's profiler
// (ProfileScope).
class Parts {
 public:
  Parts() {
    seconds().clear();
    at::addGlobalCallback(at::RecordFunctionCallback(&begin, &end).scopes({at::RecordScope::USER_SCOPE}));
  }
  ~Parts() { at::clearGlobalCallbacks(); }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // By name. Static, because callbacks are plain functions.
  static std::map<std::string, double>& seconds() {
    static std::map<std::string, double> seconds;
    return seconds;
  }

 private:
  static constexpr std::string_view kPrefix = "gyre::rotation_";
  struct Start final : at::ObserverContext {
    double at = thread_seconds();
  };
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
    return std::string_view(function.name()).starts_with(kPrefix) ? std::make_unique<Start>() : nullptr;
  }
  static void end(const at::RecordFunction& function, at::ObserverContext* context) {
    if (context == nullptr) return;
    const double taken = thread_seconds() - static_cast<Start*>(context)->at;
    seconds()[function.name() + kPrefix.size()] += taken;
  }
};

class Block {
 public:
  explicit Block(int64_t width) : width_(width), stage_(layers(width), 1) {
    gradients_ = make_flat_buffer(stage_.parameters(), at::kFloat, at::kCPU);
    version_ = make_flat_buffer(stage_.parameters(), at::kBFloat16, at::kCPU);
    rest_ = make_flat_buffer(stage_.parameters(), at::kShort, at::kCPU);
    for (size_t i = 0; i < stage_.parameters().size(); ++i) {
      weights_.push_back({version_.tensors[i], rest_.tensors[i], version_.tensors[i]});
      split(initial_value(stage_.parameters()[i], 1), weights_[i]);
    }
  }

  const std::vector<ParameterSpec>& parameters() const { return stage_.parameters(); }

  void pass(int64_t tokens) {
    const at::Tensor input = at::randn({tokens / kContext, kContext, width_}).to(at::kBFloat16);
    StageSaved saved;
    const at::Tensor output = stage_.forward(version_.tensors, input, {}, saved);
    stage_.backward(version_.tensors, output, saved, gradients_.tensors);
  }

  void update(Optimizer& optimizer, int64_t number) {
    UpdateContext context;
    context.update = number;
    context.learning_rate = 1e-6;
    optimizer.step_split(weights_, gradients_.tensors, context);
  }

 private:
  static Layers layers(int64_t width) {
    ModelSettings gpt;
    gpt.layers = 1;
    gpt.width = width;
    gpt.heads = width / 64;
    gpt.context = kContext;
    gpt.vocabulary = 256;  // only of embedding and head, which are left out
    const Layers all = build_gpt(gpt);
    return {all[1], all[2]};
  }
  int64_t width_;
  Stage stage_;
  FlatBuffer gradients_, version_, rest_;
  std::vector<SplitWeight> weights_;  // as a run in bf16 has them
};

struct Method {
  const char* name;
  OptimizerConfig config;
  std::unique_ptr<Optimizer> optimizer = nullptr;
  int64_t updates = 0;
  std::vector<double> seconds = {};  // per update
  int64_t cycle() const { return config.own.get<Rotation>().interval; }
};

std::vector<Method> methods(int64_t width) {
  std::vector<Method> all;
  OptimizerConfig adamw;
  adamw.kind = "adamw";
  all.push_back({"adamw", adamw});
  all.push_back({"the default", {}});
  OptimizerConfig exact;
  exact.own = Rotation{.products = "fp32", .covariance_products = "fp32", .iteration_products = "fp32"};
  all.push_back({"all products fp32", exact});
  OptimizerConfig bf16;
  bf16.own = Rotation{.products = "bf16", .covariance_products = "bf16", .iteration_products = "bf16"};
  all.push_back({"all products bf16", bf16});
  OptimizerConfig whole;
  whole.own.edit<Rotation>().long_sides = "whole";
  all.push_back({"whole bases", whole});
  OptimizerConfig background = whole;
  background.own.edit<Rotation>().refresh_lag = background.own.edit<Rotation>().interval - 1;
  all.push_back({"refreshed on another core", background});
  OptimizerConfig sketch;
  sketch.own.edit<Rotation>().max_dimension = width;
  sketch.own.edit<Rotation>().sketch = width / 2;
  sketch.own.edit<Rotation>().covariance_every = 5;
  all.push_back({"MLP's long sides sketched", sketch});
  OptimizerConfig rare = sketch;
  rare.own.edit<Rotation>().interval = 50;
  all.push_back({"and refreshed every 50", rare});
  return all;
}

// Runs one cycle of each method's updates, and prints the times of its parts.
void print_parts(Block& block, std::vector<Method>& methods) {
  fmt::print("\nparts of an update, ms (means of a cycle)\n");
  for (Method& method : methods) {
    const Parts parts;
    const double whole = seconds_of([&] {
      for (int64_t i = 0; i < method.cycle(); ++i) block.update(*method.optimizer, ++method.updates);
    });
    const double scale = 1e3 / static_cast<double>(method.cycle());
    double known = 0;
    fmt::print("{:<28}", method.name);
    for (const auto& [part, seconds] : Parts::seconds()) {
      fmt::print(" {} {:.2f},", part, scale * seconds);
      known += seconds;
    }
    fmt::print(" the rest {:.2f}; in all {:.2f}\n", scale * (whole - known), scale * whole);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const gyre::HostMemory memory;  // as in gyre-engine
  at::set_num_threads(1);
  const int64_t width = argc > 1 ? std::atoll(argv[1]) : 384;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  Block block(width);
  auto all = methods(width);
  for (Method& method : all) method.optimizer = make_optimizer(method.config, block.parameters(), at::kCPU);
  std::vector<double> small, large;  // passes of 1024 and of 4096 tokens
  for (int round = 0; round <= rounds; ++round) {
    const double one = seconds_of([&] { block.pass(1024); });
    const double four = seconds_of([&] { block.pass(4096); });
    for (Method& method : all) {
      const int64_t cycle = method.cycle();
      const bool beside = method.config.own.get<Rotation>().refresh_lag > 0;
      const double all_updates = seconds_of([&] {
        for (int64_t i = 0; i < cycle; ++i) {
          if (beside) block.pass(4096);
          block.update(*method.optimizer, ++method.updates);
        }
      });
      if (round > 0) method.seconds.push_back(all_updates / static_cast<double>(cycle) - (beside ? four : 0));
    }
    if (round == 0) continue;  // warms up, and makes the first bases
    small.push_back(one);
    large.push_back(four);
  }
  fmt::print("width {}: 1024 tokens {:.1f} ms, 4096 tokens {:.1f} ms; AdamW's update {:.2f} ms\n", width,
             1e3 * median(small), 1e3 * median(large), 1e3 * median(all[0].seconds));
  fmt::print("{:<28} {:>10}", "tokens/s over AdamW's at", "update, ms");
  for (const int64_t tokens : kTokens) fmt::print(" {:>7}", tokens);
  fmt::print("\n");
  for (const Method& method : all) {
    fmt::print("{:<28} {:>10.2f}", method.name, 1e3 * median(method.seconds));
    for (const int64_t tokens : kTokens) {
      const double passes = tokens == 1024 ? median(small) : median(large) * static_cast<double>(tokens) / 4096;
      fmt::print(" {:>7.3f}", (passes + median(all[0].seconds)) / (passes + median(method.seconds)));
    }
    fmt::print("\n");
  }
  if (argc > 3 && std::string_view(argv[3]) == "parts") print_parts(block, all);
}
