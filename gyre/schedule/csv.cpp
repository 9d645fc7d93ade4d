#include "gyre/schedule/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/schedule/limits.h"

namespace gyre {
namespace {

// Removes the text before the separator from the front of `rest`, with the separator, and returns it.
std::string_view next_part(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// The actions of a cell, in order: one (0F7), or several that PyTorch runs as one, (0F7;7B3)OVERLAP_F_B. Throws
// InputError.
std::vector<Action> cell_actions(std::string_view cell) {
  std::vector<Action> actions;
  if (cell.front() != '(') {
    actions.push_back(parse_action(cell, 1));
  } else {
    const size_t end = cell.find(')');
    if (end == std::string_view::npos || cell.substr(end + 1) != "OVERLAP_F_B") {
      throw InputError(
          fmt::format("'{}' is not a cell; expected an action, like 2F17, or actions that run as one, like "
                      "(0F7;7B3)OVERLAP_F_B",
                      printable(cell)));
    }
    std::string_view rest = cell.substr(1, end - 1);
    for (bool more = true; more;) {
      more = rest.find(';') != std::string_view::npos;
      actions.push_back(parse_action(trim(next_part(rest, ';')), 1));
    }
  }
  for (const Action& action : actions) {
    if (action.microbatch >= kMostWindow) {
      throw InputError(fmt::format("microbatches are numbered to {}", kMostWindow - 1));
    }
    if (action.is_per_window()) throw InputError(fmt::format("'{}' is not a computation", printable(cell)));
  }
  return actions;
}

}  // namespace

std::string to_csv(const Schedule& schedule, int64_t microbatches) {
  if (schedule.pipelines != 1) {
    throw InputError(fmt::format("schedule {}: has {} pipelines, which this CSV cannot express; use --format text",
                                 schedule.name, schedule.pipelines));
  }
  if (count_actions(schedule, microbatches) > kMostWritten) {
    throw InputError(
        fmt::format("schedule {}: {} microbatches on {} stages are more than {} actions, the most that are "
                    "written; give fewer microbatches",
                    schedule.name, microbatches, schedule.stages, kMostWritten));
  }
  std::string text;
  for (int worker = 0; worker < schedule.workers; ++worker) {
    bool first = true;
    for (ProgramCursor cursor(schedule, worker, microbatches); cursor.peek(); cursor.advance()) {
      if (cursor.peek()->is_per_window()) continue;
      if (!first) text += ',';
      text += to_string(*cursor.peek(), 1);
      first = false;
    }
    text += '\n';
  }
  return text;
}

Schedule parse_csv(std::string_view text, const std::string& origin) {
  Schedule schedule;
  schedule.name = origin;
  std::map<int, int> worker_of;  // by stage
  int64_t microbatches = 0;
  for (int row = 0; !text.empty(); ++row) {
    std::string_view line = next_part(text, '\n');
    if (trim(line).empty() && trim(text).empty()) break;
    Program program;
    for (int column = 1; !line.empty(); ++column) {
      const std::string_view cell = trim(next_part(line, ','));
      if (cell.empty()) continue;
      const auto refuse = [&](const std::string& why) {
        throw InputError(fmt::format("{}:{}: cell {}: {}", origin, row + 1, column, why));
      };
      std::vector<Action> actions;
      try {
        actions = cell_actions(cell);
      } catch (const InputError& error) {
        refuse(error.what());
      }
      for (const Action& action : actions) {
        const auto [placed, is_new] = worker_of.emplace(action.stage, row);
        if (placed->second != row) {
          refuse(
              fmt::format("stage {} is in row {} already; a stage has one worker", action.stage, placed->second + 1));
        }
        microbatches = std::max(microbatches, action.microbatch + 1);
        program.period.push_back(action);
      }
    }
    if (program.period.empty()) throw InputError(fmt::format("{}:{}: the row has no action", origin, row + 1));
    schedule.programs.push_back(std::move(program));
  }
  if (schedule.programs.empty()) throw InputError(fmt::format("{}: has no actions", origin));

  schedule.workers = static_cast<int>(schedule.programs.size());
  schedule.stages = worker_of.rbegin()->first + 1;
  schedule.window = schedule.shift = microbatches;
  schedule.placement.resize(1);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const auto found = worker_of.find(stage);
    if (found == worker_of.end()) {
      throw InputError(fmt::format("{}: has stage {} but no stage {}", origin, schedule.stages - 1, stage));
    }
    schedule.placement[0].push_back(found->second);
    schedule.programs[found->second].period.push_back({ActionKind::Update, 0, stage, 0});
  }
  schedule.owner = schedule.placement;
  return schedule;
}

}  // namespace gyre
