#include "gyre/data/text_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/stopped.h"

namespace gyre {
namespace {

Descriptor opened(const std::filesystem::path& path) {
  Descriptor file(path, O_RDONLY);
  if (!file.ok()) throw InputError(fmt::format("{}: cannot be opened: {}", path.string(), reason()));
  return file;
}

}  // namespace

TextInput::TextInput(const std::string& path, TextLayout layout, const Source& source, const std::stop_token& stop)
    : layout_(std::move(layout)), files_(source.files), stop_(stop) {
  const bool has_name = path != "-";
  layout_.name = has_name ? path : "standard input";
  file_ = has_name ? opened(path) : Descriptor(::dup(source.standard));
  if (look()) {
    // Opened again to be read: thousands of texts may be more than a process may have open.
    if (has_name) file_.close();
    return;
  }
  if (source.spool.empty()) return;
  spooled_ = source.spool;
  spool();
  file_ = opened(spooled_);
}

TextInput::~TextInput() {
  if (!spooled_.empty()) files_->remove(spooled_);
}

// Finds where the text begins and how long it is. Returns whether it is in a file, which can be read again.
bool TextInput::look() {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) return false;
  if (S_ISDIR(status.st_mode)) throw InputError(fmt::format("{}: is a directory; give text files", layout_.name));
  if (!S_ISREG(status.st_mode)) return false;
  begin_ = std::max<int64_t>(0, ::lseek(file_.get(), 0, SEEK_CUR));
  bytes_ = std::max<int64_t>(0, status.st_size - begin_);
  return true;
}

void TextInput::spool() const {
  OutputFile copy(spooled_, O_WRONLY | O_CREAT | O_TRUNC, *files_, 0600);
  std::string buffer(size_t{1} << 18, '\0');
  for (;;) {
    const ssize_t got = ::read(file_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(fmt::format("{}: cannot be read: {}", layout_.name, std::strerror(errno)));
    if (got == 0) return;
    throw_if_stopped(stop_);
    copy.write(buffer.data(), static_cast<size_t>(got));
  }
}

void TextInput::read(const std::function<void(TextChunk, int64_t taken)>& visit) const {
  const Descriptor again = file_.ok() ? Descriptor() : opened(layout_.name);
  const int file = again.ok() ? again.get() : file_.get();
  ::lseek(file, begin_, SEEK_SET);  // fails for a pipe that is read only once
  const auto bytes = open_bytes(file, layout_.name);
  TextReader reader(*bytes, layout_);
  while (auto chunk = reader.next()) {
    throw_if_stopped(stop_);
    visit(std::move(*chunk), bytes->taken());
  }
}

}  // namespace gyre
