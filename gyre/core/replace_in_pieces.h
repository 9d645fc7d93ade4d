// write_file_atomic (replace_file.h) for content that is too large to be in memory at once.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "gyre/core/file_system.h"

namespace gyre {

// `write` passes the pieces of the content to its argument, in their order. It may read the file that is replaced.
using WritePieces = std::function<void(const std::function<void(std::string_view)>&)>;
void write_in_pieces_atomic(const std::filesystem::path& path, const WritePieces& write,
                            FileSystem& files = system_files());

}  // namespace gyre
