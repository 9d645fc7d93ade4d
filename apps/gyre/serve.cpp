// gyre serve RUN|STUDY|TRACE...: the report, live, for a browser on this machine.
#include <fmt/format.h>

#include <memory>

#include "command.h"
#include "gyre/core/address.h"
#include "gyre/core/error.h"
#include "gyre/core/message.h"
#include "gyre/core/text.h"
#include "gyre/report/html/page.h"
#include "gyre/serve/gate.h"
#include "gyre/serve/http_server.h"
#include "gyre/serve/live_report.h"
#include "interrupts.h"
#include "number_flag.h"
#include "output.h"

namespace gyre::app {
namespace {

struct Flags {
  std::vector<std::string> what;
  ServerOptions server{"127.0.0.1", 8642};
};

void run(const Flags& flags) {
  const Interrupts interrupts;
  LiveReport report({flags.what.begin(), flags.what.end()});
  const auto page = std::make_shared<const std::string>(live_page(GYRE_VERSION));
  const auto part = [](std::shared_ptr<const LiveTexts> texts, const std::string& text, const std::string& tag) {
    // Shares ownership of all texts.
    return Answer{std::shared_ptr<const std::string>(std::move(texts), &text), "application/json", tag};
  };
  HttpServer server(flags.server, [&](const std::string& name) -> Answer {
    if (name == "/") return {page, "text/html; charset=utf-8", ""};
    if (name != "/data" && name != "/timelines") return {};
    const auto texts = report.now();
    if (name == "/data") return part(texts, texts->data, texts->data_tag);
    return part(texts, texts->timelines, texts->timelines_tag);
  });
  for (const std::string& note : report.notes()) say_lines(stderr, note);
  if (!is_loopback(flags.server.address)) {
    say_lines(stderr, fmt::format("listens at {}: whoever can reach it there and has this address sees the report, and "
                                  "it travels as plain text; ssh -L needs no --address",
                                  flags.server.address));
  }
  say_lines(stderr, fmt::format("serving {}; Ctrl-C ends it", report.summary()));
  print("{}\n", server.url());
  flush_results();
  server.serve(interrupts.stop());
  throw CLI::RuntimeError(interrupts.exit_code());
}

CLI::Validator address() {
  return CLI::Validator(
      [](const std::string& text) {
        if (!is_address(text)) {
          throw InputError(
              fmt::format("--address is '{}'; give an address of this machine in numbers, such as 127.0.0.1 "
                          "or ::1",
                          printable(text)));
        }
        return std::string();
      },
      "");
}

}  // namespace

void add_serve(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("serve", "Show the report of runs and studies live in a browser on this machine");
  command->add_option("what", flags->what, "Directories of runs and of studies, and traces (JSON)")
      ->required()
      ->check(some_path());
  add_number(*command, "--port", flags->server.port, {0, 65535}, "TCP port; 0: any that is free");
  command
      ->add_option("--address", flags->server.address,
                   "Address to listen on; another than 127.0.0.1 lets other machines in")
      ->check(address());
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
