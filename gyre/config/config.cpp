#include "gyre/config/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "gyre/core/files.h"
#include "gyre/core/toml_fields.h"
#include "gyre/schedule/limits.h"

namespace gyre {
namespace {

// Times the longest window it is still an int64.
constexpr double kMostUpdates = 1e10;

// Calls visit(table, key, field, range, meaning) for every key, in the order of the file.
template <typename SomeConfig, typename Visit>
void for_each_field(SomeConfig& c, Visit&& visit) {
  auto& model = c.model;
  visit("model", "kind", model.kind, one_of({"gpt", "bert"}), "kind of model");
  visit("model", "layers", model.layers, between(1, 100000), "transformer blocks");
  visit("model", "width", model.width, between(1, 1 << 20), "size of the residual stream");
  visit("model", "heads", model.heads, between(1, 1 << 20), "attention heads; must divide width");
  visit("model", "context", model.context, between(1, 1 << 24), "tokens in one sequence");
  visit("model", "vocabulary", model.vocabulary, between(0, 1 << 30),
        "size of the vocabulary; 0 takes the data's (bert: and three special tokens)");
  visit("model", "mlp_width", model.mlp_width, between(0, 1 << 24), "hidden size of the MLP; 0 is 4 * width");
  visit("model", "activation", model.activation, one_of({"gelu", "gelu-tanh", "relu"}), "non-linearity of the MLP");
  visit("model", "bias", model.bias, Range{}, "whether matrices and norms have biases");
  visit("model", "dropout", model.dropout, between(0, 0.999),
        "probability of dropping, after the embedding and on both branches");
  visit("model", "norm", model.norm, one_of({"auto", "pre", "post"}),
        "where a block's norms are: before its branches or after; auto: gpt pre, bert post");
  visit("model", "sentence_order", model.sentence_order, Range{},
        "bert: exchange the two segments of half the sequences, and learn to tell");
  visit("data", "tokens", c.data.tokens, Range{},
        "directory made by gyre prepare; a relative path is kept as an absolute one");
  auto& pipeline = c.pipeline;
  visit("pipeline", "schedule", pipeline.schedule, Range{},
        "gpipe, 1f1b, interleaved-1f1b, zb-h1, chimera, pipedream, pipedream-2bw, paci, amdp, or the path of a file");
  visit("pipeline", "stages", pipeline.stages, between(1, kMostStages),
        "stages; at most layers + 2. One worker each (interleaved-1f1b: one for every `chunks` stages)");
  visit("pipeline", "microbatch", pipeline.microbatch, between(1, 1 << 20), "sequences in one microbatch");
  visit("pipeline", "accumulate", pipeline.accumulate, between(1, kMostWindow), "microbatches in one update's window");
  visit("pipeline", "chunks", pipeline.chunks, between(1, kMostStages), "interleaved-1f1b: stages on each worker");
  visit("pipeline", "pipelines", pipeline.pipelines, between(0, kMostStages),
        "amdp: pipelines; 0 takes what the depth calls for, fewer cost speed and save memory");
  visit("pipeline", "intake", pipeline.intake, between(1, kMostStages),
        "amdp: microbatches that a pipeline takes in before the first is through");
  visit("pipeline", "tb_over_tf", pipeline.tb_over_tf, between(1e-3, 1000),
        "amdp, chimera: time of a backward in forwards, for which the order is made");
  visit(
      "pipeline", "weights", pipeline.weights, one_of({"auto", "stash", "latest", "predict", "corrected"}),
      "what is read: a version by a forward and its backward; the newest by each; one predicted for when the gradient "
      "arrives; the newest, corrected for the backward. auto: what the schedule or the optimizer was made for");
  visit("pipeline", "recompute", pipeline.recompute, Range{},
        "keep a stage's input alone and repeat its forward before the backward: less memory, a third more work");
  visit("pipeline", "executor", pipeline.executor, one_of({"replay", "threads"}),
        "all workers in one thread, or a thread each");
  visit("pipeline", "threads", pipeline.threads, between(1, 1024),
        "threads inside each worker's operations; part of what fixes the bits");
  visit("pipeline", "stall_seconds", pipeline.stall_seconds, between(0.01, 1e9),
        "all workers waiting for so long ends the run; one inside an action for so long is told, and waited for. "
        "A drain after a signal is given up when nothing has finished for "
        "ten times as long (executor threads)");
  auto& optimizer = c.optimizer;
  // As optim/config.cpp makes them; here so that a wrong name is found without loading it.
  visit("optimizer", "kind", optimizer.kind,
        one_of({"basis-rotation", "adamw", "nesterov-async", "pipedream-lr", "pipemare", "prediction",
                "delay-compensated", "muon", "error-feedback"}),
        "what makes updates of gradients");
  visit("optimizer", "lr", optimizer.lr, between(0, 1e6), "peak learning rate");
  visit(
      "optimizer", "betas", optimizer.betas, between(0, 1),
      "decay of the first and second moments; empty: the optimizer's own, [0.9, 0.999], nesterov-async [0.99, 0.999]");
  visit("optimizer", "epsilon", optimizer.epsilon, between(1e-300, 1), "added to the root of the second moment");
  visit("optimizer", "weight_decay", optimizer.weight_decay, between(0, 1e6),
        "decoupled decay of matrices and embeddings");
  visit("optimizer", "warmup", optimizer.warmup, at_least(0), "updates of linear warm-up");
  visit("optimizer", "decay", optimizer.decay, one_of({"cosine", "linear", "constant"}),
        "course of the learning rate after warm-up");
  visit("optimizer", "floor", optimizer.floor, between(0, 1), "learning rate at the end, as a fraction of the peak");
  visit("optimizer", "clip", optimizer.clip, at_least(0), "largest gradient norm; 0 turns clipping off");
  visit("optimizer", "clip_scope", optimizer.clip_scope, one_of({"auto", "global", "stage", "none"}),
        "norm over the model (needs a flush) or over each stage; auto: global where it can be");
  visit("optimizer", "max_skipped", optimizer.max_skipped, at_least(0),
        "updates in a row that a stage may leave out because its gradient is not finite; one more ends the run");
  visit("optimizer", "frequency", optimizer.frequency, at_least(1),
        "basis-rotation: updates between refreshes of the bases");
  visit("optimizer", "source", optimizer.source, one_of({"second", "first"}),
        "basis-rotation: what the bases come from, gradient covariances or the momentum");
  visit("optimizer", "geometry", optimizer.geometry, one_of({"bilateral", "unilateral"}),
        "basis-rotation: which sides are rotated, both or the smaller");
  visit("optimizer", "refresh", optimizer.refresh, one_of({"fixed", "stage-aware", "adaptive"}),
        "basis-rotation: every `frequency` updates, as often in all but more where delays are long, or when drifted");
  visit("optimizer", "drift", optimizer.drift, between(1e-9, 1), "basis-rotation: threshold of adaptive refresh");
  visit("optimizer", "refresh_lag", optimizer.refresh_lag, at_least(0),
        "basis-rotation: updates that a refresh may take, on a thread beside the workers; 0: it is made at once");
  visit("optimizer", "covariance_beta", optimizer.covariance_beta, between(0, 1),
        "basis-rotation: decay of the covariances; 0: as that of the second moments");
  visit("optimizer", "covariance_every", optimizer.covariance_every, at_least(1),
        "basis-rotation: every so many gradients go into the covariances");
  visit(
      "optimizer", "long_sides", optimizer.long_sides, one_of({"thin", "whole"}),
      "basis-rotation: directions rotated of a side twice as long as its matrix's other or longer, as many as that has "
      "or all");
  visit("optimizer", "max_dimension", optimizer.max_dimension, at_least(0),
        "basis-rotation: longer sides stay unrotated, or have a sketch; 0: none do");
  visit("optimizer", "sketch", optimizer.sketch, at_least(0),
        "basis-rotation: directions rotated of sides longer than max_dimension; 0: none");
  visit("optimizer", "transport", optimizer.transport, Range{},
        "basis-rotation: turn the second moment with the basis instead of reordering it alone");
  visit(
      "optimizer", "look_ahead", optimizer.look_ahead, between(0, 1),
      "basis-rotation: share of each side's directions, those of least curvature, along which weights are moved ahead "
      "by the delay; 0: none");
  visit(
      "optimizer", "products", optimizer.products, one_of({"fp32", "bf16"}),
      "basis-rotation: type of the products that turn gradients and directions; bf16: where large enough to be faster");
  visit("optimizer", "covariance_products", optimizer.covariance_products, one_of({"fp32", "bf16"}),
        "basis-rotation: type of the products that add a gradient to the covariances");
  visit("optimizer", "iteration_products", optimizer.iteration_products, one_of({"fp32", "bf16"}),
        "basis-rotation: type of a refresh's products, a covariance times a basis");
  visit("optimizer", "delay_warmup", optimizer.delay_warmup, at_least(0),
        "updates over which a stage's learning rate rises from lr / delay to lr; 0: none, but for pipedream-lr and "
        "pipemare 2.8% of the run");
  visit("optimizer", "discrepancy", optimizer.discrepancy, between(1e-6, 0.999999),
        "pipemare: what is left of a step in the mean step after as many updates as the stage's mismatch");
  visit("optimizer", "lambda", optimizer.lambda, between(0, 1e6), "delay-compensated: weight of the compensation");
  visit("optimizer", "matrix_lr_ratio", optimizer.matrix_lr_ratio, between(0, 1e6),
        "muon: learning rate of matrices, in units of lr");
  auto& run = c.run;
  visit("run", "updates", run.updates, between(1, kMostUpdates), "updates in the whole run");
  visit("run", "seed", run.seed, at_least(0), "fixes weights, batches and dropout");
  visit("run", "precision", run.precision, one_of({"fp32", "bf16"}), "type of compute; masters are fp32");
  visit("run", "eval_every", run.eval_every, between(0, kMostUpdates), "updates between evaluations; 0: none");
  visit("run", "eval_batches", run.eval_batches, between(1, kMostUpdates), "microbatches of one evaluation, at most");
  visit("run", "checkpoint_every", run.checkpoint_every, between(0, kMostUpdates),
        "updates between checkpoints; 0: only at the end, and by time");
  visit("run", "checkpoint_minutes", run.checkpoint_minutes, between(0, 1e6),
        "minutes since the last checkpoint, of whatever kind, after which one is made; 0: not by time. Where the clock "
        "drained the pipeline is recorded: see drains");
  visit("run", "keep_checkpoints", run.keep_checkpoints, between(0, 1'000'000),
        "newest checkpoints that are kept; 0: all");
  visit("run", "drains", run.drains, between(1, kMostUpdates),
        "further updates after which the pipeline drains: with those that a run's metrics record, and "
        "checkpoint_minutes = 0, it is repeated to the bit");
}

std::vector<std::string> known_tables() {
  std::vector<std::string> tables;
  Config config;
  for_each_field(config, [&](const char* table, auto&&...) {
    if (tables.empty() || tables.back() != table) tables.emplace_back(table);
  });
  return tables;
}

std::vector<std::string> known_keys(std::string_view of_table) {
  std::vector<std::string> keys;
  Config config;
  for_each_field(config, [&](const char* table, const char* key, auto&&...) {
    if (of_table == table) keys.emplace_back(key);
  });
  return keys;
}

// What a value may be, in words.
template <typename T>
std::string allowed(const Range& range) {
  if (!range.choices.empty()) return "one of: " + join(range.choices, ", ");
  if (range.most < 1e300) return fmt::format("{}, {} to {}", type_name<T>(), range.least, range.most);
  if (range.least > -1e300) return fmt::format("{}, at least {}", type_name<T>(), range.least);
  return type_name<T>();
}

// `text` broken at blanks into lines that begin with `prefix` and are no longer than `width`.
std::string wrapped(std::string_view text, std::string_view prefix, size_t width) {
  std::string lines;
  while (!text.empty()) {
    size_t end = text.size();
    if (prefix.size() + end > width) {
      end = text.rfind(' ', width - prefix.size());
      if (end == std::string_view::npos) end = std::min(text.find(' '), text.size());
    }
    lines += fmt::format("{}{}\n", prefix, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Reads a file and overrides into a configuration, and notes every fault rather than stopping at the first.
class Reader {
 public:
  // Tables in `others` are somebody else's.
  void read(const toml::table& root, const std::string& origin, const std::vector<std::string>& others = {}) {
    const auto tables = known_tables();
    for (const auto& [name, node] : root) {
      const std::string table(name.str());
      if (std::find(others.begin(), others.end(), table) != others.end()) continue;
      if (std::find(tables.begin(), tables.end(), table) == tables.end()) {
        add(origin, node, fmt::format("unknown table [{}]{}", printable(table), suggestion(table, tables)));
      } else if (!node.is_table()) {
        add(origin, node, fmt::format("[{}] must be a table", table));
      } else {
        read_known(*node.as_table(), table, origin);
      }
    }
  }

  // "table.key=value" as a document. A value that is not TOML by itself is taken as a string.
  void read_override(const std::string& text) {
    const std::string origin = fmt::format("--set {}", printable(text));
    faults_.collect([&] { read(override_document(text, origin), origin); });
  }

  // What involves more than one key, where all of them could be read.
  void check() {
    const auto& model = config_.model;
    require(model.width % model.heads == 0, {"model.heads", "model.width"}, [&] {
      return fmt::format("[model] heads is {}, which does not divide width {}; choose heads that do", model.heads,
                         model.width);
    });
    require(model.kind != "gpt" || (model.norm != "post" && !model.sentence_order),
            {"model.norm", "model.sentence_order", "model.kind"},
            [&] { return "[model] norm = \"post\" and sentence_order are for kind = \"bert\""; });
    require(model.kind != "bert" || (model.bias && model.context >= 5), {"model.bias", "model.context", "model.kind"},
            [&] { return "[model] kind = \"bert\" has biases, and a context of 5 at least"; });
    check_optimizer();
    require(!config_.data.tokens.empty(), {"data.tokens"},
            [&] { return "[data] tokens is missing; give the directory that gyre prepare made"; });
  }

  Config finish(const std::string& origin) {
    origin_ = origin;
    check();
    faults_.raise();
    return config_;
  }

 private:
  // Where a key was given last.
  struct Given {
    std::string place;
    int64_t line = Faults::kNoLine;
    bool taken = true;
  };

  static bool is_override(const std::string& origin) { return origin.rfind("--set ", 0) == 0; }

  void add(const std::string& origin, const toml::node& node, const std::string& what) {
    faults_.add(fmt::format("{}: {}", place(origin, node), what),
                is_override(origin) ? Faults::kNoLine : line_of(node));
  }

  void read_known(const toml::table& keys, const std::string& table, const std::string& origin) {
    const auto refused = read_table(keys, table, origin, faults_, [&](auto&& visit) {
      for_each_field(config_,
                     [&](const char* of_table, const char* key, auto& field, const Range& range, const char* meaning) {
                       if (table == of_table) visit(key, field, range, meaning);
                     });
    });
    for (const auto& [key, node] : keys) {
      const std::string name(key.str());
      given_[fmt::format("{}.{}", table, name)] = {place(origin, node),
                                                   is_override(origin) ? Faults::kNoLine : line_of(node),
                                                   std::find(refused.begin(), refused.end(), name) == refused.end()};
    }
  }

  static toml::table override_document(const std::string& text, const std::string& origin) {
    const size_t equals = text.find('=');
    const size_t dot = text.find('.');
    if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
      throw InputError(fmt::format("{}: expected table.key=value, such as optimizer.lr=3e-4", origin));
    }
    const std::string table = text.substr(0, dot), key = text.substr(dot + 1, equals - dot - 1),
                      value = text.substr(equals + 1);
    bool is_string = false;
    const char* wanted = "";
    Config described;
    for_each_field(described, [&](const char* t, const char* k, auto& field, auto&&...) {
      if (table != t || key != k) return;
      using T = std::remove_cvref_t<decltype(field)>;
      is_string = std::is_same_v<T, std::string>;
      wanted = type_name<T>();
    });
    const bool bare = is_string && (value.empty() || (value.front() != '"' && value.front() != '\''));
    const auto known = known_tables();
    if (std::find(known.begin(), known.end(), table) == known.end()) {
      throw InputError(fmt::format("{}: unknown table [{}]{}", origin, printable(table), suggestion(table, known)));
    }
    const auto keys = known_keys(table);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      throw InputError(
          fmt::format("{}: unknown key '{}' in [{}]{}", origin, printable(key), table, suggestion(key, keys)));
    }
    const std::string document = fmt::format("[{}]\n{} = {}\n", table, key, bare ? toml_string(value) : value);
    try {
      return parse_toml(document, origin);
    } catch (const InputError&) {
      throw InputError(fmt::format("{}: [{}] {} is {}; give {}", origin, table, key, printable(value), wanted));
    }
  }

  void check_optimizer() {
    const auto& optimizer = config_.optimizer;
    const auto& betas = optimizer.betas;
    require(betas.empty() || betas.size() == 2, {"optimizer.betas"}, [&] {
      return fmt::format("[optimizer] betas has {} numbers; give two, such as [0.9, 0.999], or none", betas.size());
    });
    require(std::find(betas.begin(), betas.end(), 1.0) == betas.end(), {"optimizer.betas"},
            [&] { return "[optimizer] betas has a 1, with which nothing is ever taken in; give less"; });
    if (optimizer.kind != "basis-rotation") return;
    require(optimizer.refresh_lag < optimizer.frequency, {"optimizer.refresh_lag", "optimizer.frequency"}, [&] {
      return fmt::format("[optimizer] refresh_lag is {}; give less than frequency, {}", optimizer.refresh_lag,
                         optimizer.frequency);
    });
    require(optimizer.covariance_every <= optimizer.frequency, {"optimizer.covariance_every", "optimizer.frequency"},
            [&] {
              return fmt::format("[optimizer] covariance_every is {}; give frequency, {}, or less",
                                 optimizer.covariance_every, optimizer.frequency);
            });
    require(optimizer.sketch == 0 || optimizer.max_dimension > 0, {"optimizer.sketch", "optimizer.max_dimension"}, [&] {
      return fmt::format("[optimizer] sketch is {}; give max_dimension too, the length from which sides are sketched",
                         optimizer.sketch);
    });
  }

  // A fault unless it `holds`, told where the first of `keys` that was given stands.
  template <typename What>
  void require(bool holds, std::initializer_list<const char*> keys, What&& what) {
    if (holds) return;
    const Given* where = nullptr;
    for (const char* key : keys) {
      const auto found = given_.find(key);
      if (found == given_.end()) continue;
      if (!found->second.taken) return;
      if (where == nullptr) where = &found->second;
    }
    faults_.add(fmt::format("{}: {}", where != nullptr ? where->place : origin_, what()),
                where != nullptr ? where->line : Faults::kNoLine);
  }

  Config config_;
  std::string origin_;
  std::map<std::string, Given> given_;  // by "table.key"
  Faults faults_;
};

}  // namespace

Config parse_config(std::string_view text, const std::string& origin, const std::vector<std::string>& overrides,
                    const std::vector<std::string>& other_tables) {
  Reader reader;
  reader.read(parse_toml(text, origin), origin, other_tables);
  for (const std::string& text_override : overrides) reader.read_override(text_override);
  return reader.finish(origin);
}

Config load_config(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  Config config = parse_config(read_file(path), path.string(), overrides);
  make_paths_absolute(config);
  return config;
}

void make_paths_absolute(Config& config) {
  const auto absolute = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal().string();
  };
  config.data.tokens = absolute(config.data.tokens);
  std::error_code none;
  if (std::filesystem::is_regular_file(config.pipeline.schedule, none)) {
    config.pipeline.schedule = absolute(config.pipeline.schedule);
  }
}

std::string to_toml(const Config& config) {
  std::string text;
  std::string open_table;
  for_each_field(config, [&](const char* table, const char* key, const auto& field, auto&&...) {
    if (open_table != table) {
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", table);
      open_table = table;
    }
    text += fmt::format("{} = {}\n", key, toml_value(field));
  });
  return text;
}

std::string describe_config() {
  std::string text =
      "# Configuration\n\nEvery key of a configuration file, as `gyre train --help-config` prints it. `--set "
      "table.key=value` "
      "overrides one on\nthe command line.\n";
  std::string open_table;
  Config config;
  for_each_field(
      config, [&](const char* table, const char* key, const auto& field, const Range& range, const char* meaning) {
        if (open_table != table) {
          text += fmt::format("\n## [{}]\n\n| key | default | meaning |\n|---|---|---|\n", table);
          open_table = table;
        }
        const std::string choices = range.choices.size() > 1 ? fmt::format(" ({})", join(range.choices, ", ")) : "";
        text += fmt::format("| `{}` | `{}` | {}{} |\n", key, toml_value(field), meaning, choices);
      });
  return text;
}

std::string config_template() {
  constexpr size_t kWidth = 100;
  std::string text =
      "# A configuration for gyre train: every key with its default. Keys may be left out.\n"
      "# Give [data] tokens, the directory that gyre prepare made; the rest can stay as it is.\n";
  std::string open_table;
  Config config;
  for_each_field(config,
                 [&](const char* table, const char* key, const auto& field, const Range& range, const char* meaning) {
                   if (open_table != table) text += fmt::format("\n[{}]\n", table);
                   open_table = table;
                   using T = std::remove_cvref_t<decltype(field)>;
                   const std::string value = toml_value(field);
                   text += wrapped(fmt::format("{} ({}; default {})", meaning, allowed<T>(range), value), "# ", kWidth);
                   text += fmt::format("{} = {}\n", key, value);
                 });
  return text;
}

std::vector<std::string> config_keys() {
  std::vector<std::string> keys;
  Config config;
  for_each_field(
      config, [&](const char* table, const char* key, auto&&...) { keys.push_back(fmt::format("{}.{}", table, key)); });
  return keys;
}

std::vector<std::string> config_choices(const std::string& key) {
  std::vector<std::string> choices;
  Config config;
  for_each_field(config, [&](const char* table, const char* name, auto&&, const Range& range, const char*) {
    if (fmt::format("{}.{}", table, name) == key) choices = range.choices;
  });
  return choices;
}

}  // namespace gyre
