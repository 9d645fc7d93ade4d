// How close gyre comes to the machine's upper bound, and how much faster it is than a plain PyTorch loop: a GPT of
// 20.6M parameters, trained with AdamW and with basis rotation at 1,024 and 4,096 tokens per update.
//   tiny20 [--rounds N] [--microbatches N] [--accumulate A...] [--llama]
//          [--width W --layers L --heads H --context C --vocabulary V --microbatch M] [--stages S]
//          [--fp32] [--device NAME [--peak TFLOPS]] [--python PYTHON] [--compiled]
// Every round measures each of them once, between two measurements of the roofline (the matrix products of a microbatch
// with oneDNN, on packed matrices and as many threads as there are workers, and one pass of AdamW over the bytes of an
// update). Each is compared with the mean of the two, in clock time and in processor time, which other programs disturb
// less. The PyTorch loop has as many threads as there are workers; with --compiled, it goes through torch.compile and
// its AdamW is fused. Prints every round, then medians, then a breakdown of the time by kind of work, and the peak
// memory of a process that does nothing else. With --device, the workers and a compiled PyTorch loop compute on that
// device, and --peak, what the device can do in bf16, takes the place of the roofline.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gyre/build/balance.h"
#include "gyre/core/error.h"
#include "gyre/kernels/linear.h"
#include "gyre/model/gpt.h"
#include "gyre/optim/settings/basis_rotation_settings.h"
#include "gyre/plan/partition.h"
#include "gyre/runtime/executor.h"
#include "gyre/schedule/builders.h"
#include "gyre/tensors/device.h"
#include "gyre/tensors/explain_torch.h"
#include "gyre/tensors/host_memory.h"
#include "process.h"
#include "support.h"
#include "tiny20/breakdown.h"
#include "tiny20/roofline.h"

namespace gyre::bench {
namespace {

struct Arm {
  std::string optimizer;
  int64_t accumulate;  // microbatches of an update
};
// Updates to warm up a run: bases have been refreshed once by then, and are refreshed again with the 20th update.
constexpr int64_t kWarm = 16;

Layers layers_of(const Shape& shape) {
  return shape.llama ? build_llama({shape.model(), {}}) : build_gpt(shape.model());
}

// A run that continues from one measurement to the next.
class Training {
 public:
  Training(const Shape& shape, const Arm& arm)
      : pipeline_(make_pipeline(shape, arm)), batches_(shape.microbatch, shape.context, shape.vocabulary), arm_(arm) {}

  SegmentReport run(int64_t microbatches) {
    Segment segment;
    segment.schedule = &pipeline_.schedule();
    segment.batches = &batches_;
    segment.first_update = updates_;
    segment.first_microbatch = updates_ * arm_.accumulate;
    segment.microbatches = microbatches;
    Silent observer;
    SegmentReport report = make_executor("threads")->run(pipeline_, segment, observer);
    updates_ += microbatches / arm_.accumulate;
    return report;
  }
  // With many microbatches per update this many updates would take too long, so it warms up with short updates.
  void warm_up(const Shape& shape) {
    if (arm_.accumulate <= 4) {
      run(kWarm * arm_.accumulate);
      return;
    }
    Training brief(shape, {arm_.optimizer, 1});
    brief.run(kWarm);
    pipeline_.restore(brief.pipeline_.weights(), brief.pipeline_.optimizer_state(), kWarm);
    updates_ = kWarm;
  }
  Roofline::Seconds measure(int64_t microbatches) {
    const double processor = processor_seconds();
    const SegmentReport report = run(microbatches);
    return {report.seconds, processor_seconds() - processor};
  }
  const Arm& arm() const { return arm_; }
  int64_t parameters() const { return pipeline_.parameter_count(); }

 private:
  static Pipeline make_pipeline(const Shape& shape, const Arm& arm) {
    const Layers layers = layers_of(shape);
    RuntimeOptions options;
    options.compute = shape.fp32 ? at::kFloat : at::kBFloat16;
    options.clip = 1;
    options.recompute = shape.recompute;
    options.learning_rate = [](int64_t) { return 1e-4; };
    const at::Device device = device_named(shape.device);
    if (has_streams(device)) options.devices.assign(static_cast<size_t>(shape.workers), device);
    OptimizerConfig optimizer;
    optimizer.kind = arm.optimizer;
    optimizer.bf16_moments = shape.bf16_moments;
    if (arm.optimizer == "basis-rotation") optimizer.own.edit<BasisRotationSettings>().refresh_lag = shape.refresh_lag;
    const BalancedWork work{.tokens = shape.rows(), .microbatches = arm.accumulate};
    Schedule schedule = make_schedule({.name = "pipedream", .stages = shape.workers, .window = arm.accumulate});
    const auto ranges = partition_by_cost(layer_costs(layers, optimizer, work), schedule);
    return Pipeline(std::move(schedule), layers, ranges, options, optimizer);
  }

