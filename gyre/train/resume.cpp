#include "gyre/train/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "gyre/build/model_identity.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

// Empty if the run's own configuration was lost; then only the checkpoint is compared.
std::vector<ConfigChange> changes_since(const RunDirectory& run, const Config& config) {
  return run.has_run() ? config_changes(run.load_config(), config) : std::vector<ConfigChange>();
}

// Throws InputError for a change that makes it another run: of the model or the seed.
void refuse_other_run(const std::vector<ConfigChange>& changes) {
  for (const ConfigChange& change : changes) {
    if (change.table.rfind("model", 0) != 0 && !(change.table == "run" && change.key == "seed")) continue;
    throw InputError(
        fmt::format("[{}] {} is {}, but the run was begun with {}; resume it with the same, or start another run with "
                    "--out",
                    change.table, change.key, change.after.dump(), change.before.dump()));
  }
}

// A run with a checkpoint of its own does not look at it again.
void refuse_other_beginning(const std::vector<ConfigChange>& changes) {
  for (const ConfigChange& change : changes) {
    if (change.table != "run" || change.key != "init_from" || change.after == "") continue;
    throw InputError(
        fmt::format("[run] init_from is {}, but the run has begun, with {}; leave it out, or start another run with "
                    "--out",
                    change.after.dump(), change.before == "" ? "weights of its own" : change.before.dump()));
  }
}

// A model whose vocabulary is left to the data is compared once that is known (check_data).
void check_checkpoint(const CheckpointRecord& checkpoint, const Config& config) {
  if (config.model.vocabulary > 0) check_model_identity(checkpoint.model, config);
  if (checkpoint.seed == static_cast<uint64_t>(config.run.seed)) return;
  throw InputError(
      fmt::format("[run] seed is {}, but the checkpoint was made with {}; resume with the same, or start "
                  "another run with --out",
                  config.run.seed, checkpoint.seed));
}

}  // namespace

void refuse_lost_checkpoints(const RunDirectory& run, const RunRecord& record) {
  const std::string place = run.checkpoints().string();
  if (record.last_checkpoint) {
    throw InputError(
        fmt::format("{}: has no checkpoint, but {} says that one was written at step {}; mount or put back "
                    "what is missing, or start another run with --out",
                    place, run.metrics().string(), *record.last_checkpoint));
  }
  // The first checkpoint may have been written but not noted in the metrics yet, so an empty directory proves nothing.
  if (record.newest_step > 0 && !is_there(run.checkpoints_marker())) {
    const std::string metrics = run.metrics().string();
    throw InputError(fmt::format(
        "{}: {}, but {} has {}; mount or put back what is missing, or remove {} to begin again", place,
        is_there(run.checkpoints()) ? "has no checkpoint and is not the directory that the run made" : "is missing",
        metrics, counted(record.newest_step, "step"), metrics));
  }
}

namespace {

// The oldest checkpoint is damaged, as are the newer ones, which a user looks for first.
[[noreturn]] void refuse_damaged(const DamagedCheckpoint& oldest, const std::vector<DamagedStep>& newer) {
  if (newer.empty()) throw DamagedCheckpoint(oldest);
  std::vector<std::string> steps;
  for (const DamagedStep& damaged : newer) steps.push_back(std::to_string(damaged.step));
  throw DamagedCheckpoint(oldest.fault(),
                          fmt::format("so {} step{} {} ({}); put one back from a copy, or start another run with "
                                      "--out",
                                      steps.size() == 1 ? "is" : "are", steps.size() == 1 ? "" : "s", join(steps, ", "),
                                      newer.front().fault));
}

// Opens the newest of `steps` that can be opened, and lists those after it as damaged. Throws DamagedCheckpoint if none
// can be.
void open_newest(const RunDirectory& run, std::vector<int64_t> steps, ResumePoint& point) {
  while (!steps.empty() && !point.checkpoint) {
    try {
      point.checkpoint.emplace(run.checkpoints(), steps.back());
    } catch (const DamagedCheckpoint& damage) {
      if (steps.size() == 1) refuse_damaged(damage, point.damaged);
      point.damaged.push_back({steps.back(), damage.fault()});
      steps.pop_back();
    }
  }
}

// Whether one of these checkpoints can be opened and was saved while no update was left out.
bool has_sound(const RunDirectory& run, const std::vector<int64_t>& steps) {
  return std::ranges::any_of(steps, [&](int64_t step) {
    try {
      return CheckpointReader(run.checkpoints(), step).record().is_sound();
    } catch (const DamagedCheckpoint&) {
      return false;
    }
  });
}

ResumePoint find_point(const RunDirectory& run, const Config& config, std::vector<int64_t> steps,
                       std::vector<DamagedStep> damaged) {
  ResumePoint point;
  point.damaged = std::move(damaged);
  point.changes = changes_since(run, config);
  refuse_other_run(point.changes);
  // The checkpoint comes first: with a damaged one, lines would seem to be missing in the metrics.
  open_newest(run, steps, point);
  if (point.checkpoint) {
    check_checkpoint(point.checkpoint->record(), config);
    refuse_other_beginning(point.changes);
  }
  point.record = read_record(run.metrics(), point.step());
  const bool has_diverged = point.record.end && point.record.end->status == "diverged";
  if (has_diverged && point.checkpoint && !point.checkpoint->record().is_sound()) {
    std::erase_if(steps, [&](int64_t step) { return step >= point.step(); });
    if (has_sound(run, steps)) {
      point.damaged.push_back(
          {point.step(), fmt::format("{}: was saved while updates were left out, and the run diverged",
                                     checkpoint_path(run.checkpoints(), point.step()).string())});
      return find_point(run, config, std::move(steps), std::move(point.damaged));
    }
  }
  if (!point.checkpoint) refuse_lost_checkpoints(run, point.record);
  return point;
}

}  // namespace

