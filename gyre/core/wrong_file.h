// A file where a directory is meant, as shells complete it.
#pragma once

#include <filesystem>
#include <string>

namespace gyre {

// InputError where `path` is a file. `meant` is what the directory is, "the run's directory", and has a file `marker`:
// the one that is likely meant is named.
void refuse_file(const std::filesystem::path& path, const std::string& meant, const std::string& marker);

}  // namespace gyre
