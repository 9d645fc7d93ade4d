// Explains exceptions to users, including those that gyre did not throw itself.
#pragma once

#include <exception>
#include <string>

namespace gyre {

// Whether the system has refused to start a thread: what std::thread throws then.
bool is_refused_thread(const std::exception& error);

// One line that explains `error`; for gyre's own errors, their message.
std::string explain_exception(const std::exception& error);

// What a process ends with because of `error`: the code of gyre's own errors, kFailed for others.
int exit_code_of(const std::exception& error);

}  // namespace gyre
