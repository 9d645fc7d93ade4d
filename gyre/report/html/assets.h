// The files of the report's page that the build has put into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace gyre {

// Empty when there is none of that name.
std::string_view find_asset(std::string_view name);

}  // namespace gyre
