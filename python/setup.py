"""Builds the package `gyre` against the PyTorch that is installed."""

import os
from pathlib import Path

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

here = Path(__file__).resolve().parent
root = here.parent
gyre = root / "gyre"
# Two rooms, and what these call of the rooms below them.
rooms = [gyre / "optim/parameter", gyre / "optim/settings"]
sources = [gyre / "core/random.cpp", gyre / "core/text.cpp", gyre / "tensors/matrix_block.cpp"]
sources += [gyre / "kernels/rows.cpp", gyre / "kernels/onednn/products_missing.cpp"]  # products are PyTorch's
sources += [file for room in rooms for file in sorted(room.glob("*.cpp"))]

setup(
    name="gyre",
    version="0.1.0",
    description="Optimizers that bear stale gradients",
    packages=["gyre"],
    package_dir={"": "."},
    python_requires=">=3.9",
    ext_modules=[
        CppExtension(
            "gyre._core",
            ["src/binding.cpp"] + [os.path.relpath(source, here) for source in sources],
            include_dirs=[str(root)],
            define_macros=[("FMT_HEADER_ONLY", None)],
            extra_compile_args=["-std=c++20", "-O3", "-fno-math-errno", "-fno-trapping-math"],
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=True)},
)
