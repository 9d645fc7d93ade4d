#include "gyre/study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "gyre/config/schedule_options.h"
#include "gyre/core/files.h"
#include "gyre/core/json_schema.h"
#include "gyre/core/text.h"
#include "gyre/core/toml_fields.h"

namespace gyre {
namespace {

template <typename SomeStudy, typename Visit>
void for_each_field(SomeStudy& s, Visit&& visit) {
  visit("stages", s.stages, between(1, 1 << 16), "numbers of stages to compare; empty: [pipeline] stages");
  visit("schedules", s.schedules, Range{}, "schedules to compare; empty: [pipeline] schedule");
  visit("weights", s.weights, one_of(weight_choices()), "weight policies to compare; empty: [pipeline] weights");
  visit(
      "learning_rates", s.learning_rates, between(0, 1e6),
      "peak learning rates to try; each arm runs with the one that was best in its own trials. Empty: [optimizer] lr");
  visit("seeds", s.seeds, at_least(0), "seeds; the curves of all are averaged. Empty: [run] seed");
  visit("sweep_updates", s.sweep_updates, at_least(0),
        "updates in a trial of a learning rate; 0: a trial is a whole run with the first seed");
  visit("targets", s.targets, between(-1e6, 1e6),
        "training losses to reach; empty: the highest of the arms' last losses, so that every arm reaches it");
  visit("smooth", s.smooth, at_least(1), "number of updates over which the loss is averaged");
  visit("diagnose", s.diagnose, Range{},
        "at the end of each arm's first run, measure the Hessian's (1,1)-norm, the difference between updates from "
        "late and from current gradients, and the oscillation of updates");
  visit("jobs", s.jobs, between(0, 4096), "runs side by side; 0: as many as there are cores for");
}

template <typename Visit>
void for_each_field(StudyMethod& m, Visit&& visit) {
  visit("name", m.name, Range{}, "name of the method in tables and charts");
  visit("set", m.set, Range{},
        "configuration keys that define the method: \"table.key=value\"; not those that the study's or the "
        "method's lists give, such as pipeline.stages");
  visit("learning_rates", m.learning_rates, between(0, 1e6),
        "peak learning rates to try instead of the study's; empty: the study's");
  visit("stages", m.stages, between(1, 1 << 16), "those of the study's stages to run the method with; empty: all");
}

// A directory name made of `text`: lower-case letters, digits, dots and dashes.
std::string slug(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.') {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
  }
  while (!result.empty() && result.back() == '-') result.pop_back();
  return result;
}

// What is wrong with a method's name, or "". `taken`: what directories are named after the methods before it, to which
// its own is added.
std::string fault_of_name(const std::string& name, std::set<std::string>& taken) {
  const std::string own = slug(name);
  if (name.empty()) return "is missing; give each method a name of its own";
  if (printable(name) != name) return "has control characters; leave them out";
  if (own.empty()) return "has no letter a-z and no digit, by which directories are named; add one";
  if (taken.insert(own).second) return "";
  return "is used twice, or differs from another only in case or signs; give each method a name of its own";
}

void read_methods(const toml::table& study_table, Study& study, Faults& faults) {
  const auto* methods = study_table["method"].as_array();
  if (methods == nullptr || methods->empty()) {
    throw InputError(fmt::format("{}: no [[study.method]]; give at least one, with name and set", study.origin));
  }
  std::set<std::string> names;
  for (const auto& entry : *methods) {
    const auto* table = entry.as_table();
    if (table == nullptr) {
      throw InputError(fmt::format("{}: [study] method must be tables, [[study.method]]", place(study.origin, entry)));
    }
    StudyMethod method;
    read_table(*table, "study.method", study.origin, faults, [&](auto&& visit) { for_each_field(method, visit); });
    const std::string fault = fault_of_name(method.name, names);
    if (!fault.empty()) {
      throw InputError(fmt::format("{}: [[study.method]] name \"{}\" {}", place(study.origin, entry),
                                   printable(method.name), fault));
    }
    study.methods.push_back(std::move(method));
  }
}

// A key in a method's `set` that the study decides would be replaced without a word, and the table would compare
// something else than it says.
void refuse_replaced_keys(const Study& study) {
  for (const StudyMethod& method : study.methods) {
    const std::map<std::string, std::pair<const char*, bool>> replaced = {
        {"pipeline.stages", {"[study] stages", true}},
        {"run.seed", {"[study] seeds", true}},
        {"pipeline.schedule", {"[study] schedules", !study.schedules.empty()}},
        {"pipeline.weights", {"[study] weights", !study.weights.empty()}},
        {"optimizer.lr",
         {method.learning_rates.empty() ? "[study] learning_rates" : "the method's learning_rates",
          !method.learning_rates.empty() || !study.learning_rates.empty()}},
    };
    for (const std::string& set : method.set) {
      const auto found = replaced.find(set.substr(0, set.find('=')));
      if (found == replaced.end() || !found->second.second) continue;
      throw InputError(fmt::format("{}: [[study.method]] \"{}\": set {}: a study takes that from {}; give it there",
                                   study.origin, printable(method.name), printable(set), found->second.first));
    }
  }
}

// Calls `make`. A fault that it finds is told with the study and the method that it is in, in each of its lines.
template <typename Make>
auto of_method(const Study& study, const StudyArm& arm, Make&& make) {
  try {
    return make();
  } catch (const InputError& error) {
    const std::string where =
        fmt::format("{}: [[study.method]] \"{}\": ", study.origin, printable(study.methods[arm.method].name));
    std::string text, line;
    for (std::istringstream lines(error.what()); std::getline(lines, line);) {
      const bool is_override = line.starts_with("--set ");  // it is in the method's `set`, not on the command line
      text += (text.empty() ? "" : "\n") + where + (is_override ? line.substr(2) : line);
    }
    throw InputError(text);
  }
}

Config run_config(const Study& study, const StudyArm& arm, double learning_rate, int64_t seed, int64_t updates) {
  std::vector<std::string> set;
  // Off by default: a checkpoint by the clock drains the pipeline, and runs that are compared must be repeatable.
  if (!study.timed_checkpoints) set.emplace_back("run.checkpoint_minutes=0");
  const auto& method = study.methods[arm.method].set;
  set.insert(set.end(), method.begin(), method.end());
  // An axis that the study does not give leaves the key to the method.
  if (!arm.schedule.empty()) set.push_back(fmt::format("pipeline.schedule={}", toml_string(arm.schedule)));
  if (!arm.weights.empty()) set.push_back(fmt::format("pipeline.weights={}", arm.weights));
  set.push_back(fmt::format("pipeline.stages={}", arm.stages));
  if (learning_rate >= 0) set.push_back(fmt::format("optimizer.lr={}", toml_number(learning_rate)));
  set.push_back(fmt::format("run.seed={}", seed));
  if (updates > 0) set.push_back(fmt::format("run.updates={}", updates));
  Config config = of_method(study, arm, [&] { return study.config_with(set); });
  make_paths_absolute(config);
  return config;
}

std::string arm_directory(const Study& study, const StudyArm& arm) {
  return fmt::format("{}-p{}", slug(label(study, arm)), arm.stages);
}

// Two methods with the same keys and learning rates would be trained twice and compared with each other. That happens
// when a default becomes what one of them sets, or when the study's own lists replace what distinguishes them.
void refuse_equal_arms(const Study& study, const std::vector<StudyArm>& arms) {
  std::map<std::pair<std::string, std::vector<double>>, size_t> methods;  // by configuration and rates to try
  for (const StudyArm& arm : arms) {
    const std::vector<double> rates = learning_rates(study, arm);
    const std::string config = to_toml(run_config(study, arm, rates[0], study.seeds[0], 0));
    const auto [first, is_new] = methods.try_emplace({config, rates}, arm.method);
    if (is_new) continue;
    throw InputError(fmt::format(
        "{}: [[study.method]] \"{}\" and \"{}\" are the same: every key has the same value in both, with {}; leave one "
        "out, or let it set another value",
        study.origin, printable(study.methods[first->second].name), printable(study.methods[arm.method].name),
        counted(arm.stages, "stage")));
  }
}

// Different pairs of a method and a schedule may have one name.
void refuse_shared_directories(const Study& study, const std::vector<StudyArm>& arms) {
  std::map<std::string, std::string> labels;  // by directory
  for (const StudyArm& arm : arms) {
    const std::string directory = arm_directory(study, arm), own = label(study, arm);
    const auto [first, is_new] = labels.emplace(directory, own);
    if (is_new) continue;
    throw InputError(
        fmt::format("{}: the arms \"{}\" and \"{}\" would share the directory {}; rename a method or a schedule's file",
                    study.origin, first->second, own, directory));
  }
}

}  // namespace

