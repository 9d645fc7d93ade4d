#include "gyre/study/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/json_text.h"
#include "gyre/core/text.h"
#include "gyre/report/line_chart.h"

namespace gyre {
namespace {

double last_loss(const ArmResult& arm) {
  return arm.loss.empty() ? std::nan("") : arm.loss.back();
}

// Arms in rows by label, in the order in which labels first appear.
std::vector<std::pair<std::string, std::map<int64_t, const ArmResult*>>> rows_of(const StudyResult& result) {
  std::vector<std::pair<std::string, std::map<int64_t, const ArmResult*>>> rows;
  for (const ArmResult& arm : result.arms) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == arm.label; });
    if (row == rows.end()) row = rows.insert(rows.end(), {arm.label, {}});
    row->second[arm.arm.stages] = &arm;
  }
  return rows;
}

// Escapes bars, which would begin another cell of a Markdown table.
std::string cell_text(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '|' ? "\\|" : std::string(1, c);
  return text;
}

// In quotes, in which a quote is two.
std::string csv_text(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

// A Markdown table with a column for each number of stages; `cell` gives an arm's cell.
std::string stage_table(const StudyResult& result, const std::function<std::string(const ArmResult&)>& cell) {
  std::string text = "| method |", rule = "|---|";
  for (const int64_t stages : result.stages) {
    text += fmt::format(" P = {} |", stages);
    rule += "---|";
  }
  text += "\n" + rule + "\n";
  for (const auto& [name, arms] : rows_of(result)) {
    text += "| " + cell_text(name) + " |";
    for (const int64_t stages : result.stages) {
      const auto arm = arms.find(stages);
      text += fmt::format(" {} |", arm == arms.end() ? "" : arm->second->diverged ? "diverged" : cell(*arm->second));
    }
    text += "\n";
  }
  return text;
}

// Three digits, or all of a larger number's before the point: a whole number of seconds would be 0 for a short run.
std::string seconds_text(double seconds) {
  return seconds < 100 ? fmt::format("{:.3g}", seconds) : fmt::format("{:.0f}", seconds);
}

std::string trials_text(const ArmResult& arm) {
  std::string text = fmt::format("{}", arm.learning_rate);
  if (arm.trials.empty()) return text;
  text += " of";
  for (const TrialResult& trial : arm.trials) {
    text += fmt::format(" {}: {}", trial.learning_rate, trial.loss ? fmt::format("{:.3f}", *trial.loss) : "diverged");
    if (&trial != &arm.trials.back()) text += ",";
  }
  return text;
}

}  // namespace

ArmDiagnostics read_diagnostics(const std::string& text, const std::string& origin) {
  // Null stands for a number that is not finite.
  const auto number = [](const nlohmann::json& value) { return value.is_null() ? std::nan("") : value.get<double>(); };
  const auto optional = [](const nlohmann::json& value) {
    return value.is_null() ? std::nullopt : std::optional(value.get<double>());
  };
  try {
    const auto json = nlohmann::json::parse(text);
    const auto& first = json.at("stages").at(0);
    return {number(json.at("hessian_norm")), number(json.at("rotated_norm")), optional(first.at("cosine")),
            optional(first.at("oscillation"))};
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format(
        "{}: is damaged: it is not what gyre diagnose prints; remove it, and gyre study measures it again", origin));
  }
}

std::optional<double> best_rate(const std::vector<TrialResult>& trials) {
  const TrialResult* best = nullptr;
  for (const TrialResult& trial : trials) {
    if (trial.loss && (best == nullptr || *trial.loss < *best->loss)) best = &trial;
  }
  return best == nullptr ? std::nullopt : std::optional(best->learning_rate);
}

