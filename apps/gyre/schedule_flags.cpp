#include "schedule_flags.h"

#include <fmt/format.h>

#include <set>

#include "command.h"
#include "gyre/config/schedule_options.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/core/toml_fields.h"
#include "gyre/schedule/limits.h"
#include "gyre/schedule/load.h"
#include "number_flag.h"

namespace gyre::app {
namespace {

const OptionNames kFlagNames{"--stages", "--window", "--replicas", "--tb-over-tf", true};
constexpr int64_t kDefaultWindows = 8;
constexpr int64_t kMaxDefaultWindow = 4096;  // a window's program is held in memory

// The longest window that divides the microbatches into equal windows and is a multiple of `multiple_of`; all of them
// if there is none.
int64_t dividing_window(int64_t microbatches, int64_t multiple_of) {
  for (int64_t window = std::min(microbatches, kMaxDefaultWindow); window > 1; --window) {
    if (microbatches % window == 0 && window % multiple_of == 0) return window;
  }
  return microbatches;
}

// The window if none is given: schedules with a flush take all microbatches into one, others have what suits them.
int64_t default_window(const ScheduleOptions& options, int64_t all_microbatches) {
  const ScheduleKind* kind = schedule_kinds().find(options.name);
  if (kind == nullptr) return 1;  // a file gives its own
  const SuitableWindows windows = kind->windows == nullptr ? SuitableWindows() : kind->windows(options);
  const int64_t microbatches = all_microbatches / options.replicas;
  return windows.takes_all && microbatches > 0 ? dividing_window(microbatches, windows.multiple_of) : windows.usual;
}

// Adds the flags of options that only some schedules have. Schedules with an option of the same name share its flag.
void add_own_flags(CLI::App& command, const OptionNames& names, std::map<std::string, std::string>& own) {
  for (const ScheduleKind& kind : schedule_kinds().all()) {
    kind.own.each_option([&](const char* key, const auto& field, const Range& range, const char* meaning) {
      if (own.count(key) > 0) return;
      using T = std::remove_cvref_t<decltype(field)>;
      CLI::Option* option = command.add_option(names.of(key), own[key], fmt::format("{}: {}", kind.name, meaning));
      if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
        const NumberRange<T> bounds{static_cast<T>(std::max(range.least, -9e18)),
                                    static_cast<T>(std::min(range.most, 9e18))};
        option->check(CLI::Validator(
            [flag = names.of(key), bounds](const std::string& text) {
              check_number(flag, text, bounds);
              return std::string();
            },
            ""));
      }
    });
  }
}

std::vector<std::string> given_of(const std::vector<const CLI::Option*>& options) {
  std::vector<std::string> given;
  for (const CLI::Option* option : options) {
    if (option->count() > 0) given.push_back(option->get_name());
  }
  return given;
}

// The given flags whose options the schedule does not have. Null: it has no options.
std::vector<std::string> given_of_others(const ScheduleKind* kind, const std::map<std::string, std::string>& given) {
  std::set<std::string> has;
  if (kind != nullptr) kind->own.each_option([&](const char* key, auto&&...) { has.insert(key); });
  std::vector<std::string> others;
  for (const auto& [key, text] : given) {
    if (!text.empty() && !has.contains(key)) others.push_back(kFlagNames.of(key));
  }
  return others;
}

// The schedule's own options, with the values that were given.
OptionTable own_options(const std::string& name, const OptionNames& names,
                        const std::map<std::string, std::string>& given) {
  const ScheduleKind* kind = schedule_kinds().find(name);
  if (kind == nullptr) return {};
  OptionTable table = kind->own;
  table.each_option([&](const char* key, auto& field, const Range& range, const char*) {
    const std::string& text = given.at(key);
    if (text.empty()) return;
    using T = std::remove_cvref_t<decltype(field)>;
    const bool is_word = std::is_same_v<T, std::string>;
    const auto document = parse_toml(fmt::format("value = {}", is_word ? toml_string(text) : text), names.of(key));
    const auto value = read_value<T>(*document.get("value"));
    if (!value) throw InputError(fmt::format("{} is '{}'; give {}", names.of(key), printable(text), type_name<T>()));
    check_range(names.of(key), *value, range);
    field = *value;
  });
  return table;
}

}  // namespace

