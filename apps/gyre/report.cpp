// gyre report RUN|STUDY|TRACE...: one HTML file to look at.
#include <fmt/format.h>

#include <memory>

#include "command.h"
#include "gyre/core/files.h"
#include "gyre/core/message.h"
#include "gyre/core/text.h"
#include "gyre/report/html/page.h"
#include "output.h"

namespace gyre::app {
namespace {

struct Flags {
  std::vector<std::string> what;
  std::string out = "report.html";
};

void run(const Flags& flags) {
  check_writable(flags.out);
  const Report report = make_report({{flags.what.begin(), flags.what.end()}, GYRE_VERSION});
  write_file_atomic(flags.out, report.html);
  for (const std::string& note : report.notes) say_lines(stderr, note);
  print("{}: {}\n", printable(flags.out), report.summary);
}

}  // namespace

void add_report(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("report", "Write runs, studies and traces as one HTML page, to look at offline");
  command->add_option("what", flags->what, "Directories of runs and of studies, and traces (JSON)")
      ->required()
      ->check(some_path());
  command->add_option("--out", flags->out, "The page")->check(file_to_write("<!doctype html>"));
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
