// The configuration of a run: tables [model] [data] [pipeline] [optimizer] [run] of a TOML file. Every option is
// declared once, by the component that it belongs to (core/options.h); reading, writing, overriding and the reference
// in docs/configuration.md come from that declaration. What one kind of model, schedule or optimizer alone understands
// stands in a table of its own, such as [optimizer.muon]. [[data.source]] may come several times; what stands in one is
// called data.source.NAME.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/config/settings.h"
#include "gyre/data/settings/data_settings.h"
#include "gyre/model/settings/model_settings.h"
#include "gyre/optim/settings/optimizer_settings.h"

namespace gyre {

struct Config {
  ModelSettings model;
  DataSettings data;
  PipelineSettings pipeline;
  OptimizerSettings optimizer;
  RunSettings run;
  bool operator==(const Config&) const = default;
};

// The paths in a configuration are relative to the current directory. A run is read from other directories than the one
// it was begun in, so it keeps them absolute.
void make_paths_absolute(Config& config);

// Whether [data] tokens must be given. A model that was imported is a run without.
enum class Tokens { Needed, Optional };

// With absolute paths. Overrides are "table.key=value", the value in TOML or, for strings, bare. InputError for syntax,
// unknown keys (with the nearest), wrong types and values out of range, saying file and line.
Config load_config(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                   Tokens tokens = Tokens::Needed);
// `other_tables` may be there and are not looked at.
Config parse_config(std::string_view toml, const std::string& origin, const std::vector<std::string>& overrides,
                    const std::vector<std::string>& other_tables = {}, Tokens tokens = Tokens::Needed);

// parse_config(to_toml(c)) == c to the bit. Every key, but for tables of kinds that were not chosen and are at their
// defaults.
std::string to_toml(const Config& config);
// Every key: {"model": {"kind": "gpt", ...}, ..., "optimizer.muon": {...}, ...}.
nlohmann::ordered_json to_json(const Config& config);
// Every key with type, default and meaning, as Markdown.
std::string describe_config();
// Every key with type, range, default and meaning, as a JSON schema. What involves several keys is not in it.
nlohmann::ordered_json config_schema();
// A file to begin with: every key at its default, below what it means and may be. It lacks [data] tokens alone.
std::string config_template();
// "table.key" of every key; "table.kind.key" in the tables of single kinds.
std::vector<std::string> config_keys();
// The words that the key "table.key" may be; none where it is no word or may be any.
std::vector<std::string> config_choices(const std::string& key);

}  // namespace gyre
