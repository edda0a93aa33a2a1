# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The rules of scripts/lint. A rule takes the root and the names of the files; it returns Findings.

PLANTED has one violation for each rule: a file, its text, and a word of the finding.
"""

import re
import subprocess

import function_length
import header_check
import layers
import mutations
from sources import Finding, is_cpp, read, shebang, without_comments

MAX_LINE = 100
MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 400
# Other versions than Debian 12's format some code differently.
CLANG_FORMAT = 14
LICENCE = "SPDX-License-Identifier: BSD-3-Clause"
COPYRIGHT = "Copyright (c) 2026 The gradplane authors"


def _language(root, name):
    """The language of a file, as far as the rules need it; None for data and prose."""
    if is_cpp(name):
        return "cpp"
    if name.endswith((".S", ".map")) and name.startswith("trainer-shim/"):
        return "other"
    if name.endswith(("meson.build", "meson_options.txt", ".yaml", ".yml", ".toml")):
        return "hash"
    if name.endswith(".py") or shebang(root, name) == "python3":
        return "python"
    if name.endswith(".sh") or shebang(root, name) in ("bash", "sh"):
        return "shell"
    return None


# Linker scripts are left out, because symbol names may be long.
_LIMITED = ("cpp", "python", "shell")


def _written(root, names):
    for name in names:
        language = _language(root, name)
        if language:
            yield name, language, read(root, name)


def left_out(rule):
    """Why this machine cannot judge the sources by a rule; empty if it can."""
    if rule != "format":
        return ""
    try:
        said = subprocess.run(["clang-format", "--version"], capture_output=True, text=True,
                              check=False, timeout=20).stdout  # fmt: skip
    except FileNotFoundError:  # the rule itself reports that
        return ""
    found = re.search(r"version (\d+)", said)
    version = int(found[1]) if found else 0
    if version == CLANG_FORMAT:
        return ""
    return f"clang-format {version} formats some code differently than {CLANG_FORMAT} (Debian 12)"


def formatted(root, names):
    """clang-format has nothing to change."""
    code = [name for name in names if is_cpp(name)]
    if not code:
        return []
    done = subprocess.run(
        ["clang-format", "--dry-run", "--ferror-limit=1", *code],
        cwd=root, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    places = re.findall(r"^(\S+?):(\d+):\d+: (?:warning|error): code should", done.stderr, re.M)
    findings = {path: Finding(path, int(line), "run clang-format -i on it") for path, line in
                reversed(places)}  # fmt: skip
    return [findings[path] for path in sorted(findings)]


def licensed(root, names):
    """The first lines of every source file have the licence."""
    findings = []
    for name, _, text in _written(root, names):
        first = text.split("\n")[:4]
        if text.startswith("#!"):
            first = first[1:]
        if len(first) < 2 or LICENCE not in first[0] or COPYRIGHT not in first[1]:
            findings.append(Finding(name, 1, f"its first two lines are not {LICENCE}; {COPYRIGHT}"))
    return findings


def tidy(root, names):
    """Line length, tabs, space at the end of a line, one newline at the end of the file."""
    findings = []
    for name, language, text in _written(root, names):
        for number, line in enumerate(text.split("\n"), start=1):
            if len(line) > MAX_LINE and language in _LIMITED and "http" not in line:
                findings.append(Finding(name, number, f"{len(line)} columns; at most {MAX_LINE}"))
            if line != line.rstrip() or ("\t" in line and language != "other"):
                findings.append(Finding(name, number, "a tab, or space at the end"))
        if not text.endswith("\n") or text.endswith("\n\n"):
            findings.append(Finding(name, 0, "does not end with one newline"))
        # g++ compiles a precompiled header as a main file, in which it warns of this line.
        is_included = name.endswith(".h") and "/pch/" not in name
        if is_included and "#pragma once" not in text.split("\n")[:5]:
            findings.append(Finding(name, 0, "no #pragma once below the licence"))
    return findings


def short(root, names):
    """Functions and files are short."""
    measure = {
        "cpp": function_length.cpp_functions,
        "python": function_length.python_functions,
        "shell": function_length.shell_functions,
    }
    findings = []
    for name, language, text in _written(root, names):
        lines = text.count("\n")
        if lines > MAX_FILE_LINES:
            findings.append(Finding(name, 0, f"{lines} lines; at most {MAX_FILE_LINES}"))
        for first, function, length in measure.get(language, lambda _: [])(text):
            if length > MAX_FUNCTION_LINES:
                text_of = f"{function}: {length} lines; at most {MAX_FUNCTION_LINES}"
                findings.append(Finding(name, first, text_of))
    return findings


_BANNED = (
    (re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b"), "do it, or make an issue of it"),
    (re.compile(r"^\s*#\s*if\s+(0|false)\b"), "dead code: delete it"),
    (re.compile(r"(?<![\w.])/(work|root|home)/\w"), "a path of one machine"),
    (re.compile(r"\bthis_thread::sle" r"ep_"), "no sleep as synchronisation"),
)


def free_of_banned_words(root, names):
    findings = []
    for name in names:
        if not (_language(root, name) or name.endswith((".md", ".json", ".txt"))):
            continue
        for number, line in enumerate(read(root, name).split("\n"), start=1):
            for pattern, why in _BANNED:
                match = pattern.search(line)
                if match:
                    findings.append(Finding(name, number, f"'{match[0].strip()}': {why}"))
    return findings


def scripts_parse(root, names):
    """bash -n accepts every shell script, Python compiles every Python script, and files with #!
    are executable."""
    findings = []
    for name, language, text in _written(root, names):
        if language == "shell":
            done = subprocess.run(["bash", "-n", name], cwd=root, capture_output=True, text=True,
                                  check=False, timeout=20)  # fmt: skip
            if done.returncode != 0:
                findings.append(Finding(name, 0, done.stderr.strip().split("\n")[0]))
        elif language == "python":
            try:
                compile(text, name, "exec")
            except SyntaxError as error:
                findings.append(Finding(name, error.lineno or 0, f"Python: {error.msg}"))
        if text.startswith("#!") and not (root / name).stat().st_mode & 0o100:
            findings.append(Finding(name, 0, "has a #! line but is not executable"))
    return findings


_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$")
_CITED_PAGE = re.compile(r"(?<![\w/.-])docs/[\w./-]+\.md(?:#[\w-]+)?")


def _anchors(text):
    """The fragments that GitHub gives to the headings of a page."""
    found = set()
    for line in text.split("\n"):
        match = _HEADING.match(line)
        if match:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).lower()
            found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def _leads_somewhere(root, name, target):
    """Whether `target`, relative to the file `name`, is a file that has the fragment's heading."""
    path, _, fragment = target.partition("#")
    page = (root / name).parent / path if path else root / name
    if not page.exists():
        return False
    return not fragment or page.suffix != ".md" or fragment in _anchors(page.read_text())


