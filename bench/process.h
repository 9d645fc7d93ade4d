// A child process that answers lines with lines.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gyre::bench {

// A child process, with which the program communicates by its standard input and output. The destructor closes its
// input and waits for its end.
class Peer {
 public:
  // environment: variables set only in the child.
  Peer(const std::vector<std::string>& command, const std::vector<std::pair<std::string, std::string>>& environment);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void say(const std::string& line);
  // The child's next line; empty if it has ended.
  std::optional<std::string> hear();

 private:
  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
};

}  // namespace gyre::bench
