// Generates the reference of all options, and a configuration file to start from.
#include <fmt/format.h>

#include "gyre/config/config.h"
#include "gyre/config/tables.h"
#include "gyre/core/toml_fields.h"

namespace gyre {
namespace {

// The allowed values, in words.
template <typename T>
std::string allowed(const Range& range) {
  if (!range.choices.empty()) return "one of: " + join(range.choices, ", ");
  if (range.most < 1e300) return fmt::format("{}, {} to {}", type_name<T>(), range.least, range.most);
  if (range.least > -1e300) return fmt::format("{}, at least {}", type_name<T>(), range.least);
  return type_name<T>();
}

// `text` wrapped at spaces into lines that begin with `prefix` and are at most `width` long.
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

// A Markdown table of the registered kinds and their meanings.
template <typename Kind>
std::string kinds_of(const Registry<Kind>& registry, const char* key) {
  std::string text = fmt::format("\n| {} | what it is |\n|---|---|\n", key);
  for (const Kind& kind : registry.all()) text += fmt::format("| `{}` | {} |\n", kind.name, kind.meaning);
  return text;
}

std::string kinds_in(const std::string& table) {
  if (table == "model") return kinds_of(model_kinds(), "kind");
  if (table == "pipeline") return kinds_of(schedule_kinds(), "schedule");
  if (table == "optimizer") return kinds_of(optimizer_kinds(), "kind");
  return "";
}

constexpr const char* kSources =
    "\nA mixture is a list of tables `[[data.source]]`, each with the keys below and a `name`, which `--set "
    "data.source.NAME.weight=2`\nrefers to. The name of a source without one is its number.\n";

}  // namespace

std::string describe_config() {
  std::string text =
      "# Configuration\n\nEvery key of a configuration file, as `gyre train --help-config` prints it. `--set "
      "table.key=value` "
      "overrides one on\nthe command line.\n";
  std::string open_table;
  Config config;
  config.data.source.emplace_back().name = "NAME";
  for_each_field(config, [&](const std::string& table, const char* key, const auto& field, const Range& range,
                             const char* meaning) {
    if (open_table != table) {
      text += kinds_in(open_table);
      if (table.starts_with(kSourceTable)) text += kSources;
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
  for_each_field(config, [&](const std::string& table, const char* key, const auto& field, const Range& range,
                             const char* meaning) {
    if (open_table != table) text += fmt::format("\n[{}]\n", table);
    open_table = table;
    using T = std::remove_cvref_t<decltype(field)>;
    const std::string value = toml_value(field);
    text += wrapped(fmt::format("{} ({}; default {})", meaning, allowed<T>(range), value), "# ", kWidth);
    text += fmt::format("{} = {}\n", key, value);
  });
  return text;
}

}  // namespace gyre
