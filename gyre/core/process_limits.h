// What the system lets this process have. Libraries below us do not ask: OpenBLAS tries again for ever when it gets no
// memory for its buffers, and libtorch's pool waits for ever for threads that could not be started.
#pragma once

#include <cstddef>
#include <string>

namespace gyre {

// Whether this process may have the descriptors and the stack that libraries take for granted. Errors: RunError that
// names the limit.
void check_files_and_stack();

// Tries whether `threads` more threads can run at once, each with `bytes` of address space, and gives all of it back.
// Errors: RunError that begins with `what` and names the limit.
void check_room_for_threads(int threads, size_t bytes, const std::string& what);

// Tries whether there are `bytes` more of address space. Errors: RunError likewise.
void check_address_space(size_t bytes, const std::string& what);

}  // namespace gyre
