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

// The words that a value may be: offered by us, or CLI11's own list, which it shows as {a,b}.
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
  DeclaredOption one;
  one.positional = option.get_positional();
  if (one.positional) one.names = {option.get_single_name()};
  for (const std::string& name : option.get_snames()) one.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) one.names.push_back("--" + name);
  one.required = option.get_required();
  one.meaning = option.get_description();
  const bool is_flag = option.get_items_expected_max() == 0 || option.get_type_size_max() == 0;
  if (is_flag && !one.positional) {
    one.value = Value::None;
    return one;
  }
  one.repeatable = option.get_items_expected_max() > 1;
  one.default_text = option.get_default_str();
  if (one.default_text == "[]") one.default_text.clear();
  one.words = words_of(option);
  const std::string type = option.get_type_name();
  if (!one.words.empty()) {
    one.value = Value::Words;
  } else if (one.names.back() == "--set") {
    one.value = Value::Key;
    one.label = "TABLE.KEY=VALUE";
  } else if (has_validator(option, "directory")) {
    one.value = Value::Directory;
    one.label = "DIRECTORY";
  } else if (has_validator(option, "path") || has_validator(option, "file to write")) {
    one.value = Value::Path;
    one.label = "PATH";
  } else if (type.rfind("TEXT", 0) == 0 && one.positional) {
    one.value = Value::Path;
  }
  if (one.label.empty()) {
    const size_t end = type.find_first_of(": ");
    one.label = type.empty() ? "VALUE" : type.substr(0, end);
    const bool is_whole = one.label == "INT" || one.label == "UINT", is_number = is_whole || one.label == "FLOAT";
    if (is_number) one.value = Value::Number;
    if (is_number) one.label = is_whole ? "N" : "NUMBER";
  }
  if (!option.get_option_text().empty()) one.label = option.get_option_text();
  return one;
}

}  // namespace

std::vector<DeclaredCommand> declared_commands(const CLI::App& app) {
  std::vector<DeclaredCommand> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    DeclaredCommand one{command->get_name(), command->get_description(), command->get_footer(), {}};
    for (const CLI::Option* option : command->get_options()) {
      one.options.push_back(declared(const_cast<CLI::Option&>(*option)));  // CLI11 shows validators to owners only
    }
    commands.push_back(std::move(one));
  }
  return commands;
}

std::vector<DeclaredKey> declared_keys() {
  std::vector<DeclaredKey> keys;
  for (const std::string& key : config_keys()) keys.push_back({key, config_choices(key)});
  return keys;
}

}  // namespace gyre::app
