// A process beside the program that answers lines with lines.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gyre::bench {

// A process that is spoken to through its standard input and output. It ends with the object.
class Peer {
 public:
  // environment: set for it alone.
  Peer(const std::vector<std::string>& command, const std::vector<std::pair<std::string, std::string>>& environment);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void say(const std::string& line);
  // Its next line; nothing where it has ended.
  std::optional<std::string> hear();

 private:
  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
};

}  // namespace gyre::bench
