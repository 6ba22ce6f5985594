#!/usr/bin/env python3
"""Checks that every atomic operation under a folder says what it relies on.

usage: check_tags.py FOLDER

- A line with an atomic operation ends in a comment of tags: `// L1`, `// P1 R2`.
- A tag is defined in the comment that opens the file: a line of it (or a sentence) begins with the tag.
  A file may use tags that another one defines, if its comments say so: "L1 and R1 are defined in x.c".
- Every tag that is defined is used, by the file or by one that refers to it. Invariants (I1, ...) are
  not: they are what the others add up to.
- Every operation names its memory order.
"""
import pathlib
import re
import sys

OPERATION = re.compile(r"atomic_\w+\s*\(|\bck_pr_\w+\s*\(|\bwr_u128_(?:cas|load)\w*\s*\(|__atomic_\w+\s*\(")
DECLARATION = re.compile(r"^\s*(?:static|extern|inline|struct|bool|void|uint64_t|wr_\w+\s)[\w\s*]*\b"
                         r"(?:wr_u128_(?:cas|load)\w*)\s*\([^;]*(?:\{|,)?\s*$")
TAGS_AT_END = re.compile(r"//((?: [A-Z]\d+)+)$")
IMPLICIT = re.compile(r"\batomic_(?:load|store|exchange|compare_exchange_(?:strong|weak)|"
                      r"fetch_(?:add|sub|and|or|xor)|flag_test_and_set|flag_clear)\s*\(")
DEFINITION = re.compile(r"(?:^|[.:;)] )([A-Z]\d+)(?= [(A-Za-z`\"])")
ELSEWHERE = re.compile(r"\b(\w+\.[ch])\b[^.]{0,80}\bdefined\b|\bdefined\b[^.]{0,40}\b(\w+\.[ch])\b")


def comment_of(line):
    """The line's comment, or None. (No string in these sources has // in it that matters here.)"""
    at = line.find("//")
    return None if at < 0 else line[at + 2:].strip()


class Source:
    def __init__(self, path):
        self.path = path
        self.lines = path.read_text().splitlines()
        opening = []
        for line in self.lines:
            if not line.startswith("//"):
                break
            opening.append(line[2:].strip())
        self.defined = {tag for line in opening for tag in DEFINITION.findall(line)}
        comments = " ".join(c for c in map(comment_of, self.lines) if c)
        self.others = {a or b for a, b in ELSEWHERE.findall(comments)}
        self.used = set()

    def findings(self, sources):
        known = set(self.defined)
        for name in self.others:
            for source in sources:
                if source.path.name == name:
                    known |= source.defined
        for number, line in enumerate(self.lines, 1):
            where = f"{self.path}:{number}"
            code = line.split("//")[0]
            if not OPERATION.search(code) or code.lstrip().startswith("#") or DECLARATION.match(code):
                continue
            if IMPLICIT.search(code):
                yield f"{where}: an atomic operation without a memory order: {line.strip()}"
            tags = TAGS_AT_END.search(line)
            if not tags:
                yield f"{where}: an atomic operation without a tag: {line.strip()}"
                continue
            for tag in tags.group(1).split():
                self.used.add(tag)
                if tag not in known:
                    yield f"{where}: tag {tag} is not defined: {line.strip()}"

    def unused(self, sources):
        used = set(self.used)
        for source in sources:
            if self.path.name in source.others:
                used |= source.used
        for tag in sorted(self.defined - used):
            if not tag.startswith("I"):
                yield f"{self.path}: tag {tag} is defined and not used"


def main():
    root = pathlib.Path(sys.argv[1])
    sources = [Source(path) for path in sorted(root.rglob("*.[ch]"))]
    findings = [f for source in sources for f in source.findings(sources)]
    findings += [f for source in sources for f in source.unused(sources)]
    for finding in findings:
        print(finding)
    print(f"{len(sources)} files, {len(findings)} findings")
    return 1 if findings or not sources else 0


sys.exit(main())
