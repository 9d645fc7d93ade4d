// Files: whole reads, memory maps, and writes that are either complete or absent after a crash. All changes go through
// a FileSystem (file_system.h). This header includes all the others, which say what they contain.
#pragma once

#include "gyre/core/checksum.h"
#include "gyre/core/directories.h"
#include "gyre/core/directory_lock.h"
#include "gyre/core/file_system.h"
#include "gyre/core/input_file.h"
#include "gyre/core/mapped_file.h"
#include "gyre/core/output_file.h"
#include "gyre/core/replace_file.h"
#include "gyre/core/replace_in_pieces.h"
