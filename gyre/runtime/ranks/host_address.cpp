#include "gyre/runtime/ranks/host_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <cstring>
#include <memory>

#include "gyre/core/error.h"

namespace gyre {

std::string address_of(const std::string& interface) {
  if (interface.empty()) return "127.0.0.1";
  if (::if_nametoindex(interface.c_str()) == 0) return interface;
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
