// Of this machine, as messages and files call it.
#pragma once

#include <string>

namespace gyre {

std::string host_name();

}  // namespace gyre