def links_lead_somewhere(root, names):
    """The files and headings exist that relative links in prose name, and so do the pages of docs/
    that other files cite."""
    findings = []
    for name in names:
        prose = name.endswith(".md")
        if not (prose or _language(root, name)):
            continue
        for number, line in enumerate(read(root, name).split("\n"), start=1):
            targets = [(target, name) for target in _LINK.findall(line)] if prose else [
                (target, "README.md") for target in _CITED_PAGE.findall(line)]  # fmt: skip
            for target, seen_from in targets:
                outside = re.match(r"[a-z]+:", target)
                if not outside and not _leads_somewhere(root, seen_from, target):
                    findings.append(Finding(name, number, f"the link to {target} leads nowhere"))
    return findings


def shim_is_harmless(root, names):
    """The shim has no assertion that ends a trainer, and prints nothing on its stdout."""
    findings = []
    pattern = re.compile(
        r"\b(GP_ASSERT\(|std::cout\b|(?<![nf])printf\(|puts\(|abort\(\)|exit\()"
    )
    for name in names:
        if not (is_cpp(name) and name.startswith("trainer-shim/")):
            continue
        code = without_comments(read(root, name))
        for number, line in enumerate(code.split("\n"), start=1):
            match = pattern.search(line)
            if match and "_exit(" not in line and "atexit(" not in line:
                findings.append(Finding(name, number, f"'{match[0]}' may end or disturb a trainer"))
    return findings


RULES = {
    "format": formatted,
    "licence": licensed,
    "tidy": tidy,
    "size": short,
    "banned": free_of_banned_words,
    "scripts": scripts_parse,
    "links": links_lead_somewhere,
    "layers": layers.check,
    "shim": shim_is_harmless,
    "headers": header_check.check,
    "mutations": mutations.check,
}

