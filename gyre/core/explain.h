// What to say of an exception that is none of gyre's own.
#pragma once

#include <exception>
#include <string>

namespace gyre {

// In one line; of gyre's own errors, what they say.
std::string explain_exception(const std::exception& error);

}  // namespace gyre
