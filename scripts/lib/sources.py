# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Finds the files of a checkout that are to be checked, and removes comments from sources."""

import dataclasses
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE_FOLDERS = ("dataplane", "control", "trainer-shim", "tests")


@dataclasses.dataclass(frozen=True)
class Finding:
    path: str
    line: int  # 0: the file as a whole
    text: str

    def __str__(self):
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.text}"


def project_files(root):
    """The sorted paths, relative to the root, of all files that are or could be committed."""
    if (root / ".git").exists():
        # In a container the checkout may belong to another user.
        command = ["git", "-c", f"safe.directory={root}", "-C", str(root), "ls-files", "-z"]
        command += ["--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, check=True)
        names = listed.stdout.decode().split("\0")
        return sorted(name for name in set(names) if name and (root / name).is_file())
    names = (str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    return sorted(name for name in names if not re.match(r"(build[^/]*|\.cache)/", name))


def is_cpp(name):
    return name.endswith((".h", ".cc", ".c")) and name.split("/")[0] in CODE_FOLDERS


def is_header(name):
    return is_cpp(name) and name.endswith(".h")


def shebang(root, name):
    """The interpreter of a script: bash, sh or python3; None if the file is no script."""
    with open(root / name, "rb") as file:
        first = file.readline(200)
    match = re.match(rb"#!\S*/(?:env +)?(bash|sh|python3)\b", first)
    return match[1].decode() if match else None


def read(root, name):
    return (root / name).read_text(encoding="utf-8", errors="replace")


_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)"|"""
    r""""(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""",
    re.DOTALL,
)


def without_comments(text, keep_strings=False):
    """The same lines with blanks instead of comments, and of strings unless `keep_strings`."""

    def blank(match):
        token = match[0]
        if token[0] == "/":
            return re.sub(r"[^\n]", " ", token)
        if keep_strings:
            return token
        return '""' + re.sub(r"[^\n]", " ", token[2:]) if token[0] in "\"R" else "0" * len(token)

    return _TOKEN.sub(blank, text)