StudyResult summarise(const Study& study, std::vector<ArmResult> arms) {
  StudyResult result;
  result.name = study.name;
  result.smooth = study.smooth;
  result.stages = study.stages;
  std::sort(result.stages.begin(), result.stages.end());
  double highest = -std::numeric_limits<double>::infinity();
  for (ArmResult& arm : arms) {
    arm.label = label(study, arm.arm);
    if (arm.diverged) continue;
    arm.loss = smoothed(arm.curve.loss, study.smooth);
    highest = std::max(highest, last_loss(arm));
  }
  result.targets = study.targets;
  result.target_rule = study.targets.empty() ? "There is no target, since no arm has a last training loss."
                                             : "Targets are training losses that the study names.";
  if (result.targets.empty() && std::isfinite(highest)) {
    result.targets = {highest};
    result.target_rule =
        "The target is the highest last training loss of the arms that did not diverge, so that every one reaches it.";
  }
  result.target_rule += fmt::format(
      " The loss is the mean of {}; it counts as reached at the first update where "
      "that mean is at most the target.",
      counted(study.smooth, "update"));
  if (const size_t all = study_arms(study).size(); arms.size() < all) {
    result.target_rule += fmt::format(" Left out: {} of {}, whose runs have not all ended.", all - arms.size(),
                                      counted(static_cast<int64_t>(all), "arm"));
  }
  for (ArmResult& arm : arms) {
    for (const double target : result.targets) {
      TargetResult reached{target, {}, {}, {}};
      if (!arm.diverged) reached.updates = first_at_most(arm.loss, target, study.smooth);
      if (reached.updates) reached.seconds = arm.curve.seconds[static_cast<size_t>(*reached.updates) - 1];
      arm.targets.push_back(reached);
    }
  }
  for (ArmResult& arm : arms) {
    if (result.stages.size() == 1) break;  // nothing to compare with
    const auto base = std::find_if(arms.begin(), arms.end(), [&](const ArmResult& other) {
      return other.label == arm.label && other.arm.stages == result.stages.front();
    });
    if (base == arms.end()) continue;
    for (size_t i = 0; i < result.targets.size(); ++i) {
      const auto &mine = arm.targets[i].updates, &theirs = base->targets[i].updates;
      if (mine && theirs) arm.targets[i].slowdown = static_cast<double>(*mine) / static_cast<double>(*theirs);
    }
  }
  result.arms = std::move(arms);
  return result;
}

std::string to_markdown(const StudyResult& result) {
  std::string text = fmt::format("# {}\n\n{}\n", result.name, result.target_rule);
  for (size_t i = 0; i < result.targets.size(); ++i) {
    text += fmt::format("\n## Updates to a loss of {:.4f}\n\n", result.targets[i]);
    if (result.stages.size() > 1) {
      text += fmt::format("In brackets: over those with P = {}.\n\n", result.stages.front());
    }
    text += stage_table(result, [&](const ArmResult& arm) {
      const TargetResult& reached = arm.targets[i];
      if (!reached.updates) return std::string("not reached");
      return fmt::format("{}{}", *reached.updates, reached.slowdown ? fmt::format(" ({:.2f})", *reached.slowdown) : "");
    });
    text += fmt::format("\n## Seconds to a loss of {:.4f}\n\n", result.targets[i]);
    text += stage_table(result, [&](const ArmResult& arm) {
      const TargetResult& reached = arm.targets[i];
      return reached.seconds ? seconds_text(*reached.seconds) : std::string("not reached");
    });
  }
  text += "\n## Last training loss\n\n";
  text += stage_table(result, [](const ArmResult& arm) { return fmt::format("{:.4f}", last_loss(arm)); });
  if (std::any_of(result.arms.begin(), result.arms.end(), [](const auto& arm) { return arm.curve.val_loss; })) {
    text += "\n## Last validation loss\n\n";
    text += stage_table(result, [](const ArmResult& arm) {
      return arm.curve.val_loss ? fmt::format("{:.4f}", *arm.curve.val_loss) : std::string();
    });
  }
  if (std::any_of(result.arms.begin(), result.arms.end(), [](const auto& arm) { return arm.diagnostics; })) {
    text +=
        "\n## Hessian (1,1)-norm\n\nOf the matrices that are rotated: in their own coordinates, and in rotated ones "
        "over "
        "that.\n\n";
    text += stage_table(result, [](const ArmResult& arm) {
      if (!arm.diagnostics) return std::string();
      return fmt::format("{:.3g} ({:.3f})", arm.diagnostics->hessian_norm,
                         arm.diagnostics->rotated_norm / arm.diagnostics->hessian_norm);
    });
    text +=
        "\n## Updates of the first stage\n\nCosine between the update made of the late gradient and that of a current "
        "one; oscillation. -: no update changes the weights, since the learning rate is 0 at the end.\n\n";
    text += stage_table(result, [](const ArmResult& arm) {
      if (!arm.diagnostics) return std::string();
      if (!arm.diagnostics->cosine || !arm.diagnostics->oscillation) return std::string("-");
      return fmt::format("{:.3f}; {:.3f}", *arm.diagnostics->cosine, *arm.diagnostics->oscillation);
    });
  }
  text += "\n## Learning rates\n\nThe one used, of those tried with the last loss of each trial.\n\n";
  text += stage_table(result, trials_text);
  return text;
}

