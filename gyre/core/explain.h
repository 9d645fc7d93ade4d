// Explains exceptions to users, including those that gyre did not throw itself.
#pragma once

#include <exception>
#include <string>

namespace gyre {

// Whether the system has refused to start a thread: what std::thread throws then.
bool is_refused_thread(const std::exception& error);

inline constexpr const char* kFreeMemory = "free some, or raise what this process may have (ulimit -v)";

// One line that explains `error`; for gyre's own errors, their message. `remedy`: what the user can do if memory ran
// out.
std::string explain_exception(const std::exception& error, const std::string& remedy);
std::string explain_exception(const std::exception& error);  // for what has no sizes to choose

// What a process ends with because of `error`: the code of gyre's own errors, kFailed for others.
int exit_code_of(const std::exception& error);

}  // namespace gyre
