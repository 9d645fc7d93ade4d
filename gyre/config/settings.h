// The tables [pipeline] and [run]. [model], [data] and [optimizer] are declared in the rooms of models, data and
// optimizers.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/core/options.h"
#include "gyre/core/text.h"
#include "gyre/runtime/settings/executor_kind.h"
#include "gyre/schedule/builders.h"
#include "gyre/schedule/limits.h"

namespace gyre {

// Small enough that its product with the longest window fits an int64.
inline constexpr double kMaxUpdates = 1e10;
inline constexpr int64_t kMaxThreadsPerWorker = 1024;

struct PipelineSettings {
  std::string schedule = ScheduleOptions().name;
  int64_t stages = ScheduleOptions().stages;
  int64_t replicas = ScheduleOptions().replicas;
  bool shard_optimizer = ScheduleOptions().shard_optimizer;
  std::string worker_order = "pipelines";
  int64_t microbatch = 8;
  int64_t accumulate = ScheduleOptions().window;
  double tb_over_tf = ScheduleOptions().tb_over_tf;
  std::string weights = "auto";
  bool recompute = false;
  std::string executor = "threads";
  std::string device = "cpu";
  int64_t threads_per_worker = 1;
  bool pin_workers = false;
  double stall_seconds = 60;
  KindTables own = KindTables::of(schedule_kinds());

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("schedule", self.schedule, Range{},
          fmt::format("{}, or the path of a schedule file", join(schedule_names(), ", ")).c_str());
    visit("stages", self.stages, between(1, kMostStages),
          fmt::format("number of stages, at most 2 x layers + 2 (a block can be divided in two). Each stage has a "
                      "worker of its own; with {} several stages share one",
                      schedules_with_stages_sharing_workers())
              .c_str());
    visit("replicas", self.replicas, between(1, kMostStages),
          "copies of the whole pipeline, each on its own workers (data parallelism). An update takes microbatch x "
          "accumulate x replicas sequences");
    visit("shard_optimizer", self.shard_optimizer, Range{},
          "divide the optimizer state of each stage among the replicas; each updates its share of the stage's matrices "
          "(ZeRO stage 1). false: the first replica keeps and updates everything. The results are the same to the bit");
    visit("worker_order", self.worker_order, one_of({"pipelines", "stages"}),
          "which workers have consecutive numbers, and so share a process or a host. pipelines: those of one pipeline; "
          "stages: the replicas of one stage");
    visit("microbatch", self.microbatch, between(1, 1 << 20), "sequences in a microbatch");
    visit("accumulate", self.accumulate, between(1, kMostWindow),
          "microbatches of each replica whose gradients are added up for an update: the window");
    visit("tb_over_tf", self.tb_over_tf, between(kLeastRatio, kMostRatio),
          "time of a backward divided by that of a forward; schedules that search for an order assume it");
    visit("weights", self.weights, one_of(weight_choices()),
          "which version of the weights a backward reads. stash: the one that its forward read; latest: forward and "
          "backward read the newest; predict: both read the version predicted for the time when the gradient is "
          "applied, after the stage's longest delay; corrected: as latest, but the backward reads an estimate of the "
          "forward's version. auto: the "
          "optimizer's policy if it has one, else the schedule's");
    visit(
        "recompute", self.recompute, Range{},
        "keep only the inputs of groups of layers, and repeat the forward of each group in the backward: up to a third "
        "more computation for less memory. The groups are those with which a stage needs least memory, for what its "
        "layers save and for the microbatches that the schedule has in flight there");
    visit(
        "executor", self.executor, one_of(executor_kinds().names()),
        "replay: one thread runs all workers in turn; threads: a thread for each worker; processes: the same, with the "
        "workers divided among the processes that a launcher has started. Under a launcher, threads means processes");
    visit(
        "device", self.device, Range{},
        "where workers compute. cpu; cuda: all GPUs of the host, divided among its processes and their workers; or one "
        "GPU for all workers, such as cuda:0. On another device the results differ in their last bits");
    visit("threads_per_worker", self.threads_per_worker, between(1, kMaxThreadsPerWorker),
          "threads for the operations of each worker: matrix products, attention, and long passes over activations and "
          "weights. Another number may change the last bits of the results");
    visit("pin_workers", self.pin_workers, Range{},
          "pin the threads of each worker to threads_per_worker cores of its own; if there are too few cores, workers "
          "share them. Do not use it if other programs or other runs are on the same host");
    visit("stall_seconds", self.stall_seconds, between(0.01, 1e9),
          "seconds without progress that are taken for a stall (executor threads or processes). If all workers wait "
          "for so long, the run ends. If a worker is inside one action for so long, it is reported, and the run waits "
          "for it. A drain after a signal is given up if no action finishes for ten times as long");
  }
  bool operator==(const PipelineSettings&) const = default;
};

