// Each worker's memory as `gyre train` and `gyre plan` predict it, compared with what the worker uses: one worker in a
// process of its own, with made-up messages from the others. Measures the peak bytes of its tensors, and the growth of
// the process from before the worker was made to its peak.
//   memory_bench [CONFIGURATION...]      (default: all)
//   memory_bench KEY=VALUE...            one configuration, with these settings: model.kind='"llama"'
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "gyre/config/config.h"
#include "gyre/kernels/linear.h"
#include "gyre/tensors/host_memory.h"
#include "gyre/train/memory.h"
#include "train/lone_worker.h"

namespace gyre::bench {
namespace {

struct Case {
  std::string name;
  std::vector<std::string> settings;  // in addition to kAll
};

// The model of tiny20, and the settings common to all cases.
const std::vector<std::string> kAll = {"model.layers=8",         "model.width=384",
                                       "model.heads=6",          "model.context=256",
                                       "model.vocabulary=8192",  "pipeline.microbatch=4",
                                       "pipeline.stages=2",      "optimizer.kind=\"adamw\"",
                                       "run.precision=\"bf16\"", "optimizer.clip_scope=\"stage\""};
const std::vector<std::string> kLlama = {"model.kind=\"llama\"", "model.llama.key_value_heads=2"};
// With a refresh, which holds most, among the first updates.
const std::vector<std::string> kRotation = {"optimizer.kind=\"basis-rotation\"", "optimizer.basis-rotation.interval=2"};
// An update then holds more than a backward.
const std::vector<std::string> kFewTokens = {"model.context=64", "pipeline.microbatch=1"};

std::vector<std::string> with(std::vector<std::string> settings, const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

const std::vector<Case> kCases = {
    {"pipedream, stash", {}},
    {"pipedream, latest", {"pipeline.weights=\"latest\""}},
    {"pipedream, 4 stages", {"pipeline.stages=4"}},
    {"1f1b", {"pipeline.schedule=\"1f1b\"", "pipeline.accumulate=4"}},
    {"amdp, 4 stages", {"pipeline.schedule=\"amdp\"", "pipeline.stages=4", "pipeline.accumulate=4"}},
    {"1 stage", {"pipeline.stages=1"}},
    {"recompute, 1 stage", {"pipeline.recompute=true", "pipeline.stages=1"}},
    {"recompute, 2 stages", {"pipeline.recompute=true"}},
    {"recompute, 4 stages", {"pipeline.recompute=true", "pipeline.stages=4"}},
    {"basis rotation", kRotation},
    {"bert", {"model.kind=\"bert\""}},
    {"fp32", {"run.precision=\"fp32\""}},
    {"context 1024", {"model.context=1024", "pipeline.microbatch=1"}},
    {"context 2048", {"model.context=2048", "pipeline.microbatch=1"}},
    {"context 4096", {"model.context=4096", "pipeline.microbatch=1"}},
    {"llama", kLlama},
    {"llama, fp32", with(kLlama, {"run.precision=\"fp32\""})},
    {"llama, recompute", with(kLlama, {"pipeline.recompute=true"})},
    {"16 sequences", {"pipeline.microbatch=16"}},
    {"vocabulary 32768", {"model.vocabulary=32768", "pipeline.accumulate=2"}},
    {"vocabulary 32768, tied", {"model.vocabulary=32768", "model.tie=true"}},
    {"zb-h1, 4 stages", {"pipeline.schedule=\"zb-h1\"", "pipeline.stages=4", "pipeline.accumulate=8"}},
    {"pipedream-2bw", {"pipeline.schedule=\"pipedream-2bw\"", "pipeline.accumulate=4"}},
    {"muon, 64 tokens", with(kFewTokens, {"optimizer.kind=\"muon\""})},
    {"basis rotation, 64 tokens", with(kFewTokens, kRotation)},
    {"error feedback, 64 tokens", with(kFewTokens, {"optimizer.kind=\"error-feedback\""})},
    {"predict, 64 tokens", with(kFewTokens, {"pipeline.weights=\"predict\""})},
    {"corrected, 64 tokens", with(kFewTokens, {"pipeline.weights=\"corrected\""})},
};

struct Measured {
  double tensors = 0, process = 0;
};

// A value of /proc/self/status, converted from kB to bytes.
double status(const std::string& wanted) {
  std::ifstream file("/proc/self/status");
  for (std::string key, value; file >> key;) {
    if (key == wanted && file >> value) return std::stod(value) * 1024;
  }
  return 0;
}

// Measures in a child process, since a process's peak cannot be reset.
Measured measure(const Config& config, const Schedule& schedule, int worker) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw RunError("no pipe");
  const pid_t process = fork();
  if (process == 0) {
    HostMemory memory(1);
    Config small = config;  // run first, so that libraries are loaded and code is generated before measuring
    small.model.width = 8 * small.model.heads;
    small.model.context = 64;
    testing_support::run_alone(small, schedule, worker, 2 * schedule.window * schedule.pipelines);
    memory.forget_peak();
    const double before = status("VmRSS:"), live = static_cast<double>(memory.bytes().live);
    const int64_t updates = std::max(6, 2 * schedule.stages);  // some of them while the pipeline is full
    testing_support::run_alone(config, schedule, worker, updates * schedule.window);
    const Measured measured{static_cast<double>(memory.bytes().peak) - live, status("VmHWM:") - before};
    _exit(write(ends[1], &measured, sizeof measured) == sizeof measured ? 0 : 1);
  }
  close(ends[1]);
  Measured measured;
  const bool is_there = read(ends[0], &measured, sizeof measured) == sizeof measured;
  close(ends[0]);
  waitpid(process, nullptr, 0);
  if (!is_there) throw RunError("the worker failed");
  return measured;
}

void run(const Case& test_case) {
  const std::vector<std::string> settings = with(kAll, test_case.settings);
  const Config config = parse_config("[data]\ntokens = \"made up\"\n", "the benchmark", settings);
  const Schedule schedule = build_schedule(config);
  const PredictedMemory predicted = predict_memory(config, schedule);
  for (int worker = 0; worker < schedule.workers; ++worker) {
    const WorkerMemory& memory = predicted.workers[static_cast<size_t>(worker)];
    const auto total = static_cast<double>(memory.total());
    const Measured measured = measure(config, schedule, worker);
    fmt::print("{:<25} worker {}  predicted {:>6.1f} MB  tensors {:>6.1f} MB {:.3f}  process {:>6.1f} MB {:.3f}\n",
               test_case.name, worker, total / 1e6, measured.tensors / 1e6, total / measured.tensors,
               measured.process / 1e6, total / measured.process);
    fmt::print(
        "{:<25} predicted: weights {:.1f}, gradients {:.1f}, received {:.1f}, optimizer {:.1f}, activations {:.1f}, "
        "passing {:.1f} MB\n",
        "", static_cast<double>(memory.weights) / 1e6, static_cast<double>(memory.gradients) / 1e6,
        static_cast<double>(memory.received) / 1e6, static_cast<double>(memory.optimizer) / 1e6,
        static_cast<double>(memory.activations) / 1e6, static_cast<double>(memory.passing) / 1e6);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace gyre::bench

int main(int argc, char** argv) {
  gyre::heed_limit_of_instructions();
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  if (!wanted.empty() && wanted.front().find('=') != std::string::npos) {
    gyre::bench::run({"as given", wanted});
    return 0;
  }
  for (const gyre::bench::Case& test_case : gyre::bench::kCases) {
    const bool is_wanted = wanted.empty() || std::find(wanted.begin(), wanted.end(), test_case.name) != wanted.end();
    if (is_wanted) gyre::bench::run(test_case);
  }
}
