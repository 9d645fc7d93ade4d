// Sizes as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gyre {

// "8GiB", "500 MiB", "5GB", "4e9" (bytes). Nothing for what is no size, or below 1.
std::optional<int64_t> parse_bytes(const std::string& text);

}  // namespace gyre