_HEAD = f"// {LICENCE}\n// {COPYRIGHT}\n"
_HASH = f"# {LICENCE}\n# {COPYRIGHT}\n"
_TABLE = "tests/mutations/a.toml"
_MUTATION = f'{_HASH}[a]\nbreaks = "A."\nfile = "tests/mutations/a.toml"\nbecomes = "y"\n'
_LONG = "int f(int a) {\n" + "  a += 1;\n" * 69 + "  return a;\n}\n"
_METHOD = "struct S {\n  S() : a_{1}, b_(2) {\n" + "    a_ += 1;\n" * 70 + "  }\n};\n"
_PAGE = "docs/" "a.md"

PLANTED = {
    "format": (("dataplane/base/a.h", f"{_HEAD}#pragma once\nint  f( );\n", "clang-format"),),
    "licence": (
        ("dataplane/base/a.h", "#pragma once\n", "first two lines"),
        ("scripts/a", "#!/bin/bash\necho\n", "first two lines"),
        ("configs/a.yaml", "a: 1\n", "first two lines"),
        ("tests/meson.build", "subdir('a')\n", "first two lines"),
    ),
    "tidy": (
        ("dataplane/base/a.cc", f"{_HEAD}// {'a' * 98}\n", "101 columns"),
        ("dataplane/base/a.cc", f"{_HEAD}int a; \n", "space at the end"),
        ("dataplane/base/a.cc", f"{_HEAD}int a;\n\n", "one newline"),
        ("dataplane/base/a.h", f"{_HEAD}int a;\n", "pragma once"),
    ),
    "size": (
        ("dataplane/base/a.cc", _HEAD + "namespace a {\n" + _LONG + "}\n", "f: 72 lines"),
        ("dataplane/base/a.cc", _HEAD + _METHOD, "S: 72 lines"),
        ("dataplane/base/a.cc", _HEAD + "int a;\n" * 400, "402 lines"),
        ("scripts/a.py", _HASH + "def f():\n" + "    g()\n" * 70, "f: 71 lines"),
        ("scripts/a.sh", _HASH + "f() {\n" + "  g\n" * 70 + "}\n", "f: 72 lines"),
    ),
    "banned": (
        ("dataplane/base/a.cc", _HEAD + "// TO" "DO: later\n", "make an issue"),
        ("dataplane/base/a.cc", _HEAD + "#if " "0\n#endif\n", "dead code"),
        (_PAGE, "See /wo" "rk/main/README.md\n", "one machine"),
        ("tests/unit/a.cc", _HEAD + "std::this_thread::sle" "ep_for(1ms);\n", "no sleep"),
    ),
    "scripts": (
        ("scripts/a.sh", _HASH + "if true; then\n", "syntax error"),
        ("scripts/a.py", _HASH + "def f(:\n", "Python"),
        ("scripts/a", "#!/bin/bash\n" + _HASH, "not executable"),
    ),
    "links": (
        (_PAGE, "See [that](nowhere.md#part).\n", "leads nowhere"),
        (_PAGE, "# One part\n[that](a.md#one-part) [this](#two)\n", "#two leads nowhere"),
        (_PAGE, "![a plot](nowhere.svg)\n", "leads nowhere"),
        ("dataplane/base/a.h", f"{_HEAD}// docs/no" "where.md, section 1\n", "leads nowhere"),
    ),
    "layers": (
        ("dataplane/job/a.h", f'{_HEAD}#pragma once\n#include "control/cli/b.h"\n', "may not"),
    ),
    "shim": (
        ("trainer-shim/client/a.cc", _HEAD + "void f() { GP_ASSERT(false); }\n", "a trainer"),
        ("trainer-shim/client/a.cc", _HEAD + 'void f() { std::printf("a"); }\n', "a trainer"),
    ),
    "headers": (
        ("dataplane/base/a.h", f"{_HEAD}#pragma once\nstd::size_t f();\n", "not compile alone"),
    ),
    "mutations": (
        (_TABLE, f'{_MUTATION}text = "no" + "t there"\n', "TOML"),
        (_TABLE, f'{_MUTATION}text = "x"\n', "'tests' is missing"),
        (_TABLE, f'{_MUTATION}text = "breaks"\ntests = ["tests/a.cc"]\n', "a.cc is not there"),
        (_TABLE, f'{_MUTATION}text = "a"\ntests = ["{_TABLE}"]\n', "times in the file"),
    ),
}
