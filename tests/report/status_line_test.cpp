// Tests the status line: what a terminal gets of it.
#include "gyre/report/status_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace gyre {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// What a terminal that is `width` columns wide gets.
std::string drawn(unsigned short width, double share, const std::string& text) {
  const File screen(::fdopen(::posix_openpt(O_RDWR | O_NOCTTY), "r"), &std::fclose);
  if (!screen || ::grantpt(fileno(screen.get())) != 0 || ::unlockpt(fileno(screen.get())) != 0) return "no terminal";
  const File terminal(std::fopen(::ptsname(fileno(screen.get())), "w"), &std::fclose);
  if (!terminal) return "no terminal";
  const winsize size{.ws_row = 24, .ws_col = width, .ws_xpixel = 0, .ws_ypixel = 0};
  ::ioctl(fileno(terminal.get()), TIOCSWINSZ, &size);
  StatusLine(terminal.get(), true).draw(share, text);  // and ends the line
  std::string line;
  for (int c = std::fgetc(screen.get()); c != EOF && c != '\n'; c = std::fgetc(screen.get())) {
    line += static_cast<char>(c);
  }
  return line;
}

constexpr const char* kText = "step 10/400  average loss 3.9000  ETA 1:05";  // 42 columns

TEST(StatusLine, IsCutToFitANarrowTerminal) {
  EXPECT_EQ(drawn(43, 0.5, kText), std::string("\r\x1b[K") + kText + "\r");
  EXPECT_EQ(drawn(42, 0.5, kText), "\r\x1b[Kstep 10/400  average loss 3.9000  ETA 1:0\r");
  EXPECT_EQ(drawn(8, 0.5, kText), "\r\x1b[Kstep 10\r");
  EXPECT_EQ(drawn(8, 0.5, "größer als das"), "\r\x1b[Kgrößer \r");
  EXPECT_EQ(drawn(1, 0.5, kText), "\r\x1b[K\r");
}

TEST(StatusLine, OnlyATerminalThatCanIsRedrawn) {
  const File screen(::fdopen(::posix_openpt(O_RDWR | O_NOCTTY), "r"), &std::fclose);
  const File file(std::tmpfile(), &std::fclose);
  ::setenv("TERM", "xterm", 1);
  EXPECT_TRUE(can_redraw(screen.get()));
  EXPECT_FALSE(can_redraw(file.get()));
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(can_redraw(screen.get()));
}

TEST(StatusLine, ABarFillsWhatTheTextLeaves) {
  EXPECT_EQ(drawn(53, 0.5, kText), std::string("\r\x1b[K") + kText + "\r");
  EXPECT_EQ(drawn(54, 0.5, kText), std::string("\r\x1b[K[====    ] ") + kText + "\r");
  EXPECT_EQ(drawn(54, -1, kText), std::string("\r\x1b[K") + kText + "\r");
  EXPECT_EQ(drawn(20, 1, "größer"), "\r\x1b[K[==========] größer\r");
}

}  // namespace
}  // namespace gyre
