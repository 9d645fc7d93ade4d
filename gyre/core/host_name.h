// This machine's name, as messages and files use it.
#pragma once

#include <string>

namespace gyre {

std::string host_name();

}  // namespace gyre
