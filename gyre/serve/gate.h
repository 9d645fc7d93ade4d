// Who may ask a server that is meant for this machine alone: whoever knows the token, by a name that other sites cannot
// have.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

// 32 hexadecimal digits from the system's random source. RunError where it has none.
std::string new_token();

// What of a request decides whether it is answered.
struct Asked {
  std::string method;
  std::vector<std::string> hosts;    // of every Host header
  std::vector<std::string> origins;  // of every Origin header
  std::string target;                // as it came: /TOKEN/NAME, and perhaps ?...
};
struct Refusal {
  int status;
  std::string why;  // a line, for who asked
};

class Gate {
 public:
  // `address`: what the server listens at, a number.
  Gate(std::string_view address, int port, std::string token);

  // Nothing where it may be answered.
  std::optional<Refusal> refuse(const Asked& asked) const;
  // What is asked for behind the token; of a request that was not refused.
  static std::string name_in(std::string_view target);

 private:
  // A page of another site can have the browser ask this machine, under that site's name (DNS rebinding). So only names
  // that are nobody else's count.
  bool is_ours(std::string_view host) const;
  bool has_token(std::string_view target) const;

  bool beyond_loopback_;
  std::string port_;
  std::string token_;
};

// "[::1]:80", "127.0.0.1:80".
std::string host_and_port(std::string_view address, int port);
bool is_loopback(std::string_view address);
// Whether it is an address in numbers, of IPv4 or IPv6.
bool is_address(std::string_view text);

}  // namespace gyre