Study parse_study(std::string_view toml, const std::string& origin) {
  Study study;
  study.config_with = config_with(toml, origin, {"study"});
  study.origin = origin;
  toml::table root = parse_toml(toml, origin);
  toml::table* table = root["study"].as_table();
  if (table == nullptr) {
    throw InputError(fmt::format("{}: no table [study]; gyre study --help-study lists what it can say", origin));
  }
  Faults faults;
  faults.collect([&] { read_methods(*table, study, faults); });
  table->erase("method");
  read_table(*table, "study", origin, faults, [&](auto&& visit) { for_each_field(study, visit); });
  Config base;
  faults.collect([&] { base = study.config_with({}); });
  faults.raise();
  study.timed_checkpoints = static_cast<bool>(root["run"]["checkpoint_minutes"]);
  const auto refuse_twice = [&](const std::string& key, const auto& values) {
    for (auto value = values.begin(); value != values.end(); ++value) {
      if (std::find(values.begin(), value, *value) == value) continue;
      throw InputError(fmt::format("{}: {} has {} twice; leave one out", origin, key, *value));
    }
  };
  refuse_twice("[study] stages", study.stages);
  refuse_twice("[study] schedules", study.schedules);
  refuse_twice("[study] weights", study.weights);
  refuse_twice("[study] learning_rates", study.learning_rates);
  refuse_twice("[study] seeds", study.seeds);
  for (const StudyMethod& method : study.methods) {
    refuse_twice(fmt::format("[[study.method]] \"{}\" learning_rates", printable(method.name)), method.learning_rates);
  }
  refuse_replaced_keys(study);
  if (study.stages.empty()) study.stages = {base.pipeline.stages};
  if (study.schedules.empty()) study.schedules = {""};
  if (study.weights.empty()) study.weights = {""};
  if (study.seeds.empty()) study.seeds = {base.run.seed};
  if (study.sweep_updates >= base.run.updates) study.sweep_updates = 0;
  for (const StudyMethod& method : study.methods) {
    for (const int64_t stages : method.stages) {
      if (std::find(study.stages.begin(), study.stages.end(), stages) != study.stages.end()) continue;
      throw InputError(
          fmt::format("{}: [[study.method]] \"{}\" wants {}, which [study] stages does not have; add it there", origin,
                      method.name, counted(stages, "stage")));
    }
  }

  // Finds faults in settings and schedules now, and not after hours of training.
  const auto arms = study_arms(study);
  refuse_shared_directories(study, arms);
  refuse_equal_arms(study, arms);
  for (size_t arm = 0; arm < arms.size(); ++arm) {
    for (const StudyRun& run : final_runs(study, arms, arm, learning_rates(study, arms[arm])[0])) {
      if (run.config.run.updates < study.smooth) {
        throw InputError(fmt::format("{}: [study] smooth is {}, more than the {} of a run of \"{}\"", origin,
                                     study.smooth, counted(run.config.run.updates, "update"),
                                     printable(study.methods[arms[arm].method].name)));
      }
      if (!run.config.run.prometheus.empty()) {
        throw InputError(fmt::format(
            "{}: [run] prometheus: all runs of a study would write that one file; leave it out, and watch a study with "
            "gyre top",
            origin));
      }
      of_method(study, arms[arm], [&] { return build_schedule(run.config); });
    }
  }
  return study;
}

