// Completion for bash, zsh and fish: commands, flags, and what a value may be.
#include <fmt/format.h>

#include "declared.h"
#include "gyre/core/text.h"

namespace gyre::app {
namespace {

using Value = DeclaredOption::Value;

std::string names_of(const std::vector<DeclaredCommand>& commands) {
  std::vector<std::string> names;
  for (const DeclaredCommand& command : commands) names.push_back(command.name);
  return join(names, " ");
}

std::string flags_of(const DeclaredCommand& command) {
  std::vector<std::string> flags;
  for (const DeclaredOption& option : command.options) {
    if (!option.positional) flags.insert(flags.end(), option.names.begin(), option.names.end());
  }
  return join(flags, " ");
}

std::string keys_with_equals() {
  std::vector<std::string> keys;
  for (const DeclaredKey& key : declared_keys()) keys.push_back(key.key + "=");
  return join(keys, " ");
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// Quoted with a shell's single quotes.
std::string quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

// Escapes brackets and colons, which have a meaning in zsh's _arguments.
std::string zsh_text(std::string text) {
  for (const char* sign : {"\\", "[", "]", ":"}) text = replaced(text, sign, std::string("\\") + sign);
  return text;
}

std::string zsh_value(const DeclaredOption& option) {
  switch (option.value) {
    case Value::None:
      return "";
    case Value::Directory:
      return ":directory:_files -/";
    case Value::Words:
      return fmt::format(":value:_alternative 'words:word:({})' 'files:file:_files'", join(option.words, " "));
    case Value::Key:
      return ":key:_gyre_keys";
    case Value::Path:
      return ":path:_files";
    case Value::Number:
      return ":number: ";
    case Value::Text:
      return ":value:_files";
  }
  return "";
}

}  // namespace

std::string bash_completion(const std::vector<DeclaredCommand>& commands) {
  std::string text =
      "# Completion of gyre for bash; made from the commands' own declarations.\n"
      "_gyre() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} first=1 i key= words=\n"
      "  COMPREPLY=()\n"
      "  if [ \"${COMP_WORDS[1]}\" = launch ]; then  # the command that it launches stands behind --\n"
      "    for ((i = 2; i < COMP_CWORD; i++)); do [ \"${COMP_WORDS[i]}\" = -- ] && first=$((i + 1)); done\n"
      "  fi\n"
      "  if [ \"$COMP_CWORD\" -eq \"$first\" ]; then\n";
  text += fmt::format("    COMPREPLY=($(compgen -W {} -- \"$current\"))\n    return\n  fi\n",
                      quoted(names_of(commands) + " --help --version"));
  text +=
      "  # bash makes a word of the sign in table.key=value.\n"
      "  if [ \"$current\" = = ]; then key=$before; current=; fi\n"
      "  if [ \"$before\" = = ]; then key=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  if [ -n \"$key\" ]; then\n    case $key in\n";
  for (const DeclaredKey& key : declared_keys()) {
    if (!key.choices.empty()) text += fmt::format("      {}) words={} ;;\n", key.key, quoted(join(key.choices, " ")));
  }
  text +=
      "    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n    return\n  fi\n"
      "  case \"${COMP_WORDS[first]} $before\" in\n";
  for (const DeclaredCommand& command : commands) {
    for (const DeclaredOption& option : command.options) {
      if (option.positional || option.value == Value::None) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back(quoted(command.name + " " + name));
      std::string reply = "COMPREPLY=($(compgen -f -- \"$current\")); compopt -o filenames 2>/dev/null";
      if (option.value == Value::Directory) reply = replaced(reply, "compgen -f", "compgen -d");
      if (option.value == Value::Number) reply = ":";
      if (option.value == Value::Words) {
        reply = fmt::format("COMPREPLY=($(compgen -f -W {} -- \"$current\"))", quoted(join(option.words, " ")));
      }
      if (option.value == Value::Key) {
        reply = "COMPREPLY=($(compgen -W \"$_gyre_keys\" -- \"$current\")); compopt -o nospace 2>/dev/null";
      }
      text += fmt::format("    {}) {}; return ;;\n", join(patterns, " | "), reply);
    }
  }
  text += "  esac\n  if [[ $current == -* ]]; then\n    case ${COMP_WORDS[first]} in\n";
  for (const DeclaredCommand& command : commands) {
    text += fmt::format("      {}) words={} ;;\n", command.name, quoted(flags_of(command)));
  }
  text +=
      "    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n  else\n"
      "    COMPREPLY=($(compgen -f -- \"$current\")); compopt -o filenames 2>/dev/null\n  fi\n}\n";
  text += fmt::format("_gyre_keys={}\ncomplete -F _gyre gyre\n", quoted(keys_with_equals()));
  return text;
}

std::string zsh_completion(const std::vector<DeclaredCommand>& commands) {
  std::string text =
      "#compdef gyre\n# Completion of gyre for zsh; made from the commands' own declarations.\n\n"
      "_gyre_keys() {\n  local key=${PREFIX%%=*}\n  if [[ $PREFIX != *=* ]]; then\n";
  text +=
      fmt::format("    compadd -S '' -- {}\n    return\n  fi\n  compset -P '*='\n  case $key in\n", keys_with_equals());
  for (const DeclaredKey& key : declared_keys()) {
    if (!key.choices.empty()) text += fmt::format("    {}) compadd -- {} ;;\n", key.key, join(key.choices, " "));
  }
  text +=
      "  esac\n}\n\n_gyre() {\n  local context state line\n  if (( CURRENT == 2 )); then\n    local -a commands\n    "
      "commands=(\n";
  for (const DeclaredCommand& command : commands) {
    text += fmt::format("      {}\n", quoted(command.name + ":" + zsh_text(command.meaning)));
  }
  text +=
      "    )\n    _describe command commands\n    return\n  fi\n  local command=$words[2]\n  shift words\n  (( "
      "CURRENT-- ))\n  case $command in\n";
  for (const DeclaredCommand& command : commands) {
    text += fmt::format("    {})\n      _arguments", command.name);
    for (const DeclaredOption& option : command.options) {
      if (option.positional) continue;
      for (const std::string& name : option.names) {
        const std::string spec = fmt::format("{}{}[{}]{}", option.value == Value::Key ? "*" : "", name,
                                             zsh_text(option.meaning), zsh_value(option));
        text += fmt::format(" \\\n        {}", quoted(spec));
      }
    }
    text += " \\\n        '*:path:_files'\n      ;;\n";
  }
  return text + "  esac\n}\n\n_gyre \"$@\"\n";
}

std::string fish_completion(const std::vector<DeclaredCommand>& commands) {
  const auto fish = [](const std::string& raw) {
    return "'" + replaced(replaced(raw, "\\", "\\\\"), "'", "\\'") + "'";
  };
  std::string text = "# Completion of gyre for fish; made from the commands' own declarations.\n";
  for (const DeclaredCommand& command : commands) {
    text +=
        fmt::format("complete -c gyre -n __fish_use_subcommand -f -a {} -d {}\n", command.name, fish(command.meaning));
  }
  text +=
      "complete -c gyre -n __fish_use_subcommand -f -l help -s h\ncomplete -c gyre -n __fish_use_subcommand -f -l "
      "version\n";
  std::string choices;
  for (const DeclaredKey& key : declared_keys()) {
    choices += " " + key.key + "=";
    for (const std::string& choice : key.choices) choices += fmt::format(" {}={}", key.key, choice);
  }
  text += fmt::format("set -g __gyre_keys{}\n", choices);
  for (const DeclaredCommand& command : commands) {
    for (const DeclaredOption& option : command.options) {
      if (option.positional) continue;
      std::string line = fmt::format("complete -c gyre -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& name : option.names) {
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.value == Value::Directory) line += " -x -a '(__fish_complete_directories)'";
      if (option.value == Value::Number) line += " -x";
      if (option.value == Value::Words) line += fmt::format(" -r -a {}", fish(join(option.words, " ")));
      if (option.value == Value::Key) line += " -x -a '$__gyre_keys'";
      if (option.value == Value::Path || option.value == Value::Text) line += " -r -F";
      text += line + " -d " + fish(option.meaning) + "\n";
    }
  }
  return text;
}

}  // namespace gyre::app
