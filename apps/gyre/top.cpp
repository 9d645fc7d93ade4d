// gyre top RUN: what a run is doing now, on a screen that is redrawn.
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "command.h"
#include "gyre/core/message.h"
#include "gyre/core/timing.h"
#include "gyre/report/top/figures.h"
#include "gyre/report/top/screen.h"
#include "gyre/report/top/terminal.h"
#include "interrupts.h"
#include "output.h"

namespace gyre::app {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(500);

struct Flags {
  std::string run;
  bool once = false, json = false;
};

// As wide as standard output if that is a terminal; all lines, whatever its height.
ScreenRoom room_of_output() {
  ScreenRoom room{.height = 0, .keys = false};
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) room.width = size.ws_col;
  return room;
}

int scrolled(const Screen& screen, Key key) {
  const int page = std::max(1, screen.shown - 1);
  switch (key) {
    case Key::Up:
      return screen.first - 1;
    case Key::Down:
      return screen.first + 1;
    case Key::PageUp:
      return screen.first - page;
    case Key::PageDown:
      return screen.first + page;
    case Key::Home:
      return 0;
    case Key::End:
      return screen.workers;
    default:
      return screen.first;
  }
}

// Blocks or unblocks the signal for a change of the terminal's size. The drawing thread must get it, since it alone
// waits for keys.
void mask_size_changes(int how) {
  sigset_t changes;
  sigemptyset(&changes);
  sigaddset(&changes, SIGWINCH);
  ::pthread_sigmask(how, &changes, nullptr);
}

// Redraws until `q` or a signal. Returns the exit code.
int watch(TopReader& reader) {
  mask_size_changes(SIG_BLOCK);
  const Interrupts interrupts;
  mask_size_changes(SIG_UNBLOCK);
  TopFigures figures = reader.read(unix_seconds());  // errors are reported before the screen is taken over
  const auto terminal = open_terminal();
  int first = 0;
  auto read_at = std::chrono::steady_clock::now();
  while (!interrupts.stop().stop_requested()) {
    ScreenRoom room = terminal->room();
    room.first = first;
    const Screen screen = draw_screen(figures, room);
    terminal->show(screen);
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(read_at + kRedraw - std::chrono::steady_clock::now());
    const Key key = terminal->wait(std::max(left, std::chrono::milliseconds(0)), interrupts.stop());
    if (key == Key::Quit) return 0;
    first = scrolled(screen, key);
    if (std::chrono::steady_clock::now() - read_at < kRedraw) continue;
    read_at = std::chrono::steady_clock::now();
    reader.update(figures, unix_seconds());
  }
  return interrupts.exit_code();
}

void run(const Flags& flags) {
  TopReader reader(flags.run);
  if (flags.json) {
    print_text(to_json(reader.read(unix_seconds())));
    return;
  }
  const bool on_terminal = ::isatty(STDOUT_FILENO) != 0 && ::isatty(STDIN_FILENO) != 0;
  if (flags.once || !on_terminal) {
    const TopFigures figures = reader.read(unix_seconds());
    if (!flags.once) say(stderr, "standard input or output is no terminal: one screen, as --once prints it\n");
    print_text(plain_text(draw_screen(figures, room_of_output())));
    return;
  }
  if (const int code = watch(reader); code != 0) throw CLI::RuntimeError(code);
}

}  // namespace

void add_top(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("top", "Show what a run is doing now, on a screen that is updated");
  command->add_option("run", flags->run, "Directory of the run")->required()->check(some_path());
  CLI::Option* once = command->add_flag("--once", flags->once, "Print one screen as text, and end");
  command->add_flag("--json", flags->json, "Print the figures as JSON, and end")->excludes(once);
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
