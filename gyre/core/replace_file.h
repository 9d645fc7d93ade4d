// Results, which are there as a whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

#include "gyre/core/file_system.h"

namespace gyre {

// Replaces `path` atomically: writes `path.tmp`, syncs, renames, syncs the parent directory.
void write_file_atomic(const std::filesystem::path& path, std::string_view content, FileSystem& files = system_files());
// The same unsynced, for what a crash of the machine may lose: whoever reads `path` sees all of it, old or new.
// RunError.
void replace_file(const std::filesystem::path& path, std::string_view content, FileSystem& files = system_files());

// Asked before the work whose result goes there: InputError with path and reason if write_file_atomic could not begin.
void check_writable(const std::filesystem::path& path, FileSystem& files = system_files());

}  // namespace gyre
