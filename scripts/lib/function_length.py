# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Counts the lines of functions. For C++ it relies on the formatter: a space precedes the opening
brace of a body."""

import ast
import re

from sources import without_comments

_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")


def cpp_functions(text):
    """(first line, name, lines) of every function body at namespace or class scope."""
    code = without_comments(text)
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", lambda m: re.sub(r"[^\n]", " ", m[0]), code,
                  flags=re.MULTILINE)  # fmt: skip
    found = []
    stack = []  # for each open brace: "scope", "function" or "other", and a function's first line
    start = 0  # where the present statement begins
    for match in re.finditer(r"[{};]", code):
        at = match.start()
        inside_function = any(kind != "scope" for kind, _, _ in stack)
        if match[0] == "{":
            statement = code[start:at]
            kind = "other" if inside_function else _kind_of(statement, code[at - 1 : at])
            begin = start + len(statement) - len(statement.lstrip())
            stack.append((kind, code.count("\n", 0, begin) + 1, _name_of(statement)))
            if kind != "other":
                start = at + 1
        elif match[0] == "}" and stack:
            kind, first, name = stack.pop()
            if kind == "function":
                found.append((first, name, code.count("\n", 0, at) + 2 - first))
            if kind != "other":
                start = at + 1
        elif match[0] == ";" and not inside_function:
            start = at + 1
    return found


def _kind_of(statement, before):
    """What a brace at namespace or class scope opens, by the text of the statement before it."""
    without_templates = re.sub(r"template\s*<[^{;]*?>\s*(?=\w)", "", statement, flags=re.DOTALL)
    head = re.sub(r"\[\[[^\]]*\]\]|\([^()]*\)", "", without_templates)
    if not before.isspace():
        return "other"  # a{1}: a braced initialiser
    if "(" not in without_templates or re.match(r"\s*(inline\s+)?namespace\b", head):
        return "scope" if _SCOPE.search(head) else "other"
    if re.match(r"\s*(class|struct|union|enum)\b", head) and not statement.rstrip().endswith(")"):
        return "scope"
    if re.search(r"(?<![=!<>+\-*/|&^%o])=\s*$", head):
        return "other"  # int a[f(3)] = {
    return "function"


def _name_of(statement):
    match = re.search(r"([~\w:]+|operator\s*\S+)\s*\(", statement)
    return match[1] if match else statement.strip().split("\n")[-1][:40]


def python_functions(text):
    return [
        (node.lineno, node.name, node.end_lineno - node.lineno + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def shell_functions(text):
    """Functions of shell scripts, which begin with `name() {` and end with `}` in the first column.
    """
    found = []
    begun = None
    for number, line in enumerate(text.splitlines(), start=1):
        match = re.match(r"(\w+)\(\) \{$", line)
        if match:
            begun = (number, match[1])
        elif line == "}" and begun:
            found.append((*begun, number - begun[0] + 1))
            begun = None
    return found