void ScheduleFlags::add_to(CLI::App& command) {
  command.add_option("config", config, "CONFIG.toml whose [pipeline] is meant, instead of the flags");
  command.add_option("--set", overrides, "Override a key of CONFIG.toml: table.key=value (repeatable)")
      ->allow_extra_args(false);
  options.window = 0;
  options.stages = 4;
  others_.push_back(
      command.add_option("--schedule", options.name, "Name of a builtin (gyre info lists them), or a file")
          ->check(offers(schedule_names())));
  sizes_.push_back(add_number(command, "--stages", options.stages, {1, kMostStages},
                              fmt::format("Stages of the model, each on a worker of its own; with {} several share one",
                                          schedules_with_stages_sharing_workers())));
  add_number(command, "--microbatches", microbatches, {0, kMostSteps},
             "Microbatches of the run; 0: one window of a builtin that ends windows with a flush, eight of others");
  sizes_.push_back(add_number(command, "--window", options.window, {0, kMostWindow},
                              "Microbatches of each replica in one update; 0: what suits the schedule"));
  others_.push_back(add_number(command, "--replicas", options.replicas, {1, kMostStages},
                               "Copies of the whole pipeline, each on workers of its own: data parallelism"));
  others_.push_back(command.add_flag(
      "--shard-optimizer,!--no-shard-optimizer", options.shard_optimizer,
      "Each replica updates its share of every stage (the default); otherwise the first replica updates everything"));
  others_.push_back(command.add_flag("--by-stages", options.by_stages,
                                     "Number workers stage by stage, so that the replicas of a stage are neighbours"));
  others_.push_back(
      command.add_flag("--tie", options.tied, "The model's last stage reads a weight of its first: tied embeddings"));
  others_.push_back(command
                        .add_option("--clip-scope", clip_scope,
                                    "What the norm that clips gradients is taken over; global: updates wait for the "
                                    "gradients of all stages, as a run's do under a schedule with a flush")
                        ->check(offers(clip_scopes())));
  add_own_flags(command, kFlagNames, own);
  ratio_ = add_number(command, "--tb-over-tf", options.tb_over_tf, {kLeastRatio, kMostRatio},
                      "Time of a backward divided by that of a forward");
  others_.push_back(ratio_);
}

void ScheduleFlags::refuse_without_effect(bool times_by_ratio) const {
  std::vector<std::string> flags;
  const auto add = [&](const std::vector<std::string>& more) { flags.insert(flags.end(), more.begin(), more.end()); };
  const bool is_file = is_schedule_file(options.name);
  if (!config.empty()) {
    add(given_of(others_));
    add(given_of(sizes_));
    add(given_of_others(nullptr, own));
  } else if (const ScheduleKind* kind = schedule_kinds().find(options.name); kind != nullptr || is_file) {
    if (is_file) add(given_of(sizes_));
    if (is_file && !times_by_ratio) add(given_of({ratio_}));
    add(given_of_others(is_file ? nullptr : kind, own));
  }
  if (flags.empty()) return;
  const std::string have = fmt::format("{} {} no effect", join(flags, ", "), flags.size() == 1 ? "has" : "have");
  throw InputError(config.empty()
                       ? fmt::format("{} on schedule {}; leave {} out", have, printable(options.name),
                                     flags.size() == 1 ? "it" : "them")
                       : fmt::format("{} beside {}; change what it says with --set, as in --set pipeline.stages=4",
                                     have, printable(config)));
}

Schedule ScheduleFlags::load(bool times_by_ratio) {
  refuse_without_effect(times_by_ratio);
  Schedule schedule;
  if (!config.empty()) {
    const Config loaded = load_config(config, overrides);
    options = schedule_options(loaded);
    schedule = build_schedule(loaded);
    schedule.weights = weight_policy(loaded, schedule);
  } else {
    if (!overrides.empty()) throw InputError("--set changes a CONFIG.toml, and none is given");
    options.names = kFlagNames;
    options.own = own_options(options.name, kFlagNames, own);
    options.clip_scope = parse_clip_scope(clip_scope, "--clip-scope");
    if (options.window == 0) {
      options.window = default_window(options, microbatches);
      if (options.window * options.replicas == microbatches)
        options.names.window = "--microbatches";  // the flag for the user to change
    }
    schedule = load_schedule(options, false);
  }
  check_clipping(schedule, config.empty());
  if (microbatches == 0) {
    microbatches = !is_schedule_file(options.name) && config.empty() && schedule.has_flush()
                       ? schedule.window
                       : kDefaultWindows * schedule.window;
  }
  return schedule;
}

}  // namespace gyre::app
