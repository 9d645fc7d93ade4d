// Numeric network addresses.
#pragma once

#include <string_view>

namespace gyre {

// Whether it is a numeric IPv4 or IPv6 address, or one of the two.
bool is_address(std::string_view text);
bool is_version_4(std::string_view text);
bool is_version_6(std::string_view text);
// Whether no other host can reach the address; so it is for "localhost".
bool is_loopback(std::string_view address);

}  // namespace gyre
