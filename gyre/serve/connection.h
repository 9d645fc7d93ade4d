// One connection of the HTTP server, with time limits: the library's own timeout begins anew with each byte, so a
// client that sends a byte now and then could hold a thread for ever.
#pragma once

#include <httplib.h>

#include <chrono>
#include <string>

namespace gyre {

class Connection : public httplib::Stream {
 public:
  // `stopping`: a descriptor that becomes readable when the server stops. `write_timeout`: how long a client may take
  // nothing.
  Connection(int socket, int stopping, std::chrono::milliseconds write_timeout = std::chrono::seconds(10))
      : socket_(socket), stopping_(stopping), write_timeout_(write_timeout) {}

  // Reads the request line and headers; it never waits for a body. Returns false if they did not come in time, or were
  // too long, which is answered with status 431.
  bool read_head();

  // The library's interface. It reads only what read_head() has read.
  bool is_readable() const override { return at_ < head_.size(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override;
  // Returns -1 if nothing can be sent for `write_timeout`, or the server stops.
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;
  // Waits until the socket is ready for `events`. Returns false after `until`, or when the server stops.
  bool wait(short events, Clock::time_point until) const;

  int socket_, stopping_;
  std::chrono::milliseconds write_timeout_;
  std::string head_;
  size_t at_ = 0;
};

}  // namespace gyre
