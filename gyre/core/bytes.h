// Parses sizes in bytes as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gyre {

// "8GiB", "500 MiB", "5GB", "4e9" (bytes). Empty if the text is not a size or is below 1 byte.
std::optional<int64_t> parse_bytes(const std::string& text);

}  // namespace gyre
