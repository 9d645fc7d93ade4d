// Man pages in roff's man macros.
#include <fmt/format.h>

#include <sstream>

#include "declared.h"

namespace gyre::app {
namespace {

// Escapes text so that roff prints it as it is: no requests at the beginning of a line, no escapes, and hyphens that
// can be copied.
std::string roff(const std::string& text) {
  std::string escaped;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
    begins = c == '\n';
  }
  return escaped;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string heading(const std::string& name) {
  return fmt::format(".\\\" Made from the commands' own declarations.\n.TH \"{}\" 1 \"\" \"gyre {}\" \"gyre\"\n",
                     upper(roff(name)), GYRE_VERSION);
}

std::string value_of(const DeclaredOption& option) {
  return option.value == DeclaredOption::Value::None ? "" : fmt::format(" \\fI{}\\fR", roff(option.label));
}

std::string described(const DeclaredOption& option) {
  std::string text = ".TP\n";
  if (option.positional) {
    text += fmt::format("\\fI{}\\fR\n", roff(option.names.front()));
  } else {
    std::string names;
    for (const std::string& name : option.names) {
      names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
    }
    text += names + value_of(option) + "\n";
  }
  std::string meaning = option.meaning;
  if (!option.words.empty()) {
    meaning += ". Known:";
    for (const std::string& word : option.words) meaning += " " + word;
  }
  if (!option.default_text.empty()) meaning += fmt::format(" (default {})", option.default_text);
  if (option.required) meaning += " (required)";
  return text + roff(meaning) + "\n";
}

constexpr const char* kExitStatus = R"(.SH EXIT STATUS
.TP
0
done
.TP
1
failed; the last line on standard error says why
.TP
2
bad input: a flag, a configuration, a file; nothing was changed
.TP
3
the run diverged
.TP
4
a file has no room: the disk is full, or a quota or a limit of file sizes is reached
.TP
130, 143
interrupted by SIGINT (130), by SIGTERM or SIGHUP (143); a run has saved, unless a second signal ended it, and can be resumed
)";

}  // namespace

std::string man_page(const DeclaredCommand& command) {
  std::string text = heading("gyre-" + command.name);
  text += fmt::format(".SH NAME\ngyre\\-{} \\- {}\n", roff(command.name), roff(command.meaning));
  text += fmt::format(".SH SYNOPSIS\n.B gyre {}\n", roff(command.name));
  for (const DeclaredOption& option : command.options) {
    if (!option.positional && option.required) {
      text += fmt::format("\\fB{}\\fR{}\n", roff(option.names.back()), value_of(option));
    }
  }
  text += "[\\fIoptions\\fR]\n";
  for (const DeclaredOption& option : command.options) {
    if (!option.positional) continue;
    const std::string word = fmt::format("\\fI{}\\fR{}", roff(option.names.front()), option.repeatable ? "..." : "");
    text += option.required ? word + "\n" : fmt::format("[{}]\n", word);
  }
  for (const bool positional : {true, false}) {
    std::string options;
    for (const DeclaredOption& option : command.options) {
      if (option.positional == positional) options += described(option);
    }
    if (!options.empty()) text += fmt::format(".SH {}\n{}", positional ? "ARGUMENTS" : "OPTIONS", options);
  }
  if (!command.footer.empty()) {
    text += ".SH NOTES\n";
    std::istringstream lines(command.footer);
    for (std::string line; std::getline(lines, line);) text += line.empty() ? ".PP\n" : roff(line) + "\n";
  }
  return text + kExitStatus + ".SH SEE ALSO\n.BR gyre (1)\n";
}

std::string man_page(const std::vector<DeclaredCommand>& commands) {
  std::string text = heading("gyre");
  text +=
      ".SH NAME\ngyre, gyre\\-engine \\- train transformer language models through asynchronous pipelines\n"
      ".SH SYNOPSIS\n.B gyre\n\\fIcommand\\fR [\\fIoptions\\fR]\n"
      ".SH DESCRIPTION\n"
      "The layers of a model are cut into stages, each on a worker of its own; microbatches flow through them without "
      "a\n"
      "flush. Schedules are data: validated, drawn, simulated and executed from one description.\n.PP\n"
      "\\fBgyre\\fR becomes \\fBgyre\\-engine\\fR for the commands that need libtorch; all commands are\n"
      "\\fBgyre\\fR's to a user. Results go to standard output, progress and messages to standard error.\n"
      ".SH COMMANDS\n";
  for (const DeclaredCommand& command : commands) {
    text += fmt::format(".TP\n.BR gyre\\-{} (1)\n{}\n", roff(command.name), roff(command.meaning));
  }
  return text + kExitStatus +
         ".SH FILES\nA run is described by a TOML file; \\fBgyre init\\fR prints one with every key explained, and\n"
         "\\fBgyre init \\-\\-schema\\fR its JSON schema for editors.\n";
}

}  // namespace gyre::app
