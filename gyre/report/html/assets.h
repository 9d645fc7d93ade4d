// Access to the files of the report's page, which the build embeds in the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace gyre {

// The contents of the file; empty if there is none of that name.
std::string_view find_asset(std::string_view name);

}  // namespace gyre
