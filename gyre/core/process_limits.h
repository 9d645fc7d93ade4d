// The system's limits on this process, and checks of them. The libraries do not check them: OpenBLAS retries for ever
// when it gets no memory for its buffers, and libtorch's pool waits for ever for threads that could not be started.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace gyre {

// Lets this process have as many files open at once as the system allows: the limit is often a lower one, 1,024, which
// any process may raise, and each file of data stays open.
void raise_file_limit();

// Checks that this process may have the descriptors and the stack that libraries need. Throws RunError that names the
// limit.
void check_files_and_stack();

// The text of `error`, with which the system has refused a thread or a process. If the reason may be a limit (EAGAIN),
// it also says which limits there are, and what to do. `root` contains the /proc and /sys to read.
std::string why_not_started(int error, const std::filesystem::path& root = "/");

// Checks, by trying, that `threads` more threads can run at once, each with `bytes` of address space, and releases all
// of it. Throws RunError that begins with `what` and names the limit.
void check_room_for_threads(int threads, size_t bytes, const std::string& what);

// Checks, by trying, that `bytes` more of address space are available. Throws RunError likewise.
void check_address_space(size_t bytes, const std::string& what);

}  // namespace gyre