ResumePoint find_resume_point(const RunDirectory& run, const Config& config) {
  return find_point(run, config, list_checkpoints(run.checkpoints()), {});
}

ResumePoint find_earlier_point(const RunDirectory& run, const Config& config, const ResumePoint& point,
                               const DamagedCheckpoint& damage) {
  std::vector<int64_t> steps = list_checkpoints(run.checkpoints());
  std::erase_if(steps, [&](int64_t step) { return step >= point.step(); });
  if (steps.empty()) refuse_damaged(damage, point.damaged);
  std::vector<DamagedStep> damaged = point.damaged;
  damaged.push_back({point.step(), damage.fault()});
  return find_point(run, config, std::move(steps), std::move(damaged));
}

void check_data(const ResumePoint& point, const RunDirectory& run, const Config& config, const Dataset& dataset) {
  if (point.checkpoint) check_model_identity(point.checkpoint->record().model, config);
  for (const ConfigChange& change : point.changes) {
    if (!dataset.cuts_validation() || change.table != "data" || change.key != "val_fraction") continue;
    throw InputError(fmt::format(
        "[data] val_fraction is {}, but the run was begun with {}: it would validate on tokens that it was trained on; "
        "resume it with the same, or begin another run",
        change.after.dump(), change.before.dump()));
  }
  const auto check = [&](const DataIdentity& begun_with) {
    // An imported model has a tokenizer, but no tokens yet.
    const bool has_tokens = std::any_of(begun_with.begin(), begun_with.end(),
                                        [](const auto& file) { return part_of(file.first) == DataPart::Train; });
    std::vector<DataPart> same = {DataPart::Tokenizer};
    if (has_tokens) same.insert(same.end(), {DataPart::Train, DataPart::Val});
    dataset.check_identity(begun_with, same);
  };
  if (is_there(run.tokenizer() / kMetaFile)) check(DatasetMeta::load(run.tokenizer()).checksums);
  if (point.checkpoint && !point.checkpoint->record().data.empty()) check(point.checkpoint->record().data);
}

void refuse_lost_run(const RunDirectory& run, const ResumePoint& point) {
  if (point.checkpoint || is_there(run.metrics())) return;
  throw InputError(fmt::format(
      "{}: the run that has begun here is gone; mount or put back what is missing, and continue it with --resume",
      run.root().string()));
}

bool is_complete(const ResumePoint& point, const Config& config) {
  if (point.step() != config.run.updates) return point.step() > config.run.updates;
  const auto& end = point.record.end;
  return end && end->status == "finished" && end->step == point.step();
}

void refuse_to_replace_run(const RunDirectory& run) {
  if (run.has_run()) {
    throw InputError(fmt::format("{}: a run is here already; continue it with --resume, or choose another --out",
                                 run.root().string()));
  }
  const bool has_checkpoints = !list_checkpoints(run.checkpoints()).empty();
  if (!has_checkpoints && !is_there(run.metrics())) return;
  throw InputError(
      fmt::format("{}: belongs to a run whose config.toml is missing; continue the run with --resume and the "
                  "CONFIG.toml it was made with, or choose another --out",
                  (has_checkpoints ? run.checkpoints() : run.metrics()).string()));
}

}  // namespace gyre
