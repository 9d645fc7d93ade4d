#include "gyre/study/run_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gyre/config/schedule_options.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/runtime/settings/executor_kind.h"
#include "gyre/study/run_processes.h"

namespace gyre {
namespace {

constexpr const char* kRuns = "runs";

class StudyRunner {
 public:
  StudyRunner(const Study& study, const RunStudyOptions& options)
      : study_(study), options_(options), arms_(study_arms(study)) {
    for (size_t arm = 0; arm < arms_.size(); ++arm) {
      results_.push_back({arms_[arm], {}, {}, 0, false, {}, {}, {}, {}});
      rates_.push_back(std::nullopt);
      const auto trial_runs = trials(study_, arms_, arm);
      total_ += trial_runs.size() + study_.seeds.size();
      // With full-length trials the best one is also the first seed's final run.
      if (!trial_runs.empty() && study_.sweep_updates == 0) --total_;
    }
    launcher_.program = options.program;
    launcher_.root = options.root / kRuns;
    launcher_.jobs = options.jobs > 0 ? options.jobs : jobs_that_fit();
    launcher_.stop = options.stop;
    launcher_.abandon = options.abandon;
    launcher_.save = options.save;
  }

  std::optional<StudyResult> run() {
    if (!options_.report_only && !check()) return std::nullopt;
    std::vector<StudyRun> runs;
    for (size_t arm = 0; arm < arms_.size(); ++arm) {
      const auto trial_runs = trials(study_, arms_, arm);
      runs.insert(runs.end(), trial_runs.begin(), trial_runs.end());
    }
    if (!perform(runs)) return std::nullopt;
    runs = chosen_runs();
    if (!perform(runs)) return std::nullopt;
    if (!collect()) return std::nullopt;
    return summarise(study_, std::move(results_));
  }

 private:
  int jobs_that_fit() const {
    int64_t busy = 1;
    for (size_t arm = 0; arm < arms_.size(); ++arm) {
      busy = std::max(busy, busy_cores(final_runs(study_, arms_, arm, 1e-3)[0].config));
    }
    return static_cast<int>(std::max<int64_t>(1, options_.cores / busy));
  }

  // The first run of each arm; the others differ from it in learning rate, seed and length. If one is refused, nothing
  // of the study is left.
  bool check() {
    std::vector<StudyRun> firsts;
    for (size_t arm = 0; arm < arms_.size(); ++arm) {
      const auto first_trials = trials(study_, arms_, arm);
      const auto rate = learning_rates(study_, arms_[arm])[0];
      firsts.push_back(first_trials.empty() ? final_runs(study_, arms_, arm, rate)[0] : first_trials[0]);
    }
    make_directories(launcher_.root);
    try {
      return check_runs(firsts, launcher_);
    } catch (...) {
      system_files().remove(launcher_.root);  // where it is empty
      throw;
    }
  }

  bool perform(const std::vector<StudyRun>& runs) {
    if (options_.report_only) {
      for (const StudyRun& run : runs) {
        const RunStatus status = status_of(launcher_.root / run.directory, run.config);
        if (status == RunStatus::Finished || status == RunStatus::Diverged) account(run, status);
      }
      return true;
    }
    make_directories(launcher_.root);
    return perform_runs(runs, launcher_, [&](const StudyRun& run, RunStatus status) { account(run, status); });
  }

  void account(const StudyRun& run, RunStatus status) {
    ++done_;
    check_data(run);
    const Curve curve = read_curve(metrics_of(run));
    const auto loss = smoothed(curve.loss, study_.smooth);
    const bool finished = status == RunStatus::Finished;
    if (run.is_trial) {
      results_[run.arm].trials.push_back({run.learning_rate, finished ? std::optional(loss.back()) : std::nullopt});
    }
    if (options_.report_only || !options_.say) return;
    options_.say(fmt::format("[{}/{}] {}: {}, {}", done_, total_, run.directory,
                             finished ? fmt::format("loss {:.4f}", loss.back()) : "diverged",
                             human_duration(curve.seconds.empty() ? 0 : curve.seconds.back())));
  }

  // Throws InputError if the data has changed since another run was trained on it: their losses would be compared as if
  // it had not.
  void check_data(const StudyRun& run) {
    const auto directory = launcher_.root / run.directory;
    const auto data = data_of(directory);
    const auto known = std::ranges::find_if(data_, [&](const TrainedOn& one) { return one.given == run.config.data; });
    if (known == data_.end()) {
      if (!data.empty()) data_.push_back({run.config.data, directory, data});
      return;
    }
    for (const auto& [file, checksum] : data) {
      const auto before = known->files.find(file);
      if (before == known->files.end() || before->second == checksum) continue;
      throw InputError(
          fmt::format("{}: was trained on another {} than {}: the data has changed since one of them; choose another "
                      "--out, or remove the runs of the data that is gone",
                      directory.string(), printable(file), known->run.string()));
    }
  }

