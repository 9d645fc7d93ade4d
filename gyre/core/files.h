// Files: whole reads, memory maps, and writes that are either complete or absent after a crash. What changes files goes
// through a FileSystem (file_system.h). This header has all of them; each says what is in it.
#pragma once

#include "gyre/core/checksum.h"
#include "gyre/core/directories.h"
#include "gyre/core/directory_lock.h"
#include "gyre/core/file_system.h"
#include "gyre/core/input_file.h"
#include "gyre/core/mapped_file.h"
#include "gyre/core/output_file.h"
#include "gyre/core/replace_file.h"
