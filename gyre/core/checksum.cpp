#include "gyre/core/checksum.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <xxhash.h>

#include "gyre/core/descriptor.h"
#include "gyre/core/error.h"

namespace gyre {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

}  // namespace

Checksum::Checksum() : state_(XXH3_createState()) {
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_));
}
Checksum::~Checksum() {
  XXH3_freeState(static_cast<XXH3_state_t*>(state_));
}

void Checksum::update(const void* data, size_t bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), data, bytes);
}

std::string Checksum::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_));
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string text_checksum(std::string_view text) {
  Checksum checksum;
  checksum.update(text.data(), text.size());
  return checksum.hex();
}

std::string file_checksum(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY);
  if (!file.ok()) throw InputError(fmt::format("{}: cannot be opened: {}", path.string(), reason()));
  Checksum checksum;
  std::string buffer(kPieceBytes, '\0');
  for (;;) {
    const ssize_t got = read_fully(file.get(), buffer.data(), buffer.size());
    if (got < 0) throw InputError(fmt::format("{}: cannot be read: {}", path.string(), reason()));
    if (got == 0) return checksum.hex();
    checksum.update(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace gyre
