// What to say of an exception that libtorch may have thrown.
#pragma once

#include <exception>
#include <string>

namespace gyre {

// In one line, as explain_exception(). libtorch's own carry a stack trace; its allocator's are about something that a
// user can change.
std::string explain_torch(const std::exception& error);

}  // namespace gyre
