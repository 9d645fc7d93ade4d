#include "output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/json_text.h"
#include "gyre/core/message.h"

namespace gyre::app {
namespace {

[[noreturn]] void fail_to_print(int error) {
  const char* why = error == EBADF ? "it is closed" : std::strerror(error);
  throw RunError(fmt::format("the result cannot be written to standard output: {}", why));
}

// Opens /dev/null in place of a closed descriptor, in the wrong direction: reading standard input or writing a result
// must fail as it would if it were closed. Messages on stderr are simply lost.
void hold_if_closed(int descriptor) {
  if (::fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) return;
  const int opened = ::open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  // The lowest free number is `descriptor`, since those below it are open.
  if (opened != descriptor) std::_Exit(1);
}

}  // namespace

void open_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) hold_if_closed(descriptor);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void print_text(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_to_print(errno);
}

void print_object(const nlohmann::ordered_json& json) {
  print_text(json_text(json) + "\n");
}

void flush_results() {
  if (std::fflush(stdout) != 0) fail_to_print(errno);
  // Some file systems report a full disk only when a descriptor is closed.
  const int copy = ::dup(STDOUT_FILENO);
  if (copy >= 0 && ::close(copy) != 0 && errno != EINTR) fail_to_print(errno);
}

void print_error(std::string_view what) {
  say_lines(stderr, fmt::format("gyre: {}", what));
}

}  // namespace gyre::app
