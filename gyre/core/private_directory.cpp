#include "gyre/core/private_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "gyre/core/descriptor.h"
#include "gyre/core/directories.h"
#include "gyre/core/error.h"

namespace gyre {
namespace {

// Marks a directory that is removed with its process. The process locks the directory before it makes the mark, so a
// directory with the mark and without a lock has lost its process.
constexpr const char* kOwnedMark = ".owned";

}  // namespace

PrivateDirectory::PrivateDirectory(const std::filesystem::path& parent, const std::string& prefix) {
  std::string name = parent / prefix;
  name.append(6, 'X');  // mkdtemp(3) replaces these
  if (::mkdtemp(name.data()) == nullptr) {
    const bool no_room = lacks_room();
    throw_run_error(fmt::format("a directory cannot be made in {}: {}; set TMPDIR to another place", parent.string(),
                                reason_at(parent)),
                    no_room);
  }
  path_ = name;
  lock_ = Descriptor(path_, O_RDONLY | O_DIRECTORY);
  if (!lock_.ok() || try_lock(lock_.get(), system_files()) != Lock::Taken) return;
  const Descriptor mark(system_files().open(path_ / kOwnedMark, O_WRONLY | O_CREAT, 0600));
}

PrivateDirectory::~PrivateDirectory() {
  if (kept_) {
    system_files().remove(path_ / kOwnedMark);
  } else {
    remove_tree(path_);
  }
}

void PrivateDirectory::remove_abandoned(const std::filesystem::path& parent, const std::string& prefix) {
  std::error_code none;
  for (const std::filesystem::path& path : entries_of(parent, none)) {
    if (!path.filename().string().starts_with(prefix)) continue;
    const Descriptor directory(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    struct stat found {};
    if (!directory.ok() || ::fstat(directory.get(), &found) != 0 || found.st_uid != ::geteuid()) continue;
    if (try_lock(directory.get(), system_files()) != Lock::Taken || !is_same_file(directory.get(), path)) continue;
    std::error_code unreadable;
    if (std::filesystem::exists(path / kOwnedMark, unreadable)) remove_tree(path);
  }
}

}  // namespace gyre
