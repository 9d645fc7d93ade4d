// Messages for a command line that cannot be parsed. CLI11's own messages speak of its types; and an unknown flag is
// most often the name of a key.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "gyre/config/config.h"
#include "gyre/core/replace_file.h"
#include "gyre/core/text.h"

namespace gyre::app {
namespace {

// "optimizer.lr" without its table.
std::string without_table(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

// "--batch-size" as a key would be written.
std::string as_key(std::string flag) {
  flag.erase(0, flag.find_first_not_of('-'));
  std::replace(flag.begin(), flag.end(), '-', '_');
  return flag;
}

// The keys that the flag names: "updates" as well as "run.updates".
std::vector<std::string> keys_named(const std::string& name) {
  std::vector<std::string> named;
  for (const std::string& key : config_keys()) {
    if (key == name || without_table(key) == name) named.push_back(key);
  }
  return named;
}

// The command that was chosen, or `app` if none was.
const CLI::App& chosen_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : *chosen.front();
}

std::string full_name(const CLI::App& app, const CLI::App& command) {
  return &app == &command ? "gyre" : "gyre " + command.get_name();
}

std::string see_help(const CLI::App& app) {
  return fmt::format("see {} --help", full_name(app, chosen_command(app)));
}

// The value of an unknown flag if the parser took it for a positional, namely a word that names no file; else "VALUE".
std::string value_taken_for_a_path(const CLI::App& command) {
  std::string value = "VALUE";
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    for (const std::string& word : option->results()) {
      struct stat status {};
      if (::stat(word.c_str(), &status) != 0) value = word;
    }
  }
  return value;
}

std::string explain_extras(const CLI::App& app) {
  const CLI::App& command = chosen_command(app).remaining().empty() ? app : chosen_command(app);
  const std::vector<std::string> words = command.remaining();
  const auto at = std::find_if(words.begin(), words.end(), [](const std::string& word) { return word[0] == '-'; });
  if (at == words.end()) {
    return fmt::format("{} does not expect '{}'; {}", full_name(app, command),
                       words.empty() ? "" : printable(words.back()), see_help(app));
  }
  const size_t equals = at->find('=');
  const std::string flag = at->substr(0, equals);
  std::string value = value_taken_for_a_path(command);
  if (equals != std::string::npos) {
    value = at->substr(equals + 1);
  } else if (std::next(at) != words.end() && (*std::next(at))[0] != '-') {
    value = *std::next(at);
  }

  const bool takes_keys = command.get_option_no_throw("--set") != nullptr;
  const auto as_set = [&](const std::string& key) { return fmt::format("--set {}={}", key, shell_word(value)); };
  std::vector<std::string> meant;
  const std::string name = as_key(flag);
  if (takes_keys) {
    std::vector<std::string> named = keys_named(name);
    if (named.empty()) named = keys_named(without_table(name));
    for (const std::string& key : named) meant.push_back(as_set(key));
  }
  if (meant.empty()) {
    // The nearest name among all flags and keys.
    std::vector<std::string> names, flags;
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        flags.push_back("--" + name);
        names.push_back(as_key(name));
      }
    }
    for (const std::string& key : takes_keys ? config_keys() : std::vector<std::string>()) {
      names.push_back(without_table(key));
    }
    if (const auto near = nearest(without_table(name), names)) {
      const auto place = static_cast<size_t>(std::find(names.begin(), names.end(), *near) - names.begin());
      meant.push_back(place < flags.size() ? flags[place] : as_set(keys_named(*near).front()));
    }
  }
  return fmt::format("unknown flag {}; {}", printable(flag),
                     meant.empty() ? see_help(app) : fmt::format("did you mean {}?", join(meant, " or ")));
}

// The option that CLI11's message is about, "NAME: ..." or "NAME is required" or "Could not convert: NAME = ...".
const CLI::Option* option_in(const CLI::App& command, const std::string& message) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    for (const std::string& begin : {name + ":", name + " ", "Could not convert: " + name + " "}) {
      if (message.rfind(begin, 0) == 0) return option;
    }
  }
  return nullptr;
}

