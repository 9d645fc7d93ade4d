// Texts as a stream of pieces that end between characters.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace gyre {

// Reads the descriptor to its end and gives the text in pieces of about a megabyte, each cut behind a line end where
// there is one and never inside a character. `name` stands in errors. Returns the number of bytes. Errors: InputError
// for text that is not UTF-8 (with the offset) or cannot be read.
int64_t read_text(int descriptor, const std::string& name, const std::function<void(std::string_view)>& piece);

}  // namespace gyre
