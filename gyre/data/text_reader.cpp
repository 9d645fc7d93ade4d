#include "gyre/data/text_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gyre/core/error.h"
#include "gyre/data/utf8.h"

namespace gyre {
namespace {

constexpr size_t kReadBytes = size_t{1} << 18;
constexpr size_t kPieceBytes = size_t{1} << 20;

// Where `text` is cut: behind its last line end, else behind its last whole character.
size_t cut(std::string_view text) {
  const size_t line = text.rfind('\n');
  return line == std::string_view::npos ? whole_characters(text) : line + 1;
}

}  // namespace

int64_t read_text(int descriptor, const std::string& name, const std::function<void(std::string_view)>& piece) {
  Utf8Checker checker;
  std::string pending;
  std::string buffer(kReadBytes, '\0');
  for (;;) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
    if (got == 0) break;
    const std::string_view fresh(buffer.data(), static_cast<size_t>(got));
    if (const auto bad = checker.check(fresh)) {
      throw InputError(
          fmt::format("{}: not UTF-8 at byte {}; convert it first, for example with iconv -t UTF-8", name, *bad));
    }
    pending.append(fresh);
    if (pending.size() < kPieceBytes) continue;
    const size_t end = cut(pending);
    piece(std::string_view(pending).substr(0, end));
    pending.erase(0, end);
  }
  if (!checker.complete()) {
    throw InputError(fmt::format("{}: ends inside a character, at byte {}; is it complete?", name, checker.offset()));
  }
  if (!pending.empty()) piece(pending);
  return checker.offset();
}

}  // namespace gyre
