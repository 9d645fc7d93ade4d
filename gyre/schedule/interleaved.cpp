// Interleaved 1F1B (Narayanan et al., 2021; Megatron-LM's virtual pipeline): each worker has `chunks` stages, stage s
// on worker s mod workers, so a microbatch goes round the workers once per chunk and the bubble shrinks by that factor.
#include <fmt/format.h>

#include <algorithm>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/schedule/builder_parts.h"
#include "gyre/schedule/schedule_settings.h"

namespace gyre {
namespace {

// The n-th forward (or backward) of a worker: microbatches go in groups of `workers`, each group through all chunks
// before the next group starts.
struct Position {
  int chunk;
  int64_t microbatch;
};
Position position(int64_t n, int workers, int chunks) {
  const int64_t group = n / (static_cast<int64_t>(workers) * chunks);
  const int64_t within = n % (static_cast<int64_t>(workers) * chunks);
  return {static_cast<int>(within / workers), group * workers + within % workers};
}

Schedule build(const ScheduleOptions& options) {
  check_options(options);
  const auto chunks = static_cast<int>(options.own.get<InterleavedSettings>().chunks);
  if (options.stages % chunks != 0) {
    throw InputError(
        fmt::format("schedule interleaved-1f1b: {} cannot be divided into {} on each worker; make {} a multiple of {}",
                    counted(options.stages, "stage"), chunks, options.names.stages, options.names.of("chunks")));
  }
  const int workers = options.stages / chunks;
  if (options.window % workers != 0) {
    throw InputError(
        fmt::format("schedule interleaved-1f1b: a window of {} cannot be divided among {} workers; make {} a "
                    "multiple of {}",
                    counted(options.window, "microbatch"), workers, options.names.window, workers));
  }
  if (chunks == 1) return one_f_one_b().build(options);

  check_length(options, flushed_actions);
  Schedule schedule = one_pipeline(options);
  schedule.workers = workers;
  schedule.programs.resize(workers);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    schedule.placement[0][stage] = schedule.owner[0][stage] = stage % workers;
  }
  const int64_t total = schedule.window * chunks;
  for (int worker = 0; worker < workers; ++worker) {
    auto& period = schedule.programs[worker].period;
    period.reserve(static_cast<size_t>(2 * total + chunks));
    const auto run_forward = [&](int64_t n) {
      const auto [chunk, microbatch] = position(n, workers, chunks);
      period.push_back(forward(chunk * workers + worker, microbatch));
    };
    const auto run_backward = [&](int64_t n) {
      const auto [chunk, microbatch] = position(n, workers, chunks);
      period.push_back(backward((chunks - 1 - chunk) * workers + worker, microbatch));
    };
    const int64_t ahead =
        std::min<int64_t>((workers - 1 - worker) * 2LL + static_cast<int64_t>(chunks - 1) * workers, total);
    for (int64_t n = 0; n < ahead; ++n) run_forward(n);
    for (int64_t n = ahead; n < total; ++n) {
      run_forward(n);
      run_backward(n - ahead);
    }
    for (int64_t n = total - ahead; n < total; ++n) run_backward(n);
    for (int chunk = 0; chunk < chunks; ++chunk) period.push_back(update(chunk * workers + worker, 0));
  }
  return schedule;
}

}  // namespace

ScheduleKind interleaved() {
  return {.name = "interleaved-1f1b",
          .meaning = "1F1B with several stages on each worker, which shortens the bubble",
          .build = build,
          .windows =
              [](const ScheduleOptions& options) {
                const int64_t chunks = options.own.get<InterleavedSettings>().chunks;
                const int64_t workers = std::max<int64_t>(1, options.stages / std::max<int64_t>(1, chunks));
                return SuitableWindows{.usual = 4 * workers, .multiple_of = workers, .takes_all = true};
              },
          .own = InterleavedSettings(),
          .stages_per_worker = [](const OptionTable& own) { return own.get<InterleavedSettings>().chunks; }};
}

}  // namespace gyre
