#include "gyre/train/checked_run.h"

#include <utility>

#include "gyre/build/build.h"
#include "gyre/build/devices.h"
#include "gyre/core/faults.h"
#include "gyre/core/memory_limit.h"
#include "gyre/train/memory.h"
#include "gyre/train/summary.h"

namespace gyre {

CheckedRun::CheckedRun(Config given, DoneBefore before) : config(std::move(given)) {
  Faults faults;
  bool on_host = true;
  faults.collect([&] {
    dataset.emplace(Dataset::open(config.data));
    resolve_vocabulary(config, *dataset);
  });
  faults.collect([&] { check_stages(config); });
  faults.collect([&] { threads_per_worker(config); });
  faults.collect([&] { on_host = computes_on_host(config); });
  faults.collect([&] {
    schedule = build_schedule(config);
    check_clipping(config, schedule);
  });
  faults.collect([&] { check_optimizer(optimizer_config(config)); });
  faults.raise();

  const MemoryLimit limit = memory_limit();
  check_memory(config, on_host ? limit : device_limit(config, schedule.workers));
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
