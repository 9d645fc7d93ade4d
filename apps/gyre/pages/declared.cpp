#include "declared.h"

#include <algorithm>

#include "command.h"
#include "gyre/config/config.h"
#include "gyre/core/text.h"

namespace gyre::app {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// The words that a value may be: those of offers(), or CLI11's own list, which it shows as {a,b}.
std::vector<std::string> words_of(CLI::Option& option) {
  for (int index = 0;; ++index) {
    const CLI::Validator* validator = nullptr;
    try {
      validator = option.get_validator(index);
    } catch (const CLI::OptionNotFound&) {
      break;
    }
    const std::string& name = validator->get_name();
    const std::string offered = kOffers;
    if (name.starts_with(offered)) return split(name.substr(offered.size()), ' ');
  }
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return split(type.substr(begin + 1, end - begin - 1), ',');
}

bool has_validator(CLI::Option& option, const std::string& name) {
  for (int index = 0;; ++index) {
    try {
      if (option.get_validator(index)->get_name() == name) return true;
    } catch (const CLI::OptionNotFound&) {
      return false;
    }
  }
}

DeclaredOption declared(CLI::Option& option) {
  using Value = DeclaredOption::Value;
  DeclaredOption entry;
  entry.positional = option.get_positional();
  if (entry.positional) entry.names = {option.get_single_name()};
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  entry.required = option.get_required();
  entry.meaning = option.get_description();
  const bool is_flag = option.get_items_expected_max() == 0 || option.get_type_size_max() == 0;
  if (is_flag && !entry.positional) {
    entry.value = Value::None;
    return entry;
  }
  entry.repeatable = option.get_items_expected_max() > 1;
  entry.default_text = option.get_default_str();
  if (entry.default_text == "[]") entry.default_text.clear();
  entry.words = words_of(option);
  const std::string type = option.get_type_name();
  if (!entry.words.empty()) {
    entry.value = Value::Words;
  } else if (entry.names.back() == "--set") {
    entry.value = Value::Key;
    entry.label = "TABLE.KEY=VALUE";
  } else if (has_validator(option, "directory")) {
    entry.value = Value::Directory;
    entry.label = "DIRECTORY";
  } else if (has_validator(option, "path") || has_validator(option, "file to write")) {
    entry.value = Value::Path;
    entry.label = "PATH";
  } else if (type.rfind("TEXT", 0) == 0 && entry.positional) {
    entry.value = Value::Path;
  }
  if (entry.label.empty()) {
    const size_t end = type.find_first_of(": ");
    entry.label = type.empty() ? "VALUE" : type.substr(0, end);
    const bool is_whole = entry.label == "INT" || entry.label == "UINT", is_number = is_whole || entry.label == "FLOAT";
    if (is_number) entry.value = Value::Number;
    if (is_number) entry.label = is_whole ? "N" : "NUMBER";
  }
  if (!option.get_option_text().empty()) entry.label = option.get_option_text();
  return entry;
}

}  // namespace

std::vector<DeclaredCommand> declared_commands(const CLI::App& app) {
  std::vector<DeclaredCommand> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    DeclaredCommand entry{command->get_name(), command->get_description(), command->get_footer(), {}};
    for (const CLI::Option* option : command->get_options()) {
      entry.options.push_back(
          declared(const_cast<CLI::Option&>(*option)));  // CLI11 lets nobody see the validators of a const option
    }
    commands.push_back(std::move(entry));
  }
  return commands;
}

std::vector<DeclaredKey> declared_keys() {
  std::vector<DeclaredKey> keys;
  for (const std::string& key : config_keys()) keys.push_back({key, config_choices(key)});
  return keys;
}

}  // namespace gyre::app