const char* wanted_by(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.rfind("INT", 0) == 0) return "a whole number";
  if (type.rfind("UINT", 0) == 0) return "a whole number, 0 or more";
  if (type.rfind("FLOAT", 0) == 0) return "a number";
  return "a value";
}

}  // namespace

std::string explain(const CLI::App& app, const CLI::Error& error) {
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const std::string message = error.what();
  const CLI::App& command = chosen_command(app);
  if (kind == CLI::ExitCodes::ExtrasError) return explain_extras(app);
  if (&command == &app && kind == CLI::ExitCodes::RequiredError) return "give a command; see gyre --help";
  const CLI::Option* option = option_in(command, message);
  if (option == nullptr) return fmt::format("{}; {}", printable(message), see_help(app));
  const std::string name = option->get_name();
  if (kind == CLI::ExitCodes::RequiredError) {
    std::string meaning = option->get_description();
    meaning[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(meaning[0])));
    return fmt::format("{} needs {}: {}; {}", full_name(app, command), name, meaning, see_help(app));
  }
  if (kind == CLI::ExitCodes::ConversionError) {
    const size_t equals = message.find(" = ");
    const std::string value = equals == std::string::npos ? "" : message.substr(equals + 3);
    return fmt::format("{} is '{}'; give {}", name, printable(value), wanted_by(*option));
  }
  if (kind == CLI::ExitCodes::ArgumentMismatch) {
    const bool missing = message.find("missing") != std::string::npos;
    return missing ? fmt::format("{} lacks its value; give {}", name, wanted_by(*option))
                   : fmt::format("{} is given more than once; give it once", name);
  }
  return printable(message);
}

std::string explain(const std::filesystem::filesystem_error& error) {
  const auto& path = error.path2().empty() ? error.path1() : error.path2();
  return fmt::format("{}: cannot be used: {}", printable(path.string()), error.code().message());
}

namespace {

constexpr const char* kEmpty = "the path is empty; give one";

std::string unusable(const std::filesystem::path& path, const char* what, int error) {
  return fmt::format("{} cannot be {}: {}", printable(path.string()), what, std::strerror(error));
}

// Empty if entries can be made in `directory`, else a complaint.
std::string complaint_of(const std::filesystem::path& directory, const std::string& wanted) {
  return ::access(directory.c_str(), W_OK | X_OK) == 0 ? "" : unusable(wanted, "written", errno);
}

}  // namespace

CLI::Validator some_path() {
  return CLI::Validator([](const std::string& text) { return std::string(text.empty() ? kEmpty : ""); }, "", "path");
}

CLI::Validator offers(const std::vector<std::string>& words) {
  return CLI::Validator([](const std::string&) { return std::string(); }, "", kOffers + join(words, " "));
}

CLI::Validator file_to_write(std::string_view beginning) {
  return CLI::Validator(
      [beginning](const std::string& text) -> std::string {
        if (text.empty()) return kEmpty;
        const std::string why = why_not_writable(text, beginning);
        return why.empty() ? "" : fmt::format("{} cannot be written: {}", printable(text), why);
      },
      "", "file to write");
}

CLI::Validator directory_to_make() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        if (text.empty()) return kEmpty;
        // The part of the path that exists must be a directory that can be written to.
        for (std::filesystem::path path = text;; path = path.parent_path()) {
          struct stat status {};
          const std::filesystem::path there = path.empty() ? "." : path;
          if (::stat(there.c_str(), &status) == 0) {
            return S_ISDIR(status.st_mode) ? complaint_of(there, text) : unusable(text, "made", ENOTDIR);
          }
          if (::lstat(there.c_str(), &status) == 0) {
            return fmt::format("{} cannot be made: {} is a link to nothing", printable(text),
                               printable(there.string()));
          }
          if (errno != ENOENT) return unusable(text, "made", errno);
        }
      },
      "", "directory");
}

}  // namespace gyre::app