Study load_study(const std::filesystem::path& path) {
  Study study = parse_study(read_file(path), path.string());
  study.name = path.stem().string();
  return study;
}

std::string describe_study() {
  std::string text;
  const auto describe = [&](auto& fields) {
    text += "\n| key | default | meaning |\n|---|---|---|\n";
    for_each_field(fields, [&](const char* key, const auto& field, const Range&, const char* meaning) {
      text += fmt::format("| `{}` | `{}` | {} |\n", key, toml_value(field), meaning);
    });
  };
  Study study;
  StudyMethod method;
  text += "### [study]\n";
  describe(study);
  text += "\n### [[study.method]]\n";
  describe(method);
  return text;
}

nlohmann::ordered_json study_schema() {
  const auto keys = [](auto& fields) {
    nlohmann::ordered_json table = table_schema();
    for_each_field(fields, [&](const char* key, const auto& field, const Range& range, const char* meaning) {
      table["properties"][key] = option_schema(field, range, meaning);
    });
    return table;
  };
  Study study;
  StudyMethod method;
  nlohmann::ordered_json schema = config_schema();
  schema["title"] = "A study of gyre";
  schema["required"] = {"study"};
  nlohmann::ordered_json& own = schema["properties"]["study"] = keys(study);
  own["required"] = {"method"};
  own["properties"]["method"] = {{"type", "array"}, {"minItems", 1}, {"items", keys(method)}};
  own["properties"]["method"]["items"]["required"] = {"name"};
  return schema;
}