  // Chooses each arm's learning rate from its trials, and returns the final runs that are not trials too.
  std::vector<StudyRun> chosen_runs() {
    std::vector<StudyRun> runs;
    for (size_t arm = 0; arm < arms_.size(); ++arm) {
      ArmResult& result = results_[arm];
      const auto rates = learning_rates(study_, arms_[arm]);
      // Trials may have finished in any order.
      std::sort(result.trials.begin(), result.trials.end(),
                [](const TrialResult& a, const TrialResult& b) { return a.learning_rate < b.learning_rate; });
      std::optional<double> rate;  // none until all are tried
      const bool tried = rates.size() == 1 || result.trials.size() == rates.size();
      if (tried) rate = rates.size() == 1 ? rates[0] : best_rate(result.trials);
      rates_[arm] = rate;
      result.diverged = tried && !rate;
      result.learning_rate = rate.value_or(rates[0]);
      if (!rate) continue;
      for (StudyRun& run : final_runs(study_, arms_, arm, *rate)) {
        const bool was_trial = !result.trials.empty() && study_.sweep_updates == 0 && run.seed == study_.seeds[0];
        if (was_trial) continue;
        runs.push_back(std::move(run));
      }
    }
    return runs;
  }

  // Reduces results_ to the arms whose runs have all ended, and adds their curves and diagnostics. Returns false if it
  // was stopped.
  bool collect() {
    std::vector<ArmResult> complete;
    for (size_t arm = 0; arm < arms_.size(); ++arm) {
      ArmResult& result = results_[arm];
      std::vector<Curve> curves;
      bool missing = !result.diverged && !rates_[arm];
      if (rates_[arm]) {
        for (const StudyRun& run : final_runs(study_, arms_, arm, *rates_[arm])) {
          const RunStatus status = status_of(launcher_.root / run.directory, run.config);
          missing |= status == RunStatus::Absent || status == RunStatus::Begun;
          result.diverged |= status == RunStatus::Diverged;
          if (status != RunStatus::Finished) continue;
          curves.push_back(read_curve(metrics_of(run)));
          if (study_.diagnose && !result.diagnostics && !take_diagnostics(run, result)) return false;
        }
      }
      if (missing) continue;
      if (!result.diverged) result.curve = mean_curve(curves);
      complete.push_back(std::move(result));
    }
    results_ = std::move(complete);
    return true;
  }

  // Without running anything, those that there are. Returns false if it was stopped.
  bool take_diagnostics(const StudyRun& run, ArmResult& result) {
    const auto json =
        options_.report_only ? stored_diagnostics_of(run, launcher_.root) : diagnostics_of(run, launcher_);
    if (json) result.diagnostics = read_diagnostics(*json, diagnostics_file(run, launcher_.root).string());
    return json || options_.report_only;
  }

  std::filesystem::path metrics_of(const StudyRun& run) const {
    return launcher_.root / run.directory / "metrics.jsonl";
  }

  // The data of a run, as it is given and as it was then.
  struct TrainedOn {
    DataSettings given;
    std::filesystem::path run;
    std::map<std::string, std::string> files;  // checksums
  };

  const Study& study_;
  const RunStudyOptions& options_;
  std::vector<StudyArm> arms_;
  std::vector<ArmResult> results_;            // by arm
  std::vector<std::optional<double>> rates_;  // by arm: the chosen learning rate
  std::vector<TrainedOn> data_;               // the first of each
  RunProcessesOptions launcher_;
  size_t done_ = 0, total_ = 0;
};

// Throws InputError if the directory belongs to something else: a study would put its files beside the others.
void refuse_foreign_directory(const std::filesystem::path& root) {
  for (const auto& [file, what] : {std::pair("config.toml", "a run"), {"meta.json", "text that gyre prepare made"}}) {
    if (!is_there(root / file)) continue;
    throw InputError(fmt::format("{}: is {}, and no place for a study; choose another --out", root.string(), what));
  }
}

}  // namespace

int64_t busy_cores(const Config& config) {
  const bool side_by_side = executor_kinds().at(config.pipeline.executor).side_by_side;
  const int64_t workers = side_by_side ? build_schedule(config).workers : 1;
  return workers * config.pipeline.threads_per_worker;
}

std::optional<StudyResult> run_study(const Study& study, const RunStudyOptions& options) {
  refuse_foreign_directory(options.root);
  if (options.report_only && !is_there(options.root / kRuns)) {
    throw InputError(
        fmt::format("{}: no study is here; give --out, or run it without --report", options.root.string()));
  }
  std::optional<DirectoryLock> lock;
  if (!options.report_only) lock.emplace(options.root);
  return StudyRunner(study, options).run();
}

}  // namespace gyre
