// The bytes of an input, as they are or unpacked: gzip and zstd are known by how they begin, whatever a file is called.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace gyre {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `out`; less than all of it only where the input ends. InputError: cannot be read, damaged, cut short.
  virtual size_t read(std::span<char> out) = 0;
  // Bytes of the input itself that were read so far.
  virtual int64_t taken() const = 0;
};

// Reads the descriptor, which must stay open, from where it stands. `name` stands in errors.
std::unique_ptr<ByteSource> open_bytes(int descriptor, const std::string& name);

}  // namespace gyre
