# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The Debian packages have all files that a build installs, each file once, and they build with
what scripts/setup installs. scripts/deb makes the packages themselves."""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = sys.argv.pop(1)
DEBIAN = ROOT / "debian"
# Only a package build needs these.
FOR_PACKAGES = {"debhelper-compat", "dh-python"}


def installed():
    """Returns the paths below /usr that a build with all features installs."""
    said = subprocess.run(["meson", "introspect", "--installed", BUILD], check=True,
                          capture_output=True, text=True).stdout  # fmt: skip
    prefix = next(option["value"] for option in json.loads(subprocess.run(
        ["meson", "introspect", "--buildoptions", BUILD], check=True, capture_output=True,
        text=True).stdout) if option["name"] == "prefix")  # fmt: skip
    return [str(pathlib.PurePath(path).relative_to(prefix)) for path in json.loads(said).values()]


def patterns():
    return {(path.name, line) for path in DEBIAN.glob("*.install")
            for line in path.read_text(encoding="utf8").split()}  # fmt: skip


class Packages(unittest.TestCase):
    def test_each_file_is_in_one_package(self):
        for path in installed():
            found = [name for name, pattern in patterns()
                     if fnmatch.fnmatch(f"usr/{path}", pattern)]
            self.assertEqual(len(found), 1, f"{path} is in {found or 'no package'}")

    def test_what_builds_them_is_set_up(self):
        control = (DEBIAN / "control").read_text(encoding="utf8")
        needed = re.search(r"Build-Depends:\n((?: .*\n)+)", control).group(1)
        names = {re.match(r"[a-z0-9.+-]+", line.strip()).group() for line in needed.splitlines()}
        listed = subprocess.run([ROOT / "scripts/setup", "--print"], check=True, text=True,
                                capture_output=True).stdout.split()
        self.assertEqual(names - FOR_PACKAGES - set(listed), set())

    def test_one_version(self):
        changelog = (DEBIAN / "changelog").read_text(encoding="utf8")
        meson = (ROOT / "meson.build").read_text(encoding="utf8")
        self.assertEqual(re.match(r"gradplane \((.*?)\)", changelog).group(1),
                         re.search(r"version: '(.*?)'", meson).group(1))


if __name__ == "__main__":
    unittest.main()