std::string to_csv(const StudyResult& result) {
  std::string text = "method,stages,learning_rate,diverged,last_loss,val_loss,target,updates,seconds,slowdown\n";
  const auto optional = [](const auto& value) { return value ? fmt::format("{}", *value) : std::string(); };
  for (const ArmResult& arm : result.arms) {
    const std::string own =
        fmt::format("{},{},{},{},{},{}", csv_text(arm.label), arm.arm.stages, arm.learning_rate, arm.diverged ? 1 : 0,
                    arm.diverged ? "" : fmt::format("{}", last_loss(arm)), optional(arm.curve.val_loss));
    if (arm.targets.empty()) text += own + ",,,,\n";  // an arm has a row though there is no target
    for (const TargetResult& target : arm.targets) {
      text += fmt::format("{},{},{},{},{}\n", own, target.loss, optional(target.updates), optional(target.seconds),
                          optional(target.slowdown));
    }
  }
  return text;
}

std::string to_json(const StudyResult& result) {
  using Json = nlohmann::ordered_json;
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json json = {{"study", result.name},
               {"target_rule", result.target_rule},
               {"targets", result.targets},
               {"smooth", result.smooth},
               {"arms", Json::array()}};
  for (const ArmResult& arm : result.arms) {
    Json entry = {{"method", arm.label},
                  {"stages", arm.arm.stages},
                  {"learning_rate", arm.learning_rate},
                  {"diverged", arm.diverged},
                  {"last_loss", arm.diverged ? Json(nullptr) : Json(last_loss(arm))},
                  {"val_loss", optional(arm.curve.val_loss)},
                  {"targets", Json::array()},
                  {"trials", Json::array()}};
    for (const TargetResult& target : arm.targets) {
      entry["targets"].push_back({{"loss", target.loss},
                                  {"updates", optional(target.updates)},
                                  {"seconds", optional(target.seconds)},
                                  {"slowdown", optional(target.slowdown)}});
    }
    if (arm.diagnostics) {
      entry["diagnostics"] = {{"hessian_norm", arm.diagnostics->hessian_norm},
                              {"rotated_norm", arm.diagnostics->rotated_norm},
                              {"cosine", optional(arm.diagnostics->cosine)},
                              {"oscillation", optional(arm.diagnostics->oscillation)}};
    }
    for (const TrialResult& trial : arm.trials) {
      entry["trials"].push_back({{"learning_rate", trial.learning_rate}, {"last_loss", optional(trial.loss)}});
    }
    json["arms"].push_back(std::move(entry));
  }
  return json_text(json, 1) + "\n";
}

std::vector<std::filesystem::path> write_results(const StudyResult& result, const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> written;
  const auto write = [&](const std::string& name, const std::string& text) {
    write_file_atomic(directory / name, text);
    written.push_back(directory / name);
  };
  write("results.md", to_markdown(result));
  write("results.csv", to_csv(result));
  write("results.json", to_json(result));
  const auto rows = rows_of(result);
  for (const int64_t stages : result.stages) {
    LineChart chart{counted(stages, "stage"), "updates", "training loss", false, false, false, {}};
    for (const auto& [name, arms] : rows) {
      const auto arm = arms.find(stages);
      if (arm == arms.end()) continue;
      ChartLine line{name, {}};
      for (auto i = static_cast<size_t>(result.smooth) - 1; i < arm->second->loss.size(); ++i) {
        line.points.emplace_back(static_cast<double>(i + 1), arm->second->loss[i]);
      }
      chart.lines.push_back(std::move(line));
    }
    write(fmt::format("loss-{}.svg", stages), to_svg(chart));
  }
  if (result.stages.size() > 1 && !result.targets.empty()) {
    LineChart chart{fmt::format("Updates to a loss of {:.3f}, over those with {}", result.targets[0],
                                counted(result.stages.front(), "stage")),
                    "stages",
                    "slowdown",
                    true,
                    true,
                    true,
                    {}};
    for (const auto& [name, arms] : rows) {
      ChartLine line{name, {}};
      for (const auto& [stages, arm] : arms) {
        const auto slowdown = arm->targets[0].slowdown;
        if (slowdown) line.points.emplace_back(static_cast<double>(stages), *slowdown);
      }
      chart.lines.push_back(std::move(line));
    }
    write("slowdown.svg", to_svg(chart));
  }
  return written;
}

}  // namespace gyre