  Pipeline pipeline_;
  RandomTokens batches_;
  Arm arm_;
  int64_t updates_ = 0;
};

// Null if the Python has no torch.
class PyTorch {
 public:
  static std::unique_ptr<PyTorch> start(const Shape& s, const std::string& python, bool compiled) {
    auto result = std::unique_ptr<PyTorch>(new PyTorch(s, python, compiled));
    const auto version = result->peer_.hear();
    if (!version) return nullptr;
    fmt::print("beside it: {}\n", *version);
    return result;
  }
  double tokens_per_second(int64_t accumulate, int64_t microbatches) {
    peer_.say(fmt::format("{} {}", accumulate, microbatches));
    const auto answer = peer_.hear();
    return answer ? static_cast<double>(microbatches * rows_) / std::stod(*answer) : 0;
  }

 private:
  PyTorch(const Shape& s, const std::string& python, bool compiled)
      : peer_({python, GYRE_TINY20_PYTORCH, std::to_string(s.layers), std::to_string(s.width), std::to_string(s.heads),
               std::to_string(s.context), std::to_string(s.vocabulary), std::to_string(s.microbatch), s.device,
               s.fp32 ? "fp32" : "bf16", compiled ? "compiled" : "plain"},
              {{"OMP_NUM_THREADS", std::to_string(s.workers)}, {"OMP_WAIT_POLICY", "passive"}}),
        rows_(s.rows()) {}

