// Names and secrets that nobody can guess and nobody else has.
#pragma once

#include <cstddef>
#include <string>

namespace gyre {

// `bytes` bytes of the system's random source, as hexadecimal digits. Throws RunError if there is none.
std::string random_hex(size_t bytes);

}  // namespace gyre
