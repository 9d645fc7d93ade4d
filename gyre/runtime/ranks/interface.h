// The address that connections between processes are made over.
#pragma once

#include <string>

namespace gyre {

// Of an interface of this host that is given by its name, the address; what names none is an address already. Empty:
// loopback. InputError for an interface without an IPv4 address.
std::string address_of(const std::string& interface);
// Whether no other host can reach it.
bool is_loopback(const std::string& address);

}  // namespace gyre
