// Errors for a path of another kind than is meant: a file for a directory, which happens when a shell completes names,
// or a published model for a run.
#pragma once

#include <filesystem>
#include <string>

namespace gyre {

// Throws InputError if `path` is a file. `meant` describes the directory that is wanted ("the run's directory"), which
// contains a file `marker`; the error names the likely one.
void refuse_file(const std::filesystem::path& path, const std::string& meant, const std::string& marker);

// The end of an error about a directory that is no run: how a run is made of the model of Hugging Face's transformers
// that is there. Empty if there is none.
std::string hint_of_import(const std::filesystem::path& directory);

}  // namespace gyre
