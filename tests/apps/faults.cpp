// Faults that scripts inject into a process with LD_PRELOAD: memory that cannot be allocated, a disk that hangs.
//   GYRE_FAULT_ALLOCATION=N   the N-th allocation of memory for a tensor fails (from 1)
//   GYRE_COUNT_ALLOCATIONS=F  at exit the number of these allocations is written to the file F
//   GYRE_FAULT_READ=F         once the FIFO F exists, pread waits until a process opens F for writing
//   GYRE_FAULT_SYNC=F         the same for fsync
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> allocations = 0;

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

long number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtol(text, nullptr, 10) : 0;
}

void wait_if_asked(const char* fifo) {
  if (fifo == nullptr || ::access(fifo, F_OK) != 0) return;
  const int descriptor = ::open(fifo, O_RDONLY | O_CLOEXEC);
  if (descriptor >= 0) ::close(descriptor);
}

struct Count {
  ~Count() {
    const char* const path = std::getenv("GYRE_COUNT_ALLOCATIONS");
    std::FILE* const file = path != nullptr ? std::fopen(path, "w") : nullptr;
    if (file == nullptr) return;
    std::fprintf(file, "%ld\n", allocations.load());
    std::fclose(file);
  }
} count_at_the_end;

}  // namespace

// libc10 allocates tensors with this function. Other libraries call it too, oneDNN even before main().
extern "C" int posix_memalign(void** block, size_t alignment, size_t bytes) noexcept {
  static const auto original = next<int(void**, size_t, size_t)>("posix_memalign");
  static const long refused = number_in("GYRE_FAULT_ALLOCATION");
  Dl_info caller{};
  const bool for_tensor = ::dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname != nullptr &&
                          std::strstr(caller.dli_fname, "libc10") != nullptr;
  if (for_tensor && ++allocations == refused) return ENOMEM;
  return original(block, alignment, bytes);
}

extern "C" ssize_t pread(int descriptor, void* data, size_t bytes, off_t offset) {
  static const auto original = next<ssize_t(int, void*, size_t, off_t)>("pread");
  wait_if_asked(std::getenv("GYRE_FAULT_READ"));
  return original(descriptor, data, bytes, offset);
}

extern "C" ssize_t pread64(int descriptor, void* data, size_t bytes, off64_t offset) {
  static const auto original = next<ssize_t(int, void*, size_t, off64_t)>("pread64");
  wait_if_asked(std::getenv("GYRE_FAULT_READ"));
  return original(descriptor, data, bytes, offset);
}

extern "C" int fsync(int descriptor) {
  static const auto original = next<int(int)>("fsync");
  wait_if_asked(std::getenv("GYRE_FAULT_SYNC"));
  return original(descriptor);
}
