// Where numbers of processes mean the same as here.
#pragma once

#include <string>

namespace gyre {

// Names this machine since it was started and, after a blank, this process's namespace of process numbers. Hosts of
// different machines, or of containers, may have the same name. Empty if that is not known.
std::string process_space();

}  // namespace gyre
