// A study: a grid of runs (method x schedule x weight policy x stages x learning rate x seed), described by one TOML
// file. The file has the tables of a run's configuration, from which all runs start, and the table [study].
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/config/config.h"

namespace gyre {

// One of the methods that are compared: a name and the configuration keys that define it.
struct StudyMethod {
  std::string name;
  std::vector<std::string> set;        // "table.key=value"
  std::vector<double> learning_rates;  // to try instead of the study's; empty: the study's
  std::vector<int64_t> stages;         // the subset of the study's stages to run it with; empty: all
};

struct Study {
  std::string name;                  // the file's, without extension
  std::vector<StudyMethod> methods;  // [[study.method]]
  std::vector<int64_t> stages;
  std::vector<std::string> schedules;  // "": that of the configuration or the method
  std::vector<std::string> weights;    // likewise
  std::vector<double> learning_rates;  // empty: that of the configuration or the method
  std::vector<int64_t> seeds;
  int64_t sweep_updates = 0;       // updates of a learning rate's trial; 0: the whole run
  std::vector<double> targets;     // losses to reach; empty: see summarise() in results.h
  int64_t smooth = 100;            // "the loss" is the mean over this many updates
  bool diagnose = false;           // measure Hessian norm, cosine and oscillation at the end of each arm
  int64_t jobs = 0;                // parallel runs; 0: as many as there are cores for
  bool timed_checkpoints = false;  // whether the file sets run.checkpoint_minutes; if not, it is 0 in all runs
  ConfigWith config_with;          // the configuration in the file
  std::string origin;              // the file's name, for messages
};

// Throws InputError as for configurations. Checks the configuration of every final run, with its first learning rate,
// before any run starts.
Study load_study(const std::filesystem::path& path);
Study parse_study(std::string_view toml, const std::string& origin);
// Every key of [study] and [[study.method]] with its default and meaning, as Markdown.
std::string describe_study();
// The JSON schema of a study's file: that of a configuration, with [study] added.
nlohmann::ordered_json study_schema();

// One curve of the comparison: a point of the grid after learning rates are chosen and seeds averaged.
struct StudyArm {
  size_t method = 0;
  std::string schedule, weights;
  int64_t stages = 1;
};
std::vector<StudyArm> study_arms(const Study& study);
// "adamw, pipedream, stash": distinguishes the study's arms with the same number of stages.
std::string label(const Study& study, const StudyArm& arm);

// One run of the grid.
struct StudyRun {
  size_t arm = 0;
  double learning_rate = 0;
  int64_t seed = 0;
  bool is_trial = false;  // a trial of a learning rate
  std::string directory;  // relative to the directory of all runs; unique among final runs
  Config config;
};
// The runs from which an arm's learning rate is chosen; empty if there is only one rate.
std::vector<StudyRun> trials(const Study& study, const std::vector<StudyArm>& arms, size_t arm);
// The final runs of an arm, one for each seed.
std::vector<StudyRun> final_runs(const Study& study, const std::vector<StudyArm>& arms, size_t arm,
                                 double learning_rate);
// The learning rates to try for an arm: the method's, the study's, or the configuration's single one.
std::vector<double> learning_rates(const Study& study, const StudyArm& arm);

}  // namespace gyre
