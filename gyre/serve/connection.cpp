#include "gyre/serve/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace gyre {
namespace {

constexpr size_t kMaxHeadBytes = 16 * 1024;
constexpr std::chrono::seconds kHeadTimeout{10};
constexpr std::string_view kTooLong =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

}  // namespace

bool Connection::wait(short events, Clock::time_point until) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    std::array<pollfd, 2> waited{pollfd{socket_, events, 0}, pollfd{stopping_, POLLIN, 0}};
    const int ready = ::poll(waited.data(), waited.size(), static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    return waited[1].revents == 0;
  }
}

bool Connection::read_head() {
  const auto until = Clock::now() + kHeadTimeout;
  std::array<char, 4096> piece{};
  while (head_.find("\r\n\r\n") == std::string::npos) {
    if (head_.size() >= kMaxHeadBytes) {
      write(kTooLong.data(), kTooLong.size());
      return false;
    }
    if (!wait(POLLIN, until)) return false;
    const ssize_t count = ::recv(socket_, piece.data(), std::min(piece.size(), kMaxHeadBytes - head_.size()), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    head_.append(piece.data(), static_cast<size_t>(count));
  }
  return true;
}

ssize_t Connection::read(char* to, size_t size) {
  const size_t count = std::min(size, head_.size() - at_);
  std::memcpy(to, head_.data() + at_, count);
  at_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* from, size_t size) {
  for (;;) {
    if (!wait(POLLOUT, Clock::now() + write_timeout_)) return -1;
    const ssize_t count = ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) return count;
    if (errno != EINTR && errno != EAGAIN) return -1;
  }
}

// Not needed: answers do not depend on the client.
void Connection::get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const {}
void Connection::get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const {}

}  // namespace gyre
