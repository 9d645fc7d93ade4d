// The commands and options that the programs declare, in the form from which man pages and completions are made.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace gyre::app {

struct DeclaredOption {
  enum class Value { None, Path, Directory, Words, Key, Number, Text };  // Key: table.key=value

  std::vector<std::string> names;  // "-n", "--out"; a positional has one name
  bool positional = false;
  bool required = false;
  bool repeatable = false;
  Value value = Value::Text;
  std::string label;               // what stands for the value: "NAME", "a|b"
  std::vector<std::string> words;  // to choose from
  std::string meaning;
  std::string default_text;
};

struct DeclaredCommand {
  std::string name;
  std::string meaning;
  std::string footer;
  std::vector<DeclaredOption> options;
};

// In the order of --help.
std::vector<DeclaredCommand> declared_commands(const CLI::App& app);

// A key that --set takes, and its possible values if they can be listed.
struct DeclaredKey {
  std::string key;
  std::vector<std::string> choices;
};
std::vector<DeclaredKey> declared_keys();

std::string bash_completion(const std::vector<DeclaredCommand>& commands);
std::string zsh_completion(const std::vector<DeclaredCommand>& commands);
std::string fish_completion(const std::vector<DeclaredCommand>& commands);

// gyre.1, and gyre-NAME.1 of a command.
std::string man_page(const std::vector<DeclaredCommand>& commands);
std::string man_page(const DeclaredCommand& command);

}  // namespace gyre::app
