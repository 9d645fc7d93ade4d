#include "gyre/runtime/ranks/host_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "gyre/core/descriptor.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

// Whether connections can be made from that address, which may be written as a name.
bool is_of_this_host(const std::string& address) {
  addrinfo* first = nullptr;
  if (::getaddrinfo(address.c_str(), nullptr, nullptr, &first) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(first, &::freeaddrinfo);
  for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
    const Descriptor socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.ok() && ::bind(socket.get(), one->ai_addr, one->ai_addrlen) == 0) return true;
  }
  return false;
}

}  // namespace

std::string address_of(const std::string& interface) {
  if (interface.empty()) return "127.0.0.1";
  if (::if_nametoindex(interface.c_str()) == 0) {
    if (is_of_this_host(interface)) return interface;
    throw InputError(
        fmt::format("--interface {}: neither an interface nor an address of this host", printable(interface)));
  }
  ifaddrs* first = nullptr;
  ::getifaddrs(&first);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, &::freeifaddrs);
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || interface != one->ifa_name) continue;
    sockaddr_in found{};
    std::memcpy(&found, one->ifa_addr, sizeof found);
    char text[INET_ADDRSTRLEN] = {};
    if (::inet_ntop(AF_INET, &found.sin_addr, text, sizeof text) != nullptr) return text;
  }
  throw InputError(fmt::format("--interface {}: it has no IPv4 address", interface));
}

}  // namespace gyre
