"""Builds the package `gyre` against the PyTorch that is installed. A source distribution has the C++ that it needs in cpp/."""

import os
import re
import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.sdist import sdist

here = Path(__file__).resolve().parent
root = here / "cpp" if (here / "cpp").is_dir() else here.parent
gyre = root / "gyre"
# All sources of two rooms, and those files of lower rooms that they call.
rooms = [gyre / "optim/parameter", gyre / "optim/settings"]
sources = [gyre / "core/random.cpp", gyre / "core/text.cpp", gyre / "tensors/device.cpp"]
sources += [gyre / "tensors/matrix_block.cpp", gyre / "optim/rotating_optimizer.cpp"]
# Without oneDNN: matrix products by PyTorch (src/missing_products.cpp).
sources += [gyre / "kernels/rows.cpp", gyre / "kernels/fused_product.cpp"]
sources += [gyre / "kernels/matrix_product.cpp", gyre / "kernels/adam.cpp"]
sources += [gyre / "kernels/parallel_for.cpp", gyre / "kernels/cuda/missing.cpp"]
own_sources = ["src/binding.cpp", "src/missing_products.cpp"]
sources += [file for room in rooms for file in sorted(room.glob("*.cpp"))]


def with_headers():
    """The sources, and all headers of gyre that they include, directly or indirectly."""
    found, look_at = set(), [*(here / file for file in own_sources), *sources]
    while look_at:
        file = look_at.pop()
        if file in found:
            continue
        found.add(file)
        look_at += [root / name for name in re.findall(r'^#include "(gyre/[^"]+)"', file.read_text(), re.M)]
    return sorted(file for file in found if gyre in file.parents)


class SourceDistribution(sdist):
    def make_release_tree(self, base_dir, files):
        # An earlier build leaves a list that contains gyre's files outside this folder. They are left out here and copied below.
        super().make_release_tree(base_dir, [file for file in files if not file.startswith(os.pardir)])
        for file in with_headers():
            copy = Path(base_dir) / "cpp" / file.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


commands = {"sdist": SourceDistribution}
extensions = []
if not {"sdist", "egg_info", "dist_info"} & set(sys.argv):  # these commands need no compiler
    try:
        from torch.utils.cpp_extension import BuildExtension, CppExtension
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        sys.exit("gyre is built against an installed PyTorch, and there is none here; install it, then: "
                 "pip install --no-build-isolation ./python")
    commands["build_ext"] = BuildExtension.with_options(no_python_abi_suffix=True)
    extensions = [
        CppExtension(
            "gyre._core",
            own_sources + [os.path.relpath(source, here) for source in sources],
            include_dirs=[str(root)],
            define_macros=[("FMT_HEADER_ONLY", None)],
            extra_compile_args=["-std=c++20", "-O3", "-fno-math-errno", "-fno-trapping-math"],
        )
    ]

setup(ext_modules=extensions, cmdclass=commands)
