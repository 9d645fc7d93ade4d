#include "process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "gyre/core/error.h"

namespace gyre::bench {
namespace {

[[noreturn]] void become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

pid_t fork_or_throw() {
  const pid_t process = fork();
  if (process < 0) throw RunError("cannot start another process");
  return process;
}

}  // namespace

Peer::Peer(const std::vector<std::string>& command,
           const std::vector<std::pair<std::string, std::string>>& environment) {
  std::array<int, 2> in{}, out{};
  if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) throw RunError("cannot make a pipe");
  std::signal(SIGPIPE, SIG_IGN);  // a child that has ended is noticed when it does not answer
  process_ = fork_or_throw();
  if (process_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    become(command);
  }
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
}

Peer::~Peer() {
  close(to_);  // the child ends at the end of its input
  close(from_);
  waitpid(process_, nullptr, 0);
}

void Peer::say(const std::string& line) {
  const std::string text = line + "\n";
  if (write(to_, text.data(), text.size()) < 0) return;
}

std::optional<std::string> Peer::hear() {
  std::string line;
  for (char c = 0; read(from_, &c, 1) == 1; line += c) {
    if (c == '\n') return line;
  }
  return std::nullopt;
}

}  // namespace gyre::bench
