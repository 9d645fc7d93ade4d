// The configuration of a run: tables [model] [data] [pipeline] [optimizer] [run] of a TOML file. Every option is
// declared once, by the component that it belongs to (core/options.h); reading, writing, overriding and the reference
// in docs/configuration.md come from that declaration. Options of a single kind of model, schedule or optimizer are in
// a table of their own, such as [optimizer.muon]. [[data.source]] may occur several times; each is addressed as
// data.source.NAME.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/config/settings.h"
#include "gyre/core/faults.h"
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

// Paths in a configuration are relative to the current directory. A run may be read from another directory than the one
// in which it was started, so its configuration is stored with absolute paths.
void make_paths_absolute(Config& config);

// Whether [data] tokens must be given. An imported model is a run without them.
enum class Tokens { Needed, Optional };

// Whether all that a file says of a table ("model"), or of one key ("pipeline.stages"), could be read.
using WasRead = std::function<bool(std::string_view name)>;
// Adds faults that show only in what the keys name, such as data that is not there.
using FurtherFaults = std::function<void(const Config&, const WasRead&, Faults&)>;

// Reads a file; paths in the result are absolute. Overrides are "table.key=value", with the value in TOML or, for
// strings, unquoted. Throws InputError for bad syntax, unknown keys (with a suggestion), wrong types, and values that
// are out of range or do not go together. The message lists all faults, with file and line; if there are any, those
// that `further` finds too.
Config load_config(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                   Tokens tokens = Tokens::Needed, const FurtherFaults& further = {});
// origin: the file's name, for messages. other_tables: tables that may be present and are ignored. Leaves paths as they
// are.
Config parse_config(std::string_view toml, const std::string& origin, const std::vector<std::string>& overrides,
                    const std::vector<std::string>& other_tables = {}, Tokens tokens = Tokens::Needed);

// The same with one set of overrides after the other: the text, which may be long, is parsed once.
using ConfigWith = std::function<Config(const std::vector<std::string>& overrides)>;
ConfigWith config_with(std::string_view toml, const std::string& origin,
                       const std::vector<std::string>& other_tables = {}, Tokens tokens = Tokens::Needed);

// parse_config(to_toml(c)) == c to the bit. Has every key, except tables of kinds that are not chosen and have their
// default values.
std::string to_toml(const Config& config);
// Every key: {"model": {"kind": "gpt", ...}, ..., "optimizer.muon": {...}, ...}.
nlohmann::ordered_json to_json(const Config& config);
// Every key with type, default and meaning, as Markdown.
std::string describe_config();
// Every key with type, range, default and meaning, as a JSON schema. Constraints between keys are not in it.
nlohmann::ordered_json config_schema();
// A configuration file to start from: every key with its default, preceded by its meaning and range. Only [data] tokens
// must be filled in.
std::string config_template();
// "table.key" of every key; "table.kind.key" in the tables of single kinds.
std::vector<std::string> config_keys();
// The values that "table.key" may have, if it is a choice between words; else empty.
std::vector<std::string> config_choices(const std::string& key);

}  // namespace gyre
