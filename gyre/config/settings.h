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
  bool wait_for_device = true;
  int64_t threads_per_worker = 1;
  bool pin_workers = false;
  double stall_seconds = 60;
  KindTables own = KindTables::of(schedule_kinds());

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("schedule", self.schedule, Range{},
          fmt::format("{}, or the path of a file", join(schedule_names(), ", ")).c_str());
    visit(
        "stages", self.stages, between(1, kMostStages),
        fmt::format("stages; at most 2 x layers + 2, a block being two. One worker each; several on a worker under {}",
                    schedules_with_stages_sharing_workers())
            .c_str());
    visit("replicas", self.replicas, between(1, kMostStages),
          "copies of the whole pipeline, each on workers of its own: data parallelism. An update takes microbatch x "
          "accumulate x replicas sequences");
    visit("shard_optimizer", self.shard_optimizer, Range{},
          "each replica keeps the optimizer of a share of every stage's matrices and updates those (ZeRO stage 1), "
          "instead of the first of all; the bits are the same");
    visit("worker_order", self.worker_order, one_of({"pipelines", "stages"}),
          "which workers are next to each other, and so in one process or on one host: those of one pipeline, or the "
          "replicas of one stage");
    visit("microbatch", self.microbatch, between(1, 1 << 20), "sequences in one microbatch");
    visit("accumulate", self.accumulate, between(1, kMostWindow),
          "microbatches of each replica in one update's window");
    visit("tb_over_tf", self.tb_over_tf, between(kLeastRatio, kMostRatio),
          "time of a backward in forwards, for which schedules that search for an order make it");
    visit("weights", self.weights, one_of(weight_choices()),
          "stash: the backward reads the forward's version; latest: both read the newest; predict: both read the one "
          "predicted for when the gradient is applied; corrected: as latest, and the backward's is moved back to the "
          "forward's. auto: what the schedule or the optimizer was made for");
    visit("recompute", self.recompute, Range{},
          "keep a stage's input alone and repeat its forward before the backward: less memory, a third more work");
    visit("executor", self.executor, one_of(executor_kinds().names()),
          "all workers in one thread; a thread each; or their threads in the processes that a launcher has started, "
          "which is "
          "what threads become there");
    visit("device", self.device, Range{},
          "where workers compute: cpu; cuda, which is all GPUs of the host, shared out over its processes and their "
          "workers; or one for all workers, such as cuda:0. Part of what fixes the bits");
    visit("wait_for_device", self.wait_for_device, Range{},
          "whether a worker waits at the end of each action until its GPU has done it. Then the times of actions, "
          "traces and bubbles are right, and a GPU that hangs is noticed. If false, actions are handed over ahead, and "
          "times are those of handing over. On the CPU it makes no difference");
    visit("threads_per_worker", self.threads_per_worker, between(1, 1024),
          "threads inside each worker's operations; part of what fixes the bits");
    visit("pin_workers", self.pin_workers, Range{},
          "each worker's threads stay on cores of their own, as many as threads_per_worker, by turns where there are "
          "too few; where other programs run, or several runs on one host, leave that to the system");
    visit("stall_seconds", self.stall_seconds, between(0.01, 1e9),
          "all workers waiting for so long ends the run; a worker inside one action for so long is reported, and "
          "waited for. "
          "A drain after a signal is given up when nothing has finished for "
          "ten times as long (executor threads)");
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
    visit("updates", self.updates, between(1, kMaxUpdates), "updates in the whole run");
    visit("seed", self.seed, at_least(0), "fixes weights, batches and dropout");
    visit("precision", self.precision, one_of({"fp32", "bf16"}), "type of compute; masters are fp32");
    visit("eval_every", self.eval_every, between(0, kMaxUpdates), "updates between evaluations; 0: none");
    visit("eval_batches", self.eval_batches, between(1, kMaxUpdates), "microbatches of one evaluation, at most");
    visit("checkpoint_every", self.checkpoint_every, between(0, kMaxUpdates),
          "updates between checkpoints; 0: only at the end, and by time");
    visit(
        "checkpoint_minutes", self.checkpoint_minutes, between(0, 1e6),
        "minutes since the last checkpoint, of whatever kind, after which one is made; 0: not by time. Where the clock "
        "drained the pipeline is recorded: see drains");
    visit("checkpoint_background", self.checkpoint_background, Range{},
          "whether checkpoints are written beside training, from a copy in memory, where there is room for it; else "
          "training waits for the disk");
    visit("keep_checkpoints", self.keep_checkpoints, between(0, 1'000'000), "newest checkpoints that are kept; 0: all");
    visit("keep_every", self.keep_every, between(0, kMaxUpdates),
          "checkpoints of its multiples, in updates, are kept whatever keep_checkpoints is; 0: no others");
    visit("shared_directory", self.shared_directory, Range{},
          "whether all processes of a run see one run directory; false: each host may have its own, with the parts of "
          "checkpoints that its processes write");
    visit("drains", self.drains, between(1, kMaxUpdates),
          "further updates after which the pipeline drains: with those that a run's metrics record, and "
          "checkpoint_minutes = 0, it is repeated to the bit");
    visit("init_from", self.init_from, Range{},
          "run, or one checkpoint of it, whose weights this one begins with, its optimizer's state being fresh; of any "
          "stages and schedule, but the same [model]. Empty: weights are drawn");
    visit("tensorboard", self.tensorboard, Range{},
          "whether the run's directory has TensorBoard's event files too, in tensorboard/, of what metrics.jsonl says");
    visit("prometheus", self.prometheus, Range{},
          "text file (NAME.prom in the directory of node-exporter's textfile collector) that always has the latest "
          "numbers; empty: none");
    visit("live_seconds", self.live_seconds, between(0, 1e9),
          "seconds after which live.json, which gyre top shows, is written again; 0: never");
  }
  bool operator==(const RunSettings&) const = default;
};

}  // namespace gyre
