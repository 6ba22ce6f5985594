#!/usr/bin/env python3
"""Checks that every public function is used by an example that is run as a test.

usage: check_examples.py HEADERS TESTS

HEADERS is the folder of the public headers: each function that they declare with WEIR_API must be
called by some example_NAME.c in TESTS, and TESTS/meson.build must name each NAME.
"""
import pathlib
import re
import sys

DECLARED = re.compile(r"^WEIR_API\b[^;{]*?\b(weir_\w+)\s*\(", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def code_of(path):
    return COMMENT.sub("", path.read_text())


def main():
    headers, tests = map(pathlib.Path, sys.argv[1:3])
    examples = {path: code_of(path) for path in sorted(tests.glob("example_*.c"))}
    functions = 0
    findings = []
    for header in sorted(headers.glob("*.h")):
        for name in DECLARED.findall(code_of(header)):
            functions += 1
            if not any(re.search(rf"\b{name}\s*\(", code) for code in examples.values()):
                findings.append(f"{header}: {name} is used by no example: add it to one of "
                                f"{tests}/example_*.c")
    build = (tests / "meson.build").read_text()
    for path in examples:
        name = path.stem.removeprefix("example_")
        if not re.search(rf"'(?:example )?{name}'", build):
            findings.append(f"{path}: is not run: name it in {tests}/meson.build")
    for finding in findings:
        print(finding)
    print(f"{functions} functions, {len(examples)} examples, {len(findings)} findings")
    return 1 if findings or not functions or not examples else 0


sys.exit(main())
