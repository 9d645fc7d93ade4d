// A study: a grid of runs, method x schedule x weight policy x stages x learning rate x seed, described by one TOML
// file. The file has the tables of a run's configuration, which all runs start from, and the table [study].
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/config/config.h"

namespace gyre {

// What is compared: a name and the configuration keys that make it.
struct StudyMethod {
  std::string name;
  std::vector<std::string> set;        // "table.key=value"
  std::vector<double> learning_rates;  // swept instead of the study's, if any
  std::vector<int64_t> stages;         // those of the study's it is run with; empty: all
};

struct Study {
  std::string name;                  // the file's, without extension
  std::vector<StudyMethod> methods;  // [[study.method]]
  std::vector<int64_t> stages;
  std::vector<std::string> schedules;  // "": the configuration's or the method's
  std::vector<std::string> weights;    // likewise
  std::vector<double> learning_rates;  // empty: likewise
  std::vector<int64_t> seeds;
  int64_t sweep_updates = 0;       // length of a learning rate's trial; 0: the whole run
  std::vector<double> targets;     // losses to reach; empty: by the rule that results.h states
  int64_t smooth = 100;            // updates whose mean is "the loss"
  bool diagnose = false;           // measure Hessian norm, cosine and oscillation at the end of each arm
  int64_t jobs = 0;                // runs side by side; 0: as many as there are cores for
  bool timed_checkpoints = false;  // whether the file sets run.checkpoint_minutes; a study's runs have none else
  std::string text;                // the file
  std::string origin;
};

// InputError as for configurations; every run's configuration is checked here, before any starts.
Study load_study(const std::filesystem::path& path);
Study parse_study(std::string_view toml, const std::string& origin);
// Every key of [study] with its meaning, as Markdown.
std::string describe_study();
// A study's file as a JSON schema: a configuration's, and [study].
nlohmann::ordered_json study_schema();

// One curve of the comparison: what is left of the grid once learning rates are chosen and seeds averaged.
struct StudyArm {
  size_t method = 0;
  std::string schedule, weights;
  int64_t stages = 1;
};
std::vector<StudyArm> study_arms(const Study& study);
// "adamw, pipedream, stash": what distinguishes arms with the same number of stages within `study`.
std::string label(const Study& study, const StudyArm& arm);

// One run of the grid.
struct StudyRun {
  size_t arm = 0;
  double learning_rate = 0;
  int64_t seed = 0;
  bool is_trial = false;  // of a learning rate, over sweep_updates
  std::string directory;  // below the study's own, unique
  Config config;
};
// The runs that choose an arm's learning rate; empty when there is only one.
std::vector<StudyRun> trials(const Study& study, const std::vector<StudyArm>& arms, size_t arm);
// The runs that count, one a seed.
std::vector<StudyRun> final_runs(const Study& study, const std::vector<StudyArm>& arms, size_t arm,
                                 double learning_rate);
std::vector<double> learning_rates(const Study& study, const StudyArm& arm);

}  // namespace gyre
