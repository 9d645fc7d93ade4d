#include "gyre/serve/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "gyre/core/address.h"
#include "gyre/core/error.h"
#include "gyre/core/random_hex.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

// Takes a time that does not depend on where the two differ.
bool are_equal(std::string_view secret, std::string_view given) {
  unsigned difference = secret.size() == given.size() ? 0 : 1;
  for (size_t i = 0; i < secret.size(); ++i) {
    const char other = i < given.size() ? given[i] : '\0';
    difference |= static_cast<unsigned char>(secret[i] ^ other);
  }
  return difference == 0;
}

}  // namespace

std::string new_token() {
  return random_hex(16);
}

Gate::Gate(std::string_view address, int port, std::string token)
    : beyond_loopback_(!is_loopback(address)), port_(fmt::format(":{}", port)), token_(std::move(token)) {}

bool Gate::is_ours(std::string_view host) const {
  if (host.ends_with(port_)) {
    host.remove_suffix(port_.size());
  } else if (port_ != ":80") {  // browsers leave port 80 out
    return false;
  }
  const std::string name = lower(host);
  if (name == "127.0.0.1" || name == "localhost" || name == "[::1]") return true;
  // Unlike a name, a numeric address cannot be pointed elsewhere.
  if (!beyond_loopback_) return false;
  const bool in_brackets = name.size() > 2 && name.front() == '[' && name.back() == ']';
  return in_brackets ? is_version_6(std::string_view(name).substr(1, name.size() - 2)) : is_version_4(name);
}

bool Gate::has_token(std::string_view target) const {
  if (!target.starts_with('/')) return false;
  target.remove_prefix(1);
  return are_equal(token_, target.substr(0, target.find_first_of("/?")));
}

std::optional<Refusal> Gate::refuse(const Request& request) const {
  if (request.hosts.size() != 1 || !is_ours(request.hosts[0])) {
    return Refusal{403, fmt::format("This is not {}; ask with the address that gyre serve printed, its port too",
                                    request.hosts.empty() ? "a host" : printable(request.hosts[0].substr(0, 80)))};
  }
  for (const std::string& origin : request.origins) {
    const std::string_view scheme = "http://";
    if (!lower(origin).starts_with(scheme) || !is_ours(std::string_view(origin).substr(scheme.size()))) {
      return Refusal{403, "Pages of other sites are not answered"};
    }
  }
  if (request.method != "GET" && request.method != "HEAD") return Refusal{405, "Only GET and HEAD are answered"};
  if (!has_token(request.target)) {
    return Refusal{403, "The token is missing or wrong; it is in the address that gyre serve printed"};
  }
  return std::nullopt;
}

std::string Gate::name_in(std::string_view target) {
  target = target.substr(0, target.find('?'));
  const size_t slash = target.find('/', 1);
  return slash == std::string_view::npos ? std::string() : std::string(target.substr(slash));
}

}  // namespace gyre
