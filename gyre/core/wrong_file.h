// An error for a file given where a directory is meant, which happens when a shell completes names.
#pragma once

#include <filesystem>
#include <string>

namespace gyre {

// Throws InputError if `path` is a file. `meant` describes the directory that is wanted ("the run's directory"), which
// contains a file `marker`; the error names the likely one.
void refuse_file(const std::filesystem::path& path, const std::string& meant, const std::string& marker);

}  // namespace gyre
