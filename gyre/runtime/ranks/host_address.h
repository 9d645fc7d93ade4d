// The address over which processes connect.
#pragma once

#include <string>

namespace gyre {

// The address of the interface of this host with that name; any other text is an address itself. Empty: loopback.
// Throws InputError for an interface without an IPv4 address, and for an address that is not one of this host.
std::string address_of(const std::string& interface);

}  // namespace gyre
