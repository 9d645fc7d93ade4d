// What a study found: losses, updates to a target, slowdowns, as tables and plots.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gyre/study/curves.h"
#include "gyre/study/study.h"

namespace gyre {

// A learning rate's trial: its last loss, nothing if it diverged.
struct TrialResult {
  double learning_rate = 0;
  std::optional<double> loss;
};
// The rate with the lowest last loss; nothing if all diverged.
std::optional<double> best_rate(const std::vector<TrialResult>& trials);

struct TargetResult {
  double loss = 0;
  std::optional<int64_t> updates;  // until the smoothed loss is at most `loss`
  std::optional<double> seconds;   // of training until then
  std::optional<double> slowdown;  // updates over those of the same label with the fewest stages
};

// Of the arm's first run at its end, by gyre diagnose; of stages the first, whose gradients are latest.
struct ArmDiagnostics {
  double hessian_norm = 0, rotated_norm = 0;
  double cosine = 0, oscillation = 0;
};
ArmDiagnostics read_diagnostics(const std::string& json);

struct ArmResult {
  StudyArm arm;
  std::string label;
  std::vector<TrialResult> trials;
  double learning_rate = 0;
  bool diverged = false;
  Curve curve;               // mean over seeds; not smoothed
  std::vector<double> loss;  // smoothed
  std::vector<TargetResult> targets;
  std::optional<ArmDiagnostics> diagnostics;
};

struct StudyResult {
  std::string name;
  std::string target_rule;  // a sentence
  std::vector<double> targets;
  int64_t smooth = 1;
  std::vector<int64_t> stages;
  std::vector<ArmResult> arms;  // by label, then stages
};

// Fills in smoothed losses, targets and slowdowns. Without targets of the study's own the target is the highest last
// loss of the arms that did not diverge: every one of them reaches it.
StudyResult summarise(const Study& study, std::vector<ArmResult> arms);

std::string to_markdown(const StudyResult& result);
std::string to_csv(const StudyResult& result);
std::string to_json(const StudyResult& result);
// Writes results.md, results.csv, results.json, loss-<stages>.svg and slowdown.svg. Returns what was written.
std::vector<std::filesystem::path> write_results(const StudyResult& result, const std::filesystem::path& directory);

}  // namespace gyre
