// A text that gyre prepare is given: a file or standard input, read as often as need be.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "gyre/core/file_system.h"
#include "gyre/data/text_reader.h"

namespace gyre {

class TextInput {
 public:
  struct Standard {  // what "-" is
    int descriptor = 0;
    std::filesystem::path spool;  // where it is kept to be read again; empty: it is read once
    FileSystem* files = nullptr;
  };
  // `layout` but for the name. InputError: cannot be opened, a directory.
  TextInput(const std::string& path, TextLayout layout, const Standard& standard, const std::stop_token& stop);
  ~TextInput();
  TextInput(const TextInput&) = delete;
  TextInput& operator=(const TextInput&) = delete;

  const TextLayout& layout() const { return layout_; }
  // Where its documents may be cut from now on (TextLayout::cut).
  void cut_by(std::function<size_t(std::string_view)> cut) { layout_.cut = std::move(cut); }
  // Of the file; 0 where it is not known.
  int64_t bytes() const { return bytes_; }
  // The text once, from its beginning; `taken` are the bytes of the file up to there. InputError; RunError when
  // stopped.
  void read(const std::function<void(TextChunk, int64_t taken)>& visit) const;

 private:
  void open(const std::filesystem::path& path);
  void spool(int from) const;

  TextLayout layout_;
  FileSystem* files_;
  std::stop_token stop_;
  std::filesystem::path spooled_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
};

}  // namespace gyre