std::vector<StudyArm> study_arms(const Study& study) {
  std::vector<StudyArm> arms;
  for (size_t method = 0; method < study.methods.size(); ++method) {
    for (const std::string& schedule : study.schedules) {
      for (const std::string& weights : study.weights) {
        const auto& own = study.methods[method].stages;
        for (const int64_t stages : study.stages) {
          const bool runs = own.empty() || std::find(own.begin(), own.end(), stages) != own.end();
          if (runs) arms.push_back({method, schedule, weights, stages});
        }
      }
    }
  }
  return arms;
}

std::string label(const Study& study, const StudyArm& arm) {
  std::string text = study.methods[arm.method].name;
  if (study.schedules.size() > 1) text += ", " + printable(arm.schedule);  // may be a file, of any name
  if (study.weights.size() > 1) text += ", " + arm.weights;
  return text;
}

std::vector<double> learning_rates(const Study& study, const StudyArm& arm) {
  const auto& own = study.methods[arm.method].learning_rates;
  if (!own.empty()) return own;
  if (!study.learning_rates.empty()) return study.learning_rates;
  return {run_config(study, arm, -1, study.seeds[0], 0).optimizer.lr};
}

std::vector<StudyRun> trials(const Study& study, const std::vector<StudyArm>& arms, size_t arm) {
  const auto rates = learning_rates(study, arms[arm]);
  std::vector<StudyRun> runs;
  if (rates.size() < 2) return runs;
  for (const double rate : rates) {
    // A full-length trial is also the first seed's final run, so it has the same directory.
    const std::string kind = study.sweep_updates > 0 ? fmt::format("trial{}-", study.sweep_updates) : "";
    runs.push_back({arm, rate, study.seeds[0], true,
                    fmt::format("{}/{}lr{}-seed{}", arm_directory(study, arms[arm]), kind, rate, study.seeds[0]),
                    run_config(study, arms[arm], rate, study.seeds[0], study.sweep_updates)});
  }
  return runs;
}

std::vector<StudyRun> final_runs(const Study& study, const std::vector<StudyArm>& arms, size_t arm, double rate) {
  std::vector<StudyRun> runs;
  for (const int64_t seed : study.seeds) {
    runs.push_back({arm, rate, seed, false, fmt::format("{}/lr{}-seed{}", arm_directory(study, arms[arm]), rate, seed),
                    run_config(study, arms[arm], rate, seed, 0)});
  }
  return runs;
}

}  // namespace gyre
