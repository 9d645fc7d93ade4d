// Messages for exceptions that libtorch may have thrown.
#pragma once

#include <exception>
#include <string>

namespace gyre {

// One line, as explain_exception() gives. Leaves out the stack trace of libtorch's exceptions; for its allocator's,
// says what the user can change: sizes of the model and of its batches, unless `remedy` is another.
std::string explain_torch(const std::exception& error);
std::string explain_torch(const std::exception& error, const std::string& remedy);

}  // namespace gyre
