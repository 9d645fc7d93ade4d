#include "gyre/train/checked_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gyre/build/build.h"
#include "gyre/build/devices.h"
#include "gyre/config/schedule_options.h"
#include "gyre/core/faults.h"
#include "gyre/core/memory_limit.h"
#include "gyre/train/memory.h"
#include "gyre/train/summary.h"

namespace gyre {

namespace {

// What a configuration names and builds, as far as the tables and keys that it needs could be read.
struct Built {
  Config config;
  std::optional<Dataset> dataset;
  Schedule schedule;
  bool on_host = true;
};

Built build(const Config& config, const WasRead& was_read, Faults& faults) {
  Built built;
  built.config = config;
  const auto collect = [&](const std::vector<std::string>& needed, auto&& check) {
    return std::ranges::all_of(needed, was_read) && faults.collect(check);
  };
  if (collect({"data"}, [&] { built.dataset.emplace(Dataset::open(config.data)); })) {
    collect({"model"}, [&] { resolve_vocabulary(built.config, *built.dataset); });
  }
  collect({"model", "pipeline.stages"}, [&] { check_stages(built.config); });
  collect({"pipeline.threads_per_worker"}, [&] { threads_per_worker(config); });
  collect({"pipeline.device"}, [&] { built.on_host = computes_on_host(config); });
  if (collect({"pipeline", "model.tie"}, [&] { built.schedule = build_schedule(config); })) {
    collect({"optimizer"}, [&] { check_clipping(built.schedule); });
  }
  collect({"optimizer", "run.updates"}, [&] { check_optimizer(optimizer_config(config)); });
  return built;
}

}  // namespace

void add_faults_of_run(const Config& config, const WasRead& was_read, Faults& faults) {
  build(config, was_read, faults);
}

CheckedRun::CheckedRun(const Config& given, DoneBefore before, const DataReading& reading) {
  Faults faults;
  Built built = build(
      given, [](std::string_view) { return true; }, faults);
  faults.raise();
  config = std::move(built.config);
  dataset = std::move(built.dataset);
  schedule = std::move(built.schedule);
  const bool on_host = built.on_host;

  const MemoryLimit limit = memory_limit();
  check_memory(config, on_host ? limit : device_limit(config, schedule.workers));
  if (reading.begins) reading.begins(config, *dataset);
  dataset->heed(reading.stop);
  continue_data({});
  if (config.run.eval_every > 0) val_batches = validation_batches(config, *dataset, config.run.eval_batches);
  // The checksums of all files are recorded with the run, so they are checked here even if no evaluation reads some.
  dataset->identity();
  PredictedMemory predicted = predict_memory(config, schedule);
  if (!on_host) predicted.process = {};  // all of it is on devices, whose memory only libtorch's allocators know
  may_copy = config.run.checkpoint_background && has_room_for_copy(predicted, resident_bytes(), limit);
  const Layers layers = build_layers(config);
  summary = summarise(config, before, *dataset, schedule, layers, build_partition(config, schedule, layers), predicted,
                      may_copy, limit);
}

void CheckedRun::continue_data(const CheckpointRecord& from) {
  TrainBatches batches = gyre::train_batches(config, *dataset, from);
  train_batches = std::move(batches.source);
  mixture = std::move(batches.mixture);
}

}  // namespace gyre