struct RunSettings {
  int64_t updates = 1000;
  int64_t seed = 1;
  std::string precision = "bf16";
  int64_t eval_every = 0;
  int64_t eval_batches = 20;
  int64_t checkpoint_every = 0;
  double checkpoint_minutes = 10;
  bool checkpoint_background = true;
  int64_t keep_checkpoints = 3;
  int64_t keep_every = 0;
  bool shared_directory = true;
  std::vector<int64_t> drains;
  std::string init_from;
  bool tensorboard = false;
  std::string prometheus;
  double live_seconds = 1;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("updates", self.updates, between(1, kMaxUpdates), "number of updates in the run");
    visit("seed", self.seed, at_least(0), "random seed of the initial weights, the batches and dropout");
    visit("precision", self.precision, one_of({"fp32", "bf16"}),
          "type of the computation; the master weights are always fp32");
    visit("eval_every", self.eval_every, between(0, kMaxUpdates), "updates between evaluations; 0: no evaluation");
    visit("eval_batches", self.eval_batches, between(1, kMaxUpdates), "microbatches in an evaluation, at most");
    visit("checkpoint_every", self.checkpoint_every, between(0, kMaxUpdates),
          "updates between checkpoints; 0: checkpoints only by time and at the end");
    visit("checkpoint_minutes", self.checkpoint_minutes, between(0, 1e6),
          "a checkpoint is made when so many minutes have passed since the last one, of any kind; 0: none by time. The "
          "updates at which such a checkpoint drained the pipeline are recorded, see drains");
    visit("checkpoint_background", self.checkpoint_background, Range{},
          "write checkpoints while training goes on, from a copy in memory, if there is room for it; otherwise "
          "training waits for the disk");
    visit("keep_checkpoints", self.keep_checkpoints, between(0, 1'000'000),
          "how many of the newest checkpoints to keep; 0: all");
    visit("keep_every", self.keep_every, between(0, kMaxUpdates),
          "keep the checkpoints of all updates that are multiples of this number too, whatever keep_checkpoints is; 0: "
          "no others");
    visit("shared_directory", self.shared_directory, Range{},
          "whether all processes see the same run directory. false: each host may have its own, which holds the parts "
          "of the checkpoints that the host's processes write");
    visit("drains", self.drains, between(1, kMaxUpdates),
          "additional updates after which the pipeline drains. With the drains that another run has recorded in its "
          "metrics, and checkpoint_minutes = 0, that run is repeated to the bit");
    visit("init_from", self.init_from, Range{},
          "a run, or one of its checkpoints, from which to take the initial weights; the state of the optimizer is "
          "new. Stages and schedule may differ, [model] must be the same. Empty: random weights");
    visit("tensorboard", self.tensorboard, Range{},
          "also write what metrics.jsonl has as TensorBoard event files, in tensorboard/ of the run's directory");
    visit("prometheus", self.prometheus, Range{},
          "text file that always has the latest metrics, for Prometheus: NAME.prom in the directory of node-exporter's "
          "textfile collector. Empty: none");
    visit("live_seconds", self.live_seconds, between(0, 1e9),
          "seconds between updates of live.json, which gyre top shows; 0: no live.json");
  }
  bool operator==(const RunSettings&) const = default;
};

}  // namespace gyre
