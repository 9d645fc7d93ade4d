// gyre train CONFIG.toml: one run.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gyre/config/config.h"
#include "gyre/core/error.h"
#include "gyre/core/exit_code.h"
#include "gyre/core/files.h"
#include "gyre/core/stopped.h"
#include "gyre/core/text.h"
#include "gyre/launch/rank.h"
#include "gyre/report/progress.h"
#include "gyre/report/status_line.h"
#include "gyre/runtime/ranks/ranks.h"
#include "gyre/train/trainer.h"
#include "interrupts.h"
#include "launched_ranks.h"
#include "output.h"
#include "train_flags.h"

namespace gyre::app {
namespace {

TrainOptions options_of(const TrainFlags& flags) {
  const TrainPlace place = place_of(flags);
  TrainOptions options;
  options.config = place.config;
  options.out = place.out;
  options.overrides = flags.overrides;
  options.resume = flags.resume;
  options.trace = flags.trace;
  return options;
}

void print_result(const TrainFlags& flags, const std::filesystem::path& out, const TrainResult& result) {
  if (flags.json) {
    nlohmann::ordered_json json = {{"status", result.finished ? "finished" : "interrupted"},
                                   {"run", out.string()},
                                   {"step", result.step},
                                   {"parameters", result.parameters},
                                   {"tokens", result.tokens},
                                   {"loss", result.loss},
                                   {"val_loss", nullptr},
                                   {"tokens_per_second", nullptr},
                                   {"bubble_fraction", nullptr},
                                   {"seconds", result.seconds},
                                   {"save_wait_seconds", result.save_wait_seconds},
                                   {"save_write_seconds", result.save_write_seconds}};
    if (result.val_loss) json["val_loss"] = *result.val_loss;
    if (result.ema_val_loss) json["ema_val_loss"] = *result.ema_val_loss;
    if (result.tokens_per_second) json["tokens_per_second"] = *result.tokens_per_second;
    if (result.bubble_fraction) json["bubble_fraction"] = *result.bubble_fraction;
    print_object(json);
    return;
  }
  if (result.is_past_target) return;  // which was reported before
  print("{} at step {}: loss {:.4f}", result.finished ? "finished" : "interrupted", result.step, result.loss);
  if (result.val_loss) print(", validation loss {:.4f}", *result.val_loss);
  if (result.ema_val_loss) print(" (averaged weights {:.4f})", *result.ema_val_loss);
  if (result.tokens_per_second) print(", {} tokens/s", human_count(*result.tokens_per_second));
  if (result.bubble_fraction) print(", bubble {:.1f}%", 100 * *result.bubble_fraction);
  print(", {}\n", human_duration(result.seconds));
  if (result.save_write_seconds > 0) {
    print("checkpoints: {:.2f} s of writing, for which training waited {:.2f} s\n", result.save_write_seconds,
          result.save_wait_seconds);
  }
  print("run: {}\n", printable(out.string()));
  if (!result.finished) print("resume with: gyre train --resume {}\n", shell_word(out.string()));
}

// The summary of a check is its result, so it goes to standard output.
void run_check(const TrainFlags& flags, const TrainOptions& options) {
  if (flags.json) throw InputError("--check says what the run would be as text, not as JSON; leave out --json");
  Progress progress(stdout, false);
  if (!check_run(options, progress)) return;
  print("{} can be {} here; nothing was written\n",
        printable((options.config.empty() ? options.out : options.config).string()),
        options.resume ? "resumed" : "trained");
}

void run(const TrainFlags& flags) {
  if (flags.help_config) {
    print("{}", describe_config());
    return;
  }
  TrainOptions options = options_of(flags);
  if (flags.check) return run_check(flags, options);
  Progress progress(stderr, can_redraw(stderr));
  const auto own_rank = find_rank();
  const bool one_of_several = own_rank && own_rank->world > 1;
  std::atomic<bool> save_asked = false;
  const bool has_launcher = one_of_several && !own_rank->by_hand;
  const Interrupts interrupts(has_launcher ? SecondSignal::IsTheLaunchers : SecondSignal::EndsThisProcess,
                              [&save_asked] { save_asked = true; });
  options.take_save_request = [&save_asked] { return save_asked.exchange(false); };
  const auto abandon_meeting = [&interrupts](const Error& error) {
    const bool is_stopped = dynamic_cast<const Stopped*>(&error) != nullptr;
    end_at_once(is_stopped ? Error(error.what(), interrupts.exit_code()) : error);
  };
  const auto ranks =
      one_of_several ? make_ranks(*own_rank, flags.meeting, interrupts.stop(), abandon_meeting) : nullptr;
  options.ranks = ranks.get();
  if (own_rank) {
    options.process = {own_rank->local_rank, own_rank->local_world};
    options.begun = own_rank->begun;
    options.on_claimed = [&own_rank] { remove_mark_of_launcher(*own_rank, kNotClaimedMark); };
    options.on_begun = [&own_rank] { remove_mark_of_launcher(*own_rank, kNotBegunMark); };
  }
  options.stop = interrupts.stop();
  options.abandon = end_at_once;
  const TrainResult result = [&] {
    try {
      return train(options, progress);
    } catch (const Stopped& stopped) {
      throw Error(stopped.what(), interrupts.exit_code() != 0 ? interrupts.exit_code() : stopped.exit_code());
    }
  }();
  if (!ranks || ranks->rank() == 0) {
    if (own_rank) tell_launcher_done(*own_rank);
    print_result(flags, options.out, result);
  }
  if (result.fault_afterwards) std::rethrow_exception(result.fault_afterwards);
  if (result.finished) return;
  // If another process of the run was asked to stop, this one ends as after SIGTERM.
  const int code = interrupts.exit_code();
  throw CLI::RuntimeError(code != 0 ? code : kTerminated);
}

}  // namespace

void add_train(CLI::App& app) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = app.add_subcommand(kTrain.name, kTrain.meaning);
  declare_train_flags(*command, *flags);
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
