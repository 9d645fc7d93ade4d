// The configuration of a run: tables [model] [data] [pipeline] [optimizer] [run] of a TOML file. Every key is described
// once, in config.cpp: reading, writing, overriding and the reference in docs/configuration.md come from that
// description.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

struct Config {
  struct Model {
    std::string kind = "gpt";
    int64_t layers = 8;
    int64_t width = 256;
    int64_t heads = 8;
    int64_t context = 128;
    int64_t vocabulary = 0;
    int64_t mlp_width = 0;
    std::string activation = "gelu";
    bool bias = true;
    double dropout = 0;
    std::string norm = "auto";
    bool sentence_order = false;
    bool operator==(const Model&) const = default;
  } model;
  struct Data {
    std::string tokens;
    bool operator==(const Data&) const = default;
  } data;
  struct Pipeline {
    std::string schedule = "pipedream";
    int64_t stages = 1;
    int64_t microbatch = 8;
    int64_t accumulate = 1;
    int64_t chunks = 2;
    int64_t pipelines = 0;
    int64_t intake = 2;
    double tb_over_tf = 2;
    std::string weights = "auto";
    bool recompute = false;
    std::string executor = "threads";
    int64_t threads = 1;
    double stall_seconds = 60;
    bool operator==(const Pipeline&) const = default;
  } pipeline;
  struct Optimizer {
    std::string kind = "basis-rotation";
    double lr = 1e-3;
    std::vector<double> betas = {};
    double epsilon = 1e-8;
    double weight_decay = 0.01;
    int64_t warmup = 0;
    std::string decay = "cosine";
    double floor = 0.1;
    double clip = 1.0;
    std::string clip_scope = "auto";
    int64_t max_skipped = 10;
    int64_t frequency = 10;
    std::string source = "second";
    std::string geometry = "bilateral";
    std::string refresh = "fixed";
    double drift = 0.1;
    int64_t refresh_lag = 0;
    double covariance_beta = 0;
    int64_t covariance_every = 1;
    std::string long_sides = "thin";
    int64_t max_dimension = 0;
    int64_t sketch = 0;
    bool transport = false;
    double look_ahead = 0;
    std::string products = "bf16";
    std::string covariance_products = "fp32";
    std::string iteration_products = "fp32";
    int64_t delay_warmup = 0;
    double discrepancy = 0.135;
    double lambda = 0.04;
    double matrix_lr_ratio = 20;
    bool operator==(const Optimizer&) const = default;
  } optimizer;
  struct Run {
    int64_t updates = 1000;
    int64_t seed = 1;
    std::string precision = "bf16";
    int64_t eval_every = 0;
    int64_t eval_batches = 20;
    int64_t checkpoint_every = 0;
    double checkpoint_minutes = 10;
    int64_t keep_checkpoints = 3;
    std::vector<int64_t> drains;
    bool operator==(const Run&) const = default;
  } run;
  bool operator==(const Config&) const = default;
};

// The paths in a configuration are relative to the current directory. A run is read from other directories than the one
// it was begun in, so it keeps them absolute.
void make_paths_absolute(Config& config);

// With absolute paths. Overrides are "table.key=value", the value in TOML or, for strings, bare. InputError for syntax,
// unknown keys (with the nearest), wrong types and values out of range, saying file and line.
Config load_config(const std::filesystem::path& path, const std::vector<std::string>& overrides);
// `other_tables` may be there and are not looked at.
Config parse_config(std::string_view toml, const std::string& origin, const std::vector<std::string>& overrides,
                    const std::vector<std::string>& other_tables = {});

// Complete; parse_config(to_toml(c)) == c to the bit.
std::string to_toml(const Config& config);
// Every key with type, default and meaning, as Markdown.
std::string describe_config();
// A file to begin with: every key at its default, below what it means and may be. It lacks [data] tokens alone.
std::string config_template();
// "table.key" of every key.
std::vector<std::string> config_keys();
// The words that the key "table.key" may be; none where it is no word or may be any.
std::vector<std::string> config_choices(const std::string& key);

}  // namespace gyre
