// The terminal, implemented with ncurses: works for any $TERM that ncurses knows, and at any size.
#define NCURSES_NOMACROS  // its macros have names such as `timeout`
#include <curses.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>

#include "gyre/core/error.h"
#include "gyre/core/wake_flag.h"
#include "gyre/report/top/terminal.h"

namespace gyre {
namespace {

enum Pair : short { kGood = 1, kWarning, kBad };

chtype attributes(Look look) {
  switch (look) {
    case Look::Bold:
      return A_BOLD;
    case Look::Dim:
      return A_DIM;
    case Look::Good:
      return static_cast<chtype>(COLOR_PAIR(kGood));
    case Look::Warning:
      return static_cast<chtype>(COLOR_PAIR(kWarning));
    case Look::Bad:
      return static_cast<chtype>(COLOR_PAIR(kBad)) | A_BOLD;
    default:
      return A_NORMAL;
  }
}

Key key_of(int code) {
  switch (code) {
    case 'q':
    case 'Q':
      return Key::Quit;
    case KEY_UP:
    case 'k':
      return Key::Up;
    case KEY_DOWN:
    case 'j':
      return Key::Down;
    case KEY_PPAGE:
      return Key::PageUp;
    case KEY_NPAGE:
    case ' ':
      return Key::PageDown;
    case KEY_HOME:
      return Key::Home;
    case KEY_END:
      return Key::End;
    case KEY_RESIZE:
      return Key::Resized;
    default:
      return Key::None;
  }
}

class NcursesTerminal final : public Terminal {
 public:
  NcursesTerminal() {
    std::setlocale(LC_CTYPE, "C.UTF-8");  // the screen is UTF-8 text, whatever the shell's locale
    screen_ = newterm(nullptr, stdout, stdin);
    if (screen_ == nullptr) {
      throw InputError("the terminal's kind ($TERM) is not known here; give --once, or set TERM=xterm");
    }
    set_term(screen_);
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    if (has_colors()) {
      start_color();
      use_default_colors();
      init_pair(kGood, COLOR_GREEN, -1);
      init_pair(kWarning, COLOR_YELLOW, -1);
      init_pair(kBad, COLOR_RED, -1);
    }
  }
  ~NcursesTerminal() override {
    endwin();
    delscreen(screen_);
  }
  NcursesTerminal(const NcursesTerminal&) = delete;
  NcursesTerminal& operator=(const NcursesTerminal&) = delete;

  ScreenRoom room() const override {
    ScreenRoom room;
    getmaxyx(stdscr, room.height, room.width);
    return room;
  }

  void show(const Screen& screen) override {
    werase(stdscr);
    int row = 0;
    for (const ScreenLine& line : screen.lines) {
      wmove(stdscr, row++, 0);
      for (const Span& span : line) {
        wattrset(stdscr, static_cast<int>(attributes(span.look)));
        waddnstr(stdscr, span.text.c_str(), -1);
      }
    }
    wattrset(stdscr, A_NORMAL);
    wrefresh(stdscr);
  }

  Key wait(std::chrono::milliseconds within, const std::stop_token& stop) override {
    const std::stop_callback wake(stop, [this] { wake_.raise(); });
    if (const int code = wgetch(stdscr); code != ERR) return key_of(code);
    pollfd waits[] = {{STDIN_FILENO, POLLIN, 0}, {wake_.descriptor(), POLLIN, 0}};
    const int ready = ::poll(waits, 2, static_cast<int>(within.count()));
    const bool interrupted = ready < 0 && errno == EINTR;  // by a change of the terminal's size
    if (ready <= 0 && !interrupted) return Key::None;
    // The terminal is gone: nobody can press a key any more.
    if ((waits[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return Key::Quit;
    const int code = wgetch(stdscr);
    return code == ERR ? Key::None : key_of(code);
  }

 private:
  SCREEN* screen_ = nullptr;
  WakeFlag wake_;
};

}  // namespace

std::unique_ptr<Terminal> open_terminal() {
  return std::make_unique<NcursesTerminal>();
}

}  // namespace gyre
