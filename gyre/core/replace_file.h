// Results, which are there as a whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "gyre/core/file_system.h"

namespace gyre {

// Replaces `path` atomically and durably: writes a file with a name of its own beside it, syncs, renames, syncs the
// directory. Links are followed, and what they lead to is replaced. A device or a pipe, and what standard output or
// standard error goes to, is written to as it is. RunError.
void write_file_atomic(const std::filesystem::path& path, std::string_view content, FileSystem& files = system_files());
// The same unsynced, for what a crash of the machine may lose: whoever reads `path` sees all of it, old or new.
void replace_file(const std::filesystem::path& path, std::string_view content, FileSystem& files = system_files());

// Asked before the work whose result goes there: why write_file_atomic could not write it; empty if it could. Changes
// nothing; whether a disk is full shows later.
std::string why_not_writable(const std::filesystem::path& path);
// InputError with path and reason.
void check_writable(const std::filesystem::path& path);

}  // namespace gyre
