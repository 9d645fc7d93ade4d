#include "gyre/schedule/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/schedule/limits.h"

namespace gyre {
namespace {

constexpr std::string_view kFirstLine = "gyre-schedule 1";

std::string actions_text(const std::vector<Action>& actions, int pipelines) {
  std::string text;
  for (const Action& action : actions) text.append(" ").append(to_string(action, pipelines));
  return text;
}

// The name as a file can have it: what follows a # there is a comment. A CSV file's name is its path.
std::string name_text(const std::string& name) {
  std::string text = printable(name);
  std::ranges::replace(text, '#', '_');
  return text;
}

// Reads the lines of a schedule file; every error names the file and the line.
class Parser {
 public:
  Parser(std::string_view text, const std::string& origin) : rest_(text), origin_(origin) {}

  Schedule parse() {
    if (next_line() != kFirstLine) fail(fmt::format("expected the first line to be '{}'", kFirstLine));
    schedule_.name = printable(value("name"));
    if (schedule_.name.empty()) fail("expected a name");
    schedule_.stages = static_cast<int>(number(value("stages"), 1, kMostStages));
    schedule_.pipelines = static_cast<int>(number(value("pipelines"), 1, kMostStages));
    schedule_.workers = static_cast<int>(number(value("workers"), 1, kMostStages));
    schedule_.window = number(value("window"), 1, kMostWindow);
    schedule_.shift = number(value("shift"), 1, kMostWindow);
    if (schedule_.shift % schedule_.window != 0)
      fail(fmt::format("expected a multiple of the window, {}", schedule_.window));
    const std::string_view kind = value("kind");
    if (kind != "training" && kind != "forward-only") fail("expected 'training' or 'forward-only'");
    schedule_.forward_only = kind == "forward-only";
    const auto weights = parse_weight_policy(value("weights"));
    if (!weights) fail("expected 'stash', 'latest', 'predict' or 'corrected'");
    schedule_.weights = *weights;
    for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline)
      schedule_.placement.push_back(workers(value("placement")));
    do {
      schedule_.owner.push_back(workers(value("owner")));
    } while (next_is("owner"));
    for (int worker = 0; worker < schedule_.workers; ++worker) schedule_.programs.push_back(program(worker));
    while (!rest_.empty()) {
      if (!next_line().empty())
        fail(fmt::format("expected the end of the file after worker {}", schedule_.workers - 1));
    }
    return std::move(schedule_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("{}:{}: {}, found '{}'", origin_, line_number_, what, printable(line_.substr(0, 60))));
  }

  // The next line without comment and surrounding blanks.
  std::string_view next_line() {
    ++line_number_;
    const size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    line_ = trim(line_.substr(0, line_.find('#')));
    return line_;
  }

  // The text after `key` on the next line that is not empty.
  std::string_view value(std::string_view key) {
    while (next_line().empty()) {
      if (rest_.empty()) fail(fmt::format("expected '{}' before the end of the file", key));
    }
    const std::string_view rest = line_.substr(std::min(key.size(), line_.size()));
    const bool ends = rest.empty() || rest.front() == ' ' || rest.front() == '\t' || key.ends_with(':');
    if (!line_.starts_with(key) || !ends) {
      fail(fmt::format("expected '{}'", key));
    }
    return trim(rest);
  }

  // Whether the next line that is not empty begins with `key`.
  bool next_is(std::string_view key) {
    Parser ahead(rest_, origin_);
    while (ahead.next_line().empty() && !ahead.rest_.empty()) {
    }
    const auto found = words(ahead.line_);
    return !found.empty() && found.front() == key;
  }

  int64_t number(std::string_view text, int64_t least, int64_t most) const {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool has_more = text.starts_with('-') || (text.size() > 1 && text.starts_with('0'));  // -0, 02
    if (error != std::errc{} || end != text.data() + text.size() || has_more || number < least || number > most) {
      fail(fmt::format("expected a whole number from {} to {}, of digits without zeros before them", least, most));
    }
    return number;
  }

  static std::vector<std::string_view> words(std::string_view text) {
    std::vector<std::string_view> words;
    for (text = trim(text); !text.empty(); text = trim(text)) {
      const size_t end = std::min(text.find_first_of(" \t"), text.size());
      words.push_back(text.substr(0, end));
      text.remove_prefix(end);
    }
    return words;
  }

  // One worker for each stage.
  std::vector<int> workers(std::string_view text) const {
    std::vector<int> result;
    for (const std::string_view word : words(text)) {
      result.push_back(static_cast<int>(number(word, 0, schedule_.workers - 1)));
    }
    if (static_cast<int>(result.size()) != schedule_.stages) fail(fmt::format("expected {} workers", schedule_.stages));
    return result;
  }

  Program program(int worker) {
    const std::string_view text = value(fmt::format("worker {}:", worker));
    const size_t bar = text.find('|');
    Program program;
    if (bar != std::string_view::npos) program.prologue = actions(text.substr(0, bar));
    program.period = actions(bar == std::string_view::npos ? text : text.substr(bar + 1));
    if (program.period.empty()) fail(fmt::format("expected actions that worker {} repeats", worker));
    return program;
  }

  std::vector<Action> actions(std::string_view text) const {
    std::vector<Action> actions;
    for (const std::string_view word : words(text)) {
      try {
        actions.push_back(parse_action(word, schedule_.pipelines));
      } catch (const InputError& error) {
        throw InputError(fmt::format("{}:{}: {}", origin_, line_number_, error.what()));
      }
    }
    return actions;
  }

  std::string_view rest_;
  const std::string& origin_;
  std::string_view line_;
  int line_number_ = 0;
  Schedule schedule_;
};

}  // namespace

std::string to_text(const Schedule& schedule) {
  std::string text = fmt::format(
      "{}\nname {}\nstages {}\npipelines {}\nworkers {}\nwindow {}\nshift {}\nkind {}\nweights {}\n", kFirstLine,
      name_text(schedule.name), schedule.stages, schedule.pipelines, schedule.workers, schedule.window, schedule.shift,
      schedule.forward_only ? "forward-only" : "training", to_string(schedule.weights));
  for (const auto& pipeline : schedule.placement) text += fmt::format("placement {}\n", fmt::join(pipeline, " "));
  for (const auto& shard : schedule.owner) text += fmt::format("owner {}\n", fmt::join(shard, " "));
  for (int worker = 0; worker < schedule.workers; ++worker) {
    const Program& program = schedule.programs[worker];
    text += fmt::format("worker {}:", worker);
    if (!program.prologue.empty()) text += actions_text(program.prologue, schedule.pipelines) + " |";
    text += actions_text(program.period, schedule.pipelines) + "\n";
  }
  return text;
}

Schedule parse_schedule(std::string_view text, const std::string& origin) {
  return Parser(text, origin).parse();
}

int line_of_worker(std::string_view text, int worker) {
  const std::string key = fmt::format("worker {}:", worker);
  int number = 1;
  for (; !trim(text.substr(0, text.find('\n'))).starts_with(key); ++number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) throw std::out_of_range(fmt::format("no worker {} in the schedule", worker));
    text.remove_prefix(end + 1);
  }
  return number;
}

}  // namespace gyre