  Peer peer_;
  int64_t rows_;
};

std::string name_of(const Arm& arm, const Shape& shape) {
  return fmt::format("{} {}", arm.optimizer, arm.accumulate * shape.rows());
}

// The part of actions' time that belongs to no operation or kernel is dispatch and allocation; the part of workers'
// time that belongs to no action is waiting.
void print_breakdown(const Shape& shape, const Arm& arm, int64_t microbatches) {
  Training training(shape, arm);
  training.run(2 * arm.accumulate);
  KindSeconds kinds;
  SegmentReport report;
  {
    const Breakdown breakdown;
    report = training.run(microbatches);
    kinds = breakdown.seconds();
  }
  const double whole = report.seconds * shape.workers;
  double busy = 0, known = 0;
  for (const WorkerReport& worker : report.workers) busy += worker.busy_seconds;
  for (const auto& [name, seconds] : kinds) known += seconds;
  kinds.emplace_back("dispatch, allocation, links", busy - known);
  kinds.emplace_back("waiting", whole - busy);
  fmt::print("\n{}, of all workers' time in a segment of {} microbatches ({:.1f} s):\n", name_of(training.arm(), shape),
             microbatches, report.seconds);
  for (const auto& [name, seconds] : kinds) fmt::print("  {:<28} {:>6.1f} %\n", name, 100 * seconds / whole);
}

struct Flags {
  int rounds = 5;
  std::vector<int64_t> accumulate = {1, 4};  // microbatches of an update
  int64_t microbatches = 32;
  bool pytorch = true, compiled = false, rotation = true, rounds_only = false, breakdown_only = false;
  std::string python = "/usr/bin/python3";  // Debian's
  std::string memory_of;                    // the name of an arm: run it and nothing else
  double peak = 0;                          // of the device, in 10^12 bf16 operations a second
};

void print_memory(const Shape& s, const std::vector<Arm>& arms) {
  for (const Arm& arm : arms) {
    std::vector<std::string> command = {"/proc/self/exe",
                                        "--memory-of",
                                        name_of(arm, s),
                                        s.llama ? "--llama" : "--no-llama",
                                        s.fp32 ? "--fp32" : "--bf16",
                                        s.bf16_moments ? "--bf16-moments" : "--fp32-moments",
                                        s.recompute ? "--recompute" : "--no-recompute"};
    command.insert(command.end(), {"--accumulate", std::to_string(arm.accumulate)});
    Shape::each_number(s, [&](const char* flag, auto number, const char*) {
      command.insert(command.end(), {flag, std::to_string(number)});
    });
    Peer process(command, {});
    fmt::print("peak memory, {:<22} {}\n", name_of(arm, s), process.hear().value_or("not known: it failed"));
  }
}

// This process's peak memory, with the peak of its large tensors, their heap, and the pages of files. The latter are
// libraries: other processes share them, and the system can drop them.
std::string peak_memory() {
  std::map<std::string, double> kilobytes;
  std::ifstream status("/proc/self/status");
  for (std::string key, line; status >> key && std::getline(status, line);) {
    if (key == "VmHWM:" || key == "RssFile:") kilobytes[key] = std::stod(line);
  }
  const HostMemory::Bytes bytes = HostMemory::of_process().value_or(HostMemory::Bytes());
  const auto mb = [](size_t count) { return static_cast<double>(count) / 1e6; };
  return fmt::format("{:.0f} MB (tensors {:.0f}, their heap {:.0f}, libraries' files {:.0f})",
                     kilobytes["VmHWM:"] * 1024 / 1e6, mb(bytes.peak), mb(bytes.held),
                     kilobytes["RssFile:"] * 1024 / 1e6);
}

std::vector<Arm> arms_of(const Flags& flags) {
  std::vector<Arm> arms;
  for (const char* optimizer : {"adamw", "basis-rotation"}) {
    for (const int64_t accumulate : flags.accumulate) {
      if (optimizer == std::string("adamw") || flags.rotation) arms.push_back({optimizer, accumulate});
    }
  }
  return arms;
}

void measure(const Shape& shape, const Flags& flags) {
  const std::vector<Arm> arms = arms_of(flags);
  std::vector<std::unique_ptr<Training>> trainings;
  for (const Arm& arm : arms) trainings.push_back(std::make_unique<Training>(shape, arm));
  const int64_t parameters = trainings[0]->parameters();
  fmt::print("{:.1f}M parameters, width {}, {} stages, {} microbatches of {} tokens a measurement\n",
             static_cast<double>(parameters) / 1e6, shape.width, shape.workers, flags.microbatches, shape.rows());
  const bool on_host = !has_streams(device_named(shape.device));
  const auto roofline = on_host ? make_roofline(shape, parameters) : nullptr;
  if (on_host && !roofline)
    fmt::print("no roofline: oneDNN is not in the build, or cannot compute these products on this CPU\n");
  const bool compiled = flags.compiled || !on_host;
  const auto pytorch = flags.pytorch && !shape.llama ? PyTorch::start(shape, flags.python, compiled) : nullptr;
  if (flags.pytorch && !shape.llama && !pytorch) fmt::print("no PyTorch beside it: {} has no torch\n", flags.python);
  const auto by_pytorch = [&](int64_t accumulate) {
    return pytorch->tokens_per_second(accumulate, std::max(accumulate, flags.microbatches / 2));
  };
  for (const auto& training : trainings) training->warm_up(shape);
  for (const int64_t accumulate : flags.accumulate) {
    if (pytorch) by_pytorch(accumulate);  // warms it up
  }

  std::vector<std::vector<double>> tokens(arms.size()), of_roofline(arms.size()), of_processor(arms.size()),
      of_pytorch(arms.size());
  for (int round = 1; round <= flags.rounds; ++round) {
    std::map<int64_t, double> pytorch_tokens;  // by microbatches of an update
    for (const int64_t accumulate : flags.accumulate) {
      if (!pytorch) break;
      pytorch_tokens[accumulate] = by_pytorch(accumulate);
      fmt::print("round {}  {:<22} {:>7.0f} tokens/s\n", round, fmt::format("PyTorch {}", accumulate * shape.rows()),
                 pytorch_tokens[accumulate]);
    }
    Roofline::Times before = roofline ? roofline->measure() : Roofline::Times{};
    for (size_t i = 0; i < arms.size(); ++i) {
      const Roofline::Seconds measured = trainings[i]->measure(flags.microbatches);
      tokens[i].push_back(static_cast<double>(flags.microbatches * shape.rows()) / measured.wall);
      fmt::print("round {}  {:<22} {:>7.0f} tokens/s", round, name_of(arms[i], shape), tokens[i].back());
      if (roofline) {
        const Roofline::Times after = roofline->measure();
        const auto count = static_cast<double>(flags.microbatches);
        const double updates = count / static_cast<double>(arms[i].accumulate);
        const Roofline::Seconds least = (before.of(count, updates) + after.of(count, updates)) * 0.5;
        of_roofline[i].push_back(least.wall / measured.wall);
        of_processor[i].push_back(least.processor / measured.processor);
        fmt::print("  {:.3f} of the roofline, {:.3f} by processor time (products {:.1f} ms, update {:.1f} ms)",
                   of_roofline[i].back(), of_processor[i].back(), 1e3 * before.microbatch.wall,
                   1e3 * before.update.wall);
        before = after;
      }
      if (flags.peak > 0) {
        fmt::print("  {:.3f} of the peak", tokens[i].back() * shape.operations() / (flags.peak * 1e12));
      }
      if (pytorch) {
        of_pytorch[i].push_back(tokens[i].back() / pytorch_tokens[arms[i].accumulate]);
        fmt::print("  {:.2f} of PyTorch", of_pytorch[i].back());
      }
      fmt::print("\n");
      std::fflush(stdout);
    }
  }
  fmt::print("\nmedians of {} rounds   tokens/s  of the roofline  by processor time  of PyTorch\n", flags.rounds);
  for (size_t i = 0; i < arms.size(); ++i) {
    const auto text = [](const std::vector<double>& values) {
      return values.empty() ? std::string("-") : fmt::format("{:.3f}", median(values));
    };
    fmt::print("{:<22} {:>8.0f}  {:>15}  {:>17}  {:>10}\n", name_of(arms[i], shape), median(tokens[i]),
               text(of_roofline[i]), text(of_processor[i]), text(of_pytorch[i]));
  }
  if (flags.rounds_only || !on_host) return;
  trainings.clear();
  for (const Arm& arm : arms) print_breakdown(shape, arm, flags.microbatches);
  fmt::print("\n");
  print_memory(shape, arms);
}

void run(const Shape& shape, const Flags& flags) {
  if (has_streams(find_device(device_named(shape.device)))) use_deterministic_functions();  // as a run does
  if (flags.breakdown_only) {
    for (const Arm& arm : arms_of(flags)) print_breakdown(shape, arm, flags.microbatches);
    return;
  }
  if (flags.memory_of.empty()) return measure(shape, flags);
  const std::vector<Arm> arms = arms_of(flags);
  const auto arm = std::ranges::find_if(arms, [&](const Arm& a) { return name_of(a, shape) == flags.memory_of; });
  if (arm == arms.end()) throw InputError(fmt::format("--memory-of {}: there is none of that name", flags.memory_of));
  Training(shape, *arm).run(4 * arm->accumulate);
  fmt::print("{}\n", peak_memory());
}

}  // namespace
}  // namespace gyre::bench

