#include "gyre/core/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>

namespace gyre {

bool is_version_4(std::string_view text) {
  std::array<unsigned char, sizeof(in_addr)> bytes{};
  return inet_pton(AF_INET, std::string(text).c_str(), bytes.data()) == 1;
}

bool is_version_6(std::string_view text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(AF_INET6, std::string(text).c_str(), bytes.data()) == 1;
}

bool is_address(std::string_view text) {
  return is_version_4(text) || is_version_6(text);
}

bool is_loopback(std::string_view address) {
  return address == "localhost" || address == "::1" || (is_version_4(address) && address.starts_with("127."));
}

std::string host_and_port(std::string_view host, int port) {
  const bool is_number_6 = host.find(':') != std::string_view::npos;  // "fe80::1%eth0" too
  return is_number_6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace gyre
