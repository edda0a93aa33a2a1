# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The setup of the sdist that scripts/sdist makes. `pip install --no-build-isolation` builds the
module behind `import gradplane.torch` for the installed PyTorch."""

import os
import pathlib
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "trainer-shim/dist"))
import build_adapter  # noqa: E402


class BuildModule(build_ext):
    """Builds the module. Its name has the version of PyTorch, so it is known only here."""

    def build_extension(self, extension):
        name = f"_torch_{build_adapter.Torch().suffix}" + sysconfig.get_config_var("EXT_SUFFIX")
        folder = pathlib.Path(self.get_ext_fullpath(extension.name)).resolve().parent
        folder.mkdir(parents=True, exist_ok=True)
        # Folders of missing headers, as with --include of `gradplane build-adapter`.
        more = os.environ.get("GRADPLANE_INCLUDE", "").split(":")
        includes = [str(ROOT / "third_party"), *filter(None, more)]
        build_adapter.build(module_path=folder / name, includes=includes)


setup(
    packages=["gradplane"],
    package_dir={"gradplane": "trainer-shim/backend/gradplane"},
    ext_modules=[Extension("gradplane._torch", sources=[])],
    cmdclass={"build_ext": BuildModule},
)
