// Reads the bytes of an input and unpacks gzip and zstd, which are recognised by their first bytes, not by the file's
// name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace gyre {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `out`, and less than all of it only at the end of the input. Returns the number of bytes. Throws InputError
  // if the input cannot be read, is damaged or truncated.
  virtual size_t read(std::span<char> out) = 0;
  // Bytes read from the input so far, as packed.
  virtual int64_t taken() const = 0;
};

// Reads `descriptor` from its current position; it must stay open. `name` is what errors call the input.
std::unique_ptr<ByteSource> open_bytes(int descriptor, const std::string& name);

}  // namespace gyre
