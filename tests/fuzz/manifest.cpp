// Manifests of checkpoints: as given, and with a correct checksum, without which the parser stops early.
#include "gyre/checkpoint/format/manifest.h"

#include "fuzz/targets.h"
#include "gyre/core/files.h"

namespace gyre::fuzz {
namespace {

void check(std::string_view text) {
  const auto manifest = accepted([&] { return parse_manifest(text); });
  if (manifest) require(parse_manifest(to_text(*manifest)) == *manifest, "a manifest comes back the same");
}

}  // namespace

void manifest(std::string_view input) {
  check(input);
  Checksum checksum;
  checksum.update(input.data(), input.size());
  check(std::string(input.substr(0, input.size() - std::min<size_t>(input.size(), 1))) + ",\"checksum\":\"" +
        checksum.hex() + "\"}\n");
}

}  // namespace gyre::fuzz
