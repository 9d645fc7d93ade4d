// Decides which requests a local server answers: those that have the token and use a name for the server that no other
// site can have.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

// 32 hexadecimal digits from the system's random source. Throws RunError if there is none.
std::string new_token();

// What decides whether a request is answered.
struct Request {
  std::string method;
  std::vector<std::string> hosts;    // the values of all Host headers
  std::vector<std::string> origins;  // the values of all Origin headers
  std::string target;                // as received: /TOKEN/NAME, and perhaps ?...
};
struct Refusal {
  int status;
  std::string why;  // one line for the client
};

class Gate {
 public:
  // `address`: the numeric address that the server listens at.
  Gate(std::string_view address, int port, std::string token);

  // The reason not to answer; empty if the request may be answered.
  std::optional<Refusal> refuse(const Request& request) const;
  // The name after the token, from its slash on, in the target of a request that was not refused; empty if there is
  // none.
  static std::string name_in(std::string_view target);

 private:
  // A page of another site can make the browser send requests to this machine under that site's name (DNS rebinding).
  // So only names that no other site can have are accepted.
  bool is_ours(std::string_view host) const;
  bool has_token(std::string_view target) const;

  bool beyond_loopback_;
  std::string port_;
  std::string token_;
};

}  // namespace gyre
