// The results of a study: losses, updates to a target and slowdowns, as tables and plots.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gyre/study/curves.h"
#include "gyre/study/study.h"

namespace gyre {

// The trial of a learning rate.
struct TrialResult {
  double learning_rate = 0;
  std::optional<double> loss;  // its last smoothed loss; empty if it diverged
};
// The rate with the lowest last loss; empty if all diverged.
std::optional<double> best_rate(const std::vector<TrialResult>& trials);

struct TargetResult {
  double loss = 0;
  std::optional<int64_t> updates;  // until the smoothed loss is at most `loss`
  std::optional<double> seconds;   // of training until then
  // `updates` divided by that of the arm with the same label and the study's fewest stages; empty if there is none.
  std::optional<double> slowdown;
};

// What gyre diagnose measures at the end of the arm's first run. cosine and oscillation are those of the first stage,
// whose gradients have the longest delay; empty if no update changes its weights.
struct ArmDiagnostics {
  double hessian_norm = 0, rotated_norm = 0;
  std::optional<double> cosine, oscillation;
};
// Throws InputError, with `origin` and what to do, if that is not what gyre diagnose prints.
ArmDiagnostics read_diagnostics(const std::string& json, const std::string& origin);

struct ArmResult {
  StudyArm arm;
  std::string label;
  std::vector<TrialResult> trials;
  double learning_rate = 0;
  bool diverged = false;
  Curve curve;               // mean over seeds; not smoothed
  std::vector<double> loss;  // smoothed; empty if diverged
  std::vector<TargetResult> targets;
  std::optional<ArmDiagnostics> diagnostics;
};

struct StudyResult {
  std::string name;
  std::string target_rule;  // explains the targets, and says how many arms are left out, in a few sentences
  std::vector<double> targets;
  int64_t smooth = 1;
  std::vector<int64_t> stages;
  std::vector<ArmResult> arms;  // in the order of study_arms()
};

// Fills in labels, smoothed losses, targets and slowdowns. If the study names no targets, the target is the highest
// last loss of the arms that did not diverge, so that all of these reach it.
StudyResult summarise(const Study& study, std::vector<ArmResult> arms);

std::string to_markdown(const StudyResult& result);
std::string to_csv(const StudyResult& result);
std::string to_json(const StudyResult& result);
// Writes results.md, results.csv, results.json, loss-<stages>.svg and, if there are several numbers of stages,
// slowdown.svg. Returns the paths written.
std::vector<std::filesystem::path> write_results(const StudyResult& result, const std::filesystem::path& directory);

}  // namespace gyre
