"""Tests that the package is marked as typed, and that its type stubs match it."""

import ast
import unittest
from pathlib import Path

import torch
import gyre
from gyre import _core
from gyre.optim import BasisRotation

HERE = Path(gyre.__file__).resolve().parent


def declared(stub, name):
    return next(node for node in ast.walk(ast.parse((HERE / stub).read_text())) if getattr(node, "name", None) == name)


class Types(unittest.TestCase):
    def test_package_is_marked_as_typed(self):
        self.assertTrue((HERE / "py.typed").exists())

    def test_every_option_is_declared_with_its_type(self):
        init = next(node for node in declared("optim.pyi", "BasisRotation").body if getattr(node, "name", "") == "__init__")
        types = {argument.arg: ast.unparse(argument.annotation) for argument in init.args.kwonlyargs}
        self.assertEqual(list(types), [key for key, *_ in _core.options()])
        for key, default, _ in _core.options():
            if isinstance(default, str):
                self.assertIn(repr(default), types[key], key)
                words = ast.literal_eval(types[key].removeprefix("Literal"))
                for word in words:
                    BasisRotation([torch.nn.Parameter(torch.ones(2, 2))], **{key: word})
            else:
                self.assertEqual(types[key], type(default).__name__, key)

    def test_core_is_declared(self):
        tree = ast.parse((HERE / "_core.pyi").read_text())
        names = {node.name for node in tree.body if hasattr(node, "name")} | {"max_skipped"}
        self.assertEqual(names, {name for name in dir(_core) if not name.startswith("_")})


if __name__ == "__main__":
    unittest.main()