int main(int argc, char** argv) {
  const gyre::HostMemory memory;  // this and the next, as in gyre-engine
  gyre::heed_limit_of_instructions();
  gyre::bench::Shape shape;
  gyre::bench::Flags flags;
  CLI::App app("gyre over the roofline, and over PyTorch");
  app.add_option("--rounds", flags.rounds)->check(CLI::PositiveNumber);
  app.add_option("--microbatches", flags.microbatches, "Of a measurement; a multiple of an update's")
      ->check(CLI::PositiveNumber);
  app.add_option("--accumulate", flags.accumulate, "Microbatches of an update")
      ->check(CLI::PositiveNumber)
      ->expected(1, 9);
  gyre::bench::Shape::each_number(
      shape, [&](const char* flag, auto& number, const char* meaning) { app.add_option(flag, number, meaning); });
  app.add_option("--device", shape.device, "Of all workers, such as cuda:0; neither breakdown nor memory then");
  app.add_option("--peak", flags.peak, "Of the device, in 10^12 bf16 operations a second: prints the share of it");
  app.add_flag("--llama,!--no-llama", shape.llama, "Instead of a GPT; PyTorch has none beside it");
  app.add_flag("--fp32,!--bf16", shape.fp32, "What the model computes in, and PyTorch beside it");
  app.add_flag("--bf16-moments,!--fp32-moments", shape.bf16_moments, "As [optimizer] moments says");
  app.add_flag("--recompute,!--no-recompute", shape.recompute, "As [pipeline] recompute says");
  app.add_option("--python", flags.python, "With torch");
  app.add_flag("--pytorch,!--no-pytorch", flags.pytorch);
  app.add_flag("--compiled", flags.compiled, "PyTorch's loop, by torch.compile; on a device it always is");
  app.add_flag("--rotation,!--no-rotation", flags.rotation);
  app.add_flag("--rounds-only", flags.rounds_only, "Neither breakdown nor memory");
  app.add_flag("--breakdown-only", flags.breakdown_only);
  app.add_option("--memory-of", flags.memory_of, "Run this one, \"adamw 1024\", and nothing else");
  CLI11_PARSE(app, argc, argv);
  try {
    gyre::bench::run(shape, flags);
  } catch (const gyre::InputError& error) {
    fmt::print(stderr, "tiny20: {}\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "tiny20: {}\n", gyre::explain_torch(error));
    return 1;
  }
}
