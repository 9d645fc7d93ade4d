// Iterates over all options of a configuration, table by table, in the order of the file.
#pragma once

#include <fmt/format.h>

#include <string>
#include <type_traits>

#include "gyre/config/config.h"

namespace gyre {

// The table name of a [[data.source]]: "data.source.web".
inline constexpr const char* kSourceTable = "data.source.";
inline std::string source_table(const std::string& name) {
  return kSourceTable + name;
}

// Calls visit(table, kinds, chosen) for the tables whose kinds have tables of their own, e.g. with "optimizer", the
// tables of all its kinds, and the kind that the configuration chooses.
template <typename SomeConfig, typename Visit>
void for_each_kind_tables(SomeConfig& c, Visit&& visit) {
  visit("model", c.model.own, c.model.kind);
  visit("pipeline", c.pipeline.own, c.pipeline.schedule);
  visit("optimizer", c.optimizer.own, c.optimizer.kind);
}

// Calls visit(table, key, field, range, meaning) for every option. Tables of single kinds are called "optimizer.muon",
// those of sources "data.source.web".
template <typename SomeConfig, typename Visit>
void for_each_field(SomeConfig& c, Visit&& visit) {
  const auto common = [&](const std::string& table, auto& settings) {
    std::remove_cvref_t<decltype(settings)>::each_option(
        settings, [&](const char* key, auto& field, const Range& range, const char* meaning) {
          visit(table, key, field, range, meaning);
        });
  };
  const auto with_kinds = [&](const std::string& table, auto& settings) {
    common(table, settings);
    for (auto& [kind, own] : settings.own.tables()) {
      own.each_option([&, name = fmt::format("{}.{}", table, kind)](const char* key, auto& field, const Range& range,
                                                                    const char* meaning) {
        visit(name, key, field, range, meaning);
      });
    }
  };
  with_kinds("model", c.model);
  common("data", c.data);
  for (auto& source : c.data.source) common(source_table(source.name), source);
  with_kinds("pipeline", c.pipeline);
  with_kinds("optimizer", c.optimizer);
  common("run", c.run);
}

}  // namespace gyre
