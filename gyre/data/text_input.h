// A text for gyre prepare, from a file, a pipe or standard input, which can be read several times.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "gyre/core/descriptor.h"
#include "gyre/core/file_system.h"
#include "gyre/data/text_reader.h"

namespace gyre {

class TextInput {
 public:
  struct Source {
    int standard = 0;             // the descriptor that "-" stands for; it is read from where it is
    std::filesystem::path spool;  // a copy of what is no file is kept here to be read again; empty: it can be read once
    FileSystem* files = nullptr;
  };
  // `layout` needs no name: it is set from `path`. Throws InputError if the file cannot be opened or is a directory.
  TextInput(const std::string& path, TextLayout layout, const Source& source, const std::stop_token& stop);
  ~TextInput();
  TextInput(const TextInput&) = delete;
  TextInput& operator=(const TextInput&) = delete;

  const TextLayout& layout() const { return layout_; }
  // Sets where documents may be cut from now on (TextLayout::cut).
  void cut_by(std::function<size_t(std::string_view)> cut) { layout_.cut = std::move(cut); }
  // The size of the file; 0 if unknown.
  int64_t bytes() const { return bytes_; }
  // Reads the text from its beginning and visits its chunks; `taken`: bytes of the file read so far. Throws InputError
  // for text that cannot be read, Stopped when stopped.
  void read(const std::function<void(TextChunk, int64_t taken)>& visit) const;

 private:
  bool look();
  void spool() const;

  TextLayout layout_;
  FileSystem* files_;
  std::stop_token stop_;
  std::filesystem::path spooled_;
  Descriptor file_;    // none if the text is in a file that has a name
  int64_t begin_ = 0;  // where the text begins in file_
  int64_t bytes_ = 0;
};

}  // namespace gyre
