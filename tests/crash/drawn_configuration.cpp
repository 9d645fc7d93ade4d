#include "crash/drawn_configuration.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gyre/config/config.h"
#include "gyre/config/schedule_options.h"
#include "gyre/core/error.h"
#include "gyre/core/toml_fields.h"
#include "gyre/schedule/builders.h"
#include "gyre/schedule/csv.h"
#include "gyre/schedule/text.h"

namespace gyre::crash {
namespace {

using Reals = std::vector<double>;
using Wholes = std::vector<int64_t>;

// Draws one key after the other. A value listed several times is drawn that much more often.
class Drawer {
 public:
  explicit Drawer(RandomStream& random) : random_(random) {}

  int64_t whole(const std::string& key, int64_t least, int64_t most) {
    return put(key, least + static_cast<int64_t>(random_.below(static_cast<uint64_t>(most - least + 1))));
  }
  template <typename T>
  T of(const std::string& key, const std::vector<T>& values) {
    return put(key, values[random_.below(values.size())]);
  }
  std::string word(const std::string& key) { return of(key, config_choices(key)); }
  bool flag(const std::string& key, double share) { return put(key, random_.uniform() < share); }
  RandomStream& random() { return random_; }

  std::map<std::string, std::string> values;

 private:
  template <typename T>
  T put(const std::string& key, T value) {
    values[key] = toml_value(value);
    return value;
  }
  RandomStream& random_;
};

void draw_model(Drawer& draw) {
  const bool llama = draw.word("model.kind") == "llama";
  draw.whole("model.layers", 1, 5);
  draw.of<int64_t>("model.width", {4, 6, 8, 8, 12, 16, 16, 24});
  draw.of<int64_t>("model.heads", {1, 1, 2, 2, 3, 4});
  draw.of<int64_t>("model.context", {3, 5, 6, 8, 8, 12});
  draw.of<int64_t>("model.vocabulary", {0, 0, 0, 0, 0, 0, 0, 0, 256, 259, 300});
  draw.of<int64_t>("model.mlp_width", {0, 0, 8, 20, 64});
  // A Llama supports only one activation, no biases and no dropout; now and then it is asked for others all the same.
  const bool fits = llama && draw.random().uniform() < 0.9;
  if (fits) {
    draw.of<std::string>("model.activation", {"silu"});
  } else {
    draw.word("model.activation");
  }
  draw.flag("model.bias", fits ? 0 : 0.8);
  draw.of<double>("model.dropout", fits ? std::vector<double>{0} : std::vector<double>{0, 0.1, 0.5});
  draw.flag("model.tie", 0.4);
  draw.of<std::string>("model.bert.norm", {"pre", "pre", "post"});
  draw.flag("model.bert.sentence_order", 0.25);
  const bool in_text = draw.random().uniform() < 0.3;  // special tokens are tokens of the tokenizer
  draw.of<int64_t>("model.bert.classify_token", {in_text ? 1 : -1});
  draw.of<int64_t>("model.bert.separator_token", {in_text ? 2 : -1});
  draw.of<int64_t>("model.bert.mask_token", {in_text ? 3 : -1});
  draw.of<int64_t>("model.llama.key_value_heads", {0, 0, 0, 1, 2});
  draw.of<double>("model.llama.rope_theta", {100, 10000, 1e6});
  const bool stretched = draw.of<std::string>("model.llama.rope_scaling", {"none", "linear", "llama3"}) != "none";
  draw.of<double>("model.llama.rope_factor",
                  stretched ? std::vector<double>{8, 8, 8, 1} : std::vector<double>{1, 1, 1, 8});
  draw.of<double>("model.llama.rope_low_freq_factor", {1, 2});
  draw.of<double>("model.llama.rope_high_freq_factor", {4});
  draw.of<int64_t>("model.llama.rope_original_context", {8, 8192});
  draw.of<double>("model.llama.norm_epsilon", {1e-6, 1e-5});
  draw.flag("model.llama.qkv_bias", 0.3);
  draw.flag("model.llama.qk_norm", 0.3);
  draw.of<int64_t>("model.llama.head_size", {0, 0, 0, 2, 4, 10});
}

void draw_pipeline(Drawer& draw) {
  std::vector<std::string> schedules = schedule_names();
  schedules.insert(schedules.end(), {kScheduleText, kScheduleCsv});
  draw.of("pipeline.schedule", schedules);
  draw.whole("pipeline.stages", 1, 6);
  draw.whole("pipeline.microbatch", 1, 3);
  draw.whole("pipeline.accumulate", 1, 8);
  draw.whole("pipeline.interleaved-1f1b.chunks", 1, 3);
  draw.of<int64_t>("pipeline.amdp.pipelines", {0, 0, 1, 2, 3});
  draw.whole("pipeline.amdp.intake", 1, 3);
  draw.of<int64_t>("pipeline.amdp.preload", {-1, -1, -1, 0, 1, 2});
  draw.of<double>("pipeline.tb_over_tf", {0.5, 1, 2, 2, 3.5});
  draw.word("pipeline.weights");
  draw.flag("pipeline.recompute", 0.5);
  draw.flag("pipeline.shard_optimizer", 0.5);
  draw.word("pipeline.worker_order");
  draw.word("pipeline.executor");
  draw.of<int64_t>("pipeline.threads_per_worker", {1, 1, 1, 2});
  draw.flag("pipeline.pin_workers", 0.2);
  draw.of<double>("pipeline.stall_seconds", {60, 600, 1e9});
  draw.of<int64_t>("pipeline.replicas", {1, 1, 2, 3});
  draw.of<std::string>("pipeline.device", {"cpu"});  // the program that is killed has no other
}

void draw_optimizer(Drawer& draw) {
  std::vector<std::string> kinds = config_choices("optimizer.kind");
  kinds.insert(kinds.end(), 4, "basis-rotation");  // most keys belong to it
  draw.of("optimizer.kind", kinds);
  draw.of<double>("optimizer.lr", {0, 1e-4, 1e-4, 1e-3, 1e-3, 3e-3, 3e-3, 1e-2, 1e-2, 3e-2, 3e-2, 1e6});
  draw.of<Reals>("optimizer.betas", {{}, {}, {0.9, 0.95}, {0, 0}, {0.99, 0.5}});
  draw.of<double>("optimizer.epsilon", {1e-8, 1e-8, 1e-12, 1e-3});
  draw.of<double>("optimizer.weight_decay", {0, 0.01, 1});
  draw.word("optimizer.moments");
  draw.whole("optimizer.warmup", 0, 12);
  draw.word("optimizer.decay");
  draw.of<int64_t>("optimizer.cooldown", {0, 3, 20});
  draw.word("optimizer.cooldown_shape");
  draw.of<double>("optimizer.ema_decay", {0, 0, 0.5, 0.999});
  draw.of<double>("optimizer.floor", {0, 0.1, 1});
  draw.of<double>("optimizer.clip", {0, 0.1, 1, 100});
  draw.word("optimizer.clip_scope");
  draw.of<int64_t>("optimizer.max_skipped", {0, 1, 10});
  draw.whole("optimizer.basis-rotation.interval", 1, 7);
  draw.word("optimizer.basis-rotation.source");
  draw.word("optimizer.basis-rotation.geometry");
  draw.word("optimizer.basis-rotation.refresh");
  draw.of<double>("optimizer.basis-rotation.drift", {0.001, 0.1, 0.9});
  draw.of<int64_t>("optimizer.basis-rotation.refresh_lag", {0, 0, 1, 2, 4});
  draw.of<double>("optimizer.basis-rotation.covariance_beta", {0, 0, 0.5, 0.99});
  draw.of<int64_t>("optimizer.basis-rotation.covariance_every", {1, 1, 2, 3});
  draw.word("optimizer.basis-rotation.long_sides");
  draw.of<int64_t>("optimizer.basis-rotation.max_dimension", {0, 6, 30, 100});
  draw.of<int64_t>("optimizer.basis-rotation.sketch", {0, 0, 3, 20});
  draw.flag("optimizer.basis-rotation.transport", 0.5);
  draw.of<double>("optimizer.basis-rotation.look_ahead", {0, 0, 0.3, 1});
  draw.word("optimizer.basis-rotation.products");
  draw.word("optimizer.basis-rotation.covariance_products");
  draw.word("optimizer.basis-rotation.iteration_products");
  draw.of<int64_t>("optimizer.delay_warmup", {0, 0, 3, 20});
  draw.of<double>("optimizer.discrepancy", {0.01, 0.135, 0.9});
  draw.of<double>("optimizer.delay-compensated.lambda", {0, 0.04, 1});
  draw.of<double>("optimizer.muon.matrix_lr_ratio", {0, 1, 20});
  draw.word("optimizer.muon.products");
}

void draw_run(Drawer& draw) {
  draw.whole("run.seed", 0, 1'000'000'000);
  draw.word("run.precision");
  draw.whole("run.eval_every", 0, 6);
  draw.whole("run.eval_batches", 1, 3);
  draw.whole("run.checkpoint_every", 0, 5);
  draw.whole("run.keep_checkpoints", 0, 3);
  draw.whole("run.keep_every", 0, 3);
  draw.flag("run.checkpoint_background", 0.7);
  draw.flag("run.shared_directory", 0.7);
  draw.flag("run.tensorboard", 0.3);
  draw.of<Wholes>("run.drains", {{}, {}, {1}, {4, 7}, {9, 2, 2}, {10, 30}});
}

// The contents of the schedule file: a builtin's programs, with the sizes of the configuration. Throws InputError if
// they do not fit each other.
std::string schedule_file(const std::string& name, const Config& config, RandomStream& random) {
  ScheduleOptions options = schedule_options(config);
  options.replicas = 1;  // a file describes one replica, and is replicated like a builtin
  const auto names = schedule_names();
  // CSV has one pipeline, and its windows end with a flush.
  const std::vector<std::string> flushing = {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe-v"};
  const std::vector<std::string>& fitting = name == kScheduleCsv ? flushing : names;
  options.name = fitting[random.below(fitting.size())];
  const Schedule schedule = make_schedule(options);
  return name == kScheduleCsv ? to_csv(schedule, options.window) : to_text(schedule);
}

}  // namespace

std::string DrawnConfiguration::toml() const {
  std::map<std::string, std::string> tables;
  for (const auto& [key, value] : values) {
    const size_t dot = key.rfind('.');
    tables[key.substr(0, dot)] += fmt::format("{} = {}\n", key.substr(dot + 1), value);
  }
  std::string text;
  for (const auto& [table, keys] : tables) text += fmt::format("[{}]\n{}", table, keys);
  return text;
}

const std::map<std::string, std::string>& fixed_values() {
  static const std::map<std::string, std::string> kValues = {
      {"run.init_from", "\"\""},        // weights are initialized at random
      {"run.live_seconds", "0"},        // live.json contains times, and is written at certain times
      {"run.prometheus", "\"\""},       // is outside the run, and contains times
      {"run.updates", "10"},            // long enough for everything that is done periodically
      {"run.checkpoint_minutes", "0"},  // a drain by the clock is at a different update in each run
  };
  return kValues;
}

DrawnConfiguration draw_configuration(RandomStream& random) {
  Drawer draw(random);
  draw_model(draw);
  draw.of<std::string>("data.tokens", {kTokens[0], kTokens[1]});
  draw.of<std::string>("data.val_tokens", {"", "", "", kTokens[0], kTokens[1]});
  draw.of<double>("data.val_fraction", {0.01, 0.1});
  draw.of<int64_t>("data.vocabulary", {0, 0, 0, 256});
  draw.of<std::string>("data.tokenizer", {"", "", "", "", "/nowhere"});
  draw.word("data.order");
  draw_pipeline(draw);
  draw_optimizer(draw);
  draw_run(draw);
  DrawnConfiguration drawn;
  drawn.values = std::move(draw.values);
  drawn.values.insert(fixed_values().begin(), fixed_values().end());
  try {
    const Config config = parse_config(drawn.toml(), "the draw", {});
    const std::string& name = config.pipeline.schedule;
    if (name == kScheduleText || name == kScheduleCsv) {
      drawn.schedule_file = schedule_file(name, config, random);
    } else {
      build_schedule(config);
    }
  } catch (const InputError& error) {
    drawn.refused = error.what();
  }
  return drawn;
}

std::map<std::string, std::vector<std::string>> enumerated_values() {
  std::map<std::string, std::vector<std::string>> all;
  for (const std::string& key : config_keys()) {
    for (const std::string& word : config_choices(key)) all[key].push_back(toml_value(word));
  }
  const nlohmann::ordered_json defaults = to_json(Config());
  for (const auto& [table, keys] : defaults.items()) {
    for (const auto& [key, value] : keys.items()) {
      if (value.is_boolean()) all[fmt::format("{}.{}", table, key)] = {"true", "false"};
    }
  }
  for (const std::string& name : schedule_names()) all["pipeline.schedule"].push_back(toml_value(name));
  for (const char* file : {kScheduleText, kScheduleCsv})
    all["pipeline.schedule"].push_back(toml_value(std::string(file)));
  return all;
}

}  // namespace gyre::crash
