// Network addresses.
#pragma once

#include <string>
#include <string_view>

namespace gyre {

// Whether it is a numeric IPv4 or IPv6 address, or one of the two.
bool is_address(std::string_view text);
bool is_version_4(std::string_view text);
bool is_version_6(std::string_view text);
// Whether no other host can reach the address; so it is for "localhost".
bool is_loopback(std::string_view address);
// A host, by address or name, and a port, as in a URL: "[::1]:80", "127.0.0.1:80".
std::string host_and_port(std::string_view host, int port);

}  // namespace gyre
