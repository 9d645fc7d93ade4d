// Writes result files that appear whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "gyre/core/file_system.h"

namespace gyre {

// Replaces `path` atomically and durably: writes a temporary file beside it, syncs, renames, syncs the directory. Links
// are followed, and their target is replaced; the new file has its permissions. A device, a pipe, or the file that
// standard output or standard error goes to is written in place. Throws RunError on failure.
void write_file_atomic(const std::filesystem::path& path, std::string_view content, FileSystem& files = system_files());
// The same without syncing, for files that a crash of the machine may lose. A reader of `path` still sees a whole file,
// old or new.
void replace_file(const std::filesystem::path& path, std::string_view content, FileSystem& files = system_files());

// For a check before long work: the reason why write_file_atomic could not or should not write `path`; empty if there
// is none. beginning: what all such files begin with; a file of another kind that is there was not meant. Changes
// nothing; a full disk is not noticed.
std::string why_not_writable(const std::filesystem::path& path, std::string_view beginning = {});
// Throws InputError with path and reason if why_not_writable gives one.
void check_writable(const std::filesystem::path& path);

}  // namespace gyre
