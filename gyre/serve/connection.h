// One connection of the HTTP server, with an end: the library waits for each byte anew, so who sends one now and then
// would hold a thread for ever.
#pragma once

#include <httplib.h>

#include <chrono>
#include <string>

namespace gyre {

class Connection : public httplib::Stream {
 public:
  // `stopping`: a descriptor that is readable when all is to end.
  Connection(int socket, int stopping) : socket_(socket), stopping_(stopping) {}

  // Reads the request's line and headers; nothing of a body is ever read. False where it is given up: they did not come
  // in time, or were too long, which is answered.
  bool read_head();

  // The library's: of what was read, and of nothing else.
  bool is_readable() const override { return at_ < head_.size(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override;
  // Gives up where nothing at all could be sent for a while.
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;
  // Until the socket is ready for `events`; false where it is too late, or all ends.
  bool wait(short events, Clock::time_point until) const;

  int socket_, stopping_;
  std::string head_;
  size_t at_ = 0;
};

}  // namespace gyre
