#include "gyre/config/config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "gyre/config/tables.h"
#include "gyre/core/error.h"
#include "gyre/core/toml_fields.h"
#include "gyre/core/utf8.h"

namespace gyre {
namespace {

// Tables of kinds that are not chosen and have their default values.
std::set<std::string> unused_tables(const Config& config) {
  Config original;
  std::set<std::string> unused;
  for_each_kind_tables(original, [&](const std::string& name, const KindTables& defaults, const std::string&) {
    for_each_kind_tables(config, [&](const std::string& same, const KindTables& tables, const std::string& chosen) {
      if (same != name) return;
      for (const auto& [kind, table] : tables.tables()) {
        if (kind != chosen && table == defaults.of_kind(kind)) unused.insert(fmt::format("{}.{}", name, kind));
      }
    });
  });
  return unused;
}

}  // namespace

void make_paths_absolute(Config& config) {
  const auto absolute = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal().string();
  };
  // Where the working directory's name is none, this is found here and not when the run's config.toml is read.
  const auto make_absolute = [&](const char* key, std::string& path) {
    if (path.empty()) return;
    path = absolute(path);
    if (is_utf8(path)) return;
    throw InputError(fmt::format(
        "{} is {}, which is not UTF-8, as a configuration must be; rename that directory or file, or give a link to it",
        key, path));
  };
  make_absolute("[data] tokens", config.data.tokens);
  make_absolute("[data] val_tokens", config.data.val_tokens);
  make_absolute("[data] tokenizer", config.data.tokenizer);
  make_absolute("[run] init_from", config.run.init_from);
  make_absolute("[run] prometheus", config.run.prometheus);
  for (DataSource& source : config.data.source) {
    make_absolute("[[data.source]] tokens", source.tokens);
    make_absolute("[[data.source]] val_tokens", source.val_tokens);
  }
  std::error_code none;
  if (std::filesystem::is_regular_file(config.pipeline.schedule, none)) {
    make_absolute("[pipeline] schedule", config.pipeline.schedule);
  }
}

std::string to_toml(const Config& config) {
  const std::set<std::string> unused = unused_tables(config);
  std::string text;
  std::string open_table;
  for_each_field(config, [&](const std::string& table, const char* key, const auto& field, auto&&...) {
    if (unused.count(table) > 0) return;
    if (open_table != table) {
      text += text.empty() ? "" : "\n";
      if (table.starts_with(kSourceTable)) {
        const std::string name = table.substr(std::string_view(kSourceTable).size());
        text += fmt::format("[[data.source]]\nname = {}\n", toml_value(name));
      } else {
        text += fmt::format("[{}]\n", table);
      }
      open_table = table;
    }
    text += fmt::format("{} = {}\n", key, toml_value(field));
  });
  return text;
}

nlohmann::ordered_json to_json(const Config& config) {
  nlohmann::ordered_json json;
  for_each_field(config, [&](const std::string& table, const char* key, const auto& field, auto&&...) {
    json[table][key] = field;
  });
  return json;
}

std::vector<std::string> config_keys() {
  std::vector<std::string> keys;
  Config config;
  for_each_field(config, [&](const std::string& table, const char* key, auto&&...) {
    keys.push_back(fmt::format("{}.{}", table, key));
  });
  return keys;
}

std::vector<std::string> config_choices(const std::string& key) {
  std::vector<std::string> choices;
  Config config;
  for_each_field(config, [&](const std::string& table, const char* name, auto&&, const Range& range, const char*) {
    if (fmt::format("{}.{}", table, name) == key) choices = range.choices;
  });
  return choices;
}

}  // namespace gyre
