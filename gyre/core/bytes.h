// Sizes in bytes, as people write and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace gyre {

// "8GiB", "500 MiB", "5GB", "4e9" (bytes). Empty if the text is not a size or is below 1 byte.
std::optional<int64_t> parse_bytes(const std::string& text);
// Both with as many digits as it takes to tell them apart, for messages that compare them.
std::pair<std::string, std::string> distinct_bytes(double a, double b);

}  // namespace gyre
