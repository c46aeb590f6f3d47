"""Mutants of our sources, and which test notices them, for scripts/mutate, whose --help says more.

All chosen mutants are in one build of a copy: each site asks `mutant(NUMBER)`, which compares the number with
PUSHRELAY_MUTANT. Operators become operators of their own, one a site, so that nothing has to be known about where their
operands end; conditions, statements and functions get something in front and behind. No line moves, so that what the
compiler says leads back to the mutant, which is dropped when it does not compile.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULES = ["ProviderCredentials", "HTTP2", "DeviceModel", "RelayStore", "RelayCore", "Cockpit"]
LEAST_SECONDS = 60
ROUNDS = 24
SWITCH_FILE = "Mutant.swift"

# What an operator becomes: the changes, and how each is written. `a` and `b` are its operands.
COMPARISONS = {"<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="]}
LOGIC = {"&&": {"||": "try a || b()", "only the left": "a", "only the right": "try b()"},
         "||": {"&&": "try a && b()", "only the left": "a", "only the right": "try b()"}}

KEYWORDS = ("return guard if for while switch case let var default break continue throw defer func struct enum class "
            "extension init deinit precondition preconditionFailure assert assertionFailure fatalError logger import "
            "typealias repeat do else super static private package public fileprivate subscript yield discard is as "
            "self.init").split()
NO_MUTANT_IN = re.compile(r"\b(precondition|preconditionFailure|assert|assertionFailure|fatalError|logger\.\w+)\(")
STATEMENT = re.compile(
    r"(?:try[?!]? )?(?:await )?(?:(?P<call>[\w.\[\]?!$() ,:-]*[\w\])?!]\(.*\))"
    r"|(?P<change>[\w.\[\]?!$()]+ (?:[-+*|&^%]|&[-+*]|<<|>>)= .*)"
    r"|(?P<assignment>(?:[\w.\[\]?!$()]+|\([\w., \[\]]+\)) = .*))", re.S)

Edit = collections.namedtuple("Edit", "position rank text removed")
# Closers stand before openers at one place; of openers the outer stands first, of closers the inner.
OUTER, MIDDLE, INNER = 1, 2, 3


class Mutant:
    """One change at one place. `edits` is filled in when it is chosen, with others of its site."""

    def __init__(self, site, change, key):
        self.site, self.change, self.key, self.number = site, change, key, 0

    @property
    def place(self):
        return f"{self.site.file.relative_to(ROOT)}:{self.site.line}"

    def __str__(self):
        return f"{self.place}: {self.site.shown}: {self.change}"


class Site:
    def __init__(self, source, kind, start, end, shown):
        self.source, self.file, self.kind, self.start, self.end = source, source.file, kind, start, end
        self.line, self.last_line = source.line(start), source.line(end - 1)
        self.shown = " ".join(shown.split())
        self.mutants = []

    def add(self, change, key=None):
        self.mutants.append(Mutant(self, change, key or change))
        return self


# --- Reading Swift ------------------------------------------------------------------------------


def masked(text):
    """The same text with blanks for comments, texts, regular expressions and what is not always compiled."""
    out, i, n = list(text), 0, len(text)

    def blank(start, end):
        for at in range(start, end):
            if out[at] != "\n":
                out[at] = " "

    def text_end(i):
        match = re.compile(r'(#*)("""|")').match(text, i)
        hashes, quote = match.groups()
        at = match.end()
        while at < n:
            if text.startswith("\\" + hashes + "(", at):
                at, depth = at + len(hashes) + 2, 1
                while depth and at < n:
                    if text[at] == '"':
                        at = text_end(at)
                        continue
                    depth += {"(": 1, ")": -1}.get(text[at], 0)
                    at += 1
            elif text[at] == "\\" and not hashes:
                at += 2
            elif text.startswith(quote + hashes, at):
                return at + len(quote) + len(hashes)
            else:
                at += 1
        return n

    while i < n:
        if text.startswith("//", i):
            end = text.find("\n", i)
            end = n if end < 0 else end
        elif text.startswith("/*", i):
            end = text.find("*/", i) + 2
        elif text[i] == '"' or re.compile(r'#+"').match(text, i):
            end = text_end(i)
            out[i] = out[end - 1] = '"'
            blank(i + 1, end - 1)
            i = end
            continue
        elif text[i] == "/" and i and text[i - 1] in " (" and text[i + 1] not in " \n":
            end = text.find("\n", i)
            end = text.rfind("/", i + 1, end) + 1 or end
        else:
            i += 1
            continue
        blank(i, end)
        i = end
    result = "".join(out)
    for match in re.finditer(r"^ *#if .*?^ *#endif", result, re.S | re.M):
        blank(match.start(), match.end())
    return "".join(out)


def is_dependent(first, kind, second, other):
    """Whether one of two statements may write what the other reads or writes, by the paths in them."""
    def written(statement, kind):
        if kind == "call":
            # A function of its own, `next()`, may write anything; `a.b.append(c)` writes `a.b`.
            path = re.match(r"(?:try[?!]? )?(?:await )?([\w.]*)\.\w+[?!]?\(", statement)
            # What happens is said by `emit` alone, which reads what it is given.
            if re.match(r"emit\((?!.*(?<![\w.])\w+\()", statement):
                return {"effects", "now"}
            return {path[1]} if path else None
        return set(re.findall(r"(?<![\w.])[A-Za-z_][\w.]*", re.split(r" (?:\S*)= ", statement, maxsplit=1)[0]))

    def named(statement):
        return set(re.findall(r"(?<![\w.])[a-z_][\w.]*", statement))

    def meet(paths, names):
        return paths is None or any(f"{name}.".startswith(f"{path}.") or f"{path}.".startswith(f"{name}.")
                                    for path in paths for name in names)

    return meet(written(first, kind), named(second)) or meet(written(second, other), named(first))


class Block:
    """What is between two braces: `kind` is type, function, init or code."""

    def __init__(self, kind, header, start, outer):
        self.kind, self.header, self.start, self.outer, self.end = kind, header, start, outer, None


class Source:
    def __init__(self, file):
        self.file = file
        self.text = file.read_text()
        self.plain = masked(self.text)
        self.starts = [0] + [match.end() for match in re.finditer("\n", self.text)]
        self.sites = []
        self.read_blocks()
        self.find_operators()
        self.find_conditions()
        self.find_statements()
        self.find_functions()
        self.find_numbers()

    def line(self, position):
        low, high = 0, len(self.starts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.starts[middle] <= position else (low, middle)
        return low + 1

    def read_blocks(self):
        self.block_at, self.blocks = [None] * len(self.plain), []
        current, last = None, 0
        for position, character in enumerate(self.plain):
            if character == "{":
                header = self.plain[last:position]
                current = Block(self.kind_of(header, current), header, position, current)
                self.blocks.append(current)
                last = position + 1
            elif character == "}":
                if current:
                    current.end, current = position, current.outer
                last = position + 1
            self.block_at[position] = current

    @staticmethod
    def kind_of(header, outer):
        if re.search(r"\b(struct|class|enum|extension|protocol|actor) +[A-Z][^{}()]*$", header):
            return "type"
        if outer and outer.kind != "type":
            return "init" if outer.kind == "init" else "code"
        if re.search(r"\binit[?!]?(<[^>]*>)?\([^{}]*$", header):
            return "init"
        return "function" if re.search(r"\bfunc\b[^{}]*$", header) else "code"

    def is_code(self, position):
        block = self.block_at[position]
        return block is not None and block.kind != "type" and not self.is_left_alone(position)

    def is_left_alone(self, position):
        """In a trap's condition, a log's text, an attribute, or a declaration's head."""
        line = self.starts[self.line(position) - 1]
        head = self.plain[line:position]
        if re.match(r" *(@|#|.*\b(func|extension|struct|typealias|associatedtype|subscript)\b[^{]*$)", head):
            return True
        start = max(self.block_at[position].start, position - 600)
        for match in NO_MUTANT_IN.finditer(self.plain, start, position):
            if self.closing(match.end() - 1) >= position:
                return True
        return False

    def closing(self, position):
        depth = 0
        for at in range(position, len(self.plain)):
            if self.plain[at] in "([{":
                depth += 1
            elif self.plain[at] in ")]}":
                depth -= 1
                if depth == 0:
                    return at
        return len(self.plain)

    def site(self, kind, start, end, shown=None):
        site = Site(self, kind, start, end, shown or self.text[start:end])
        self.sites.append(site)
        return site

    def find_operators(self):
        for match in re.finditer(r"(?<=\s)(<=?|>=?|==|!=|&&|\|\|)(?=\s)", self.plain):
            if not self.is_code(match.start()):
                continue
            before = self.plain[:match.start()].rstrip()[-6:]
            after = self.plain[match.end():match.end() + 40].lstrip()
            if before.endswith("nil") or after.startswith("nil"):
                continue
            line = self.text.split("\n")[self.line(match.start()) - 1].strip()
            site = self.site("logic" if match[1] in LOGIC else "comparison", match.start(), match.end(), line)
            for change in LOGIC.get(match[1]) or COMPARISONS[match[1]]:
                site.add(f"{match[1]} becomes {change}", change)
        for match in re.finditer(r"(?<![\w.])(min|max)\(", self.plain):
            if self.is_code(match.start()):
                line = self.text.split("\n")[self.line(match.start()) - 1].strip()
                self.site("bound", match.start(), match.end(), line).add(
                    f"{match[1]} becomes {'max' if match[1] == 'min' else 'min'}", match[1])

    def find_conditions(self):
        for match in re.finditer(r"(?<![\w.`])(if|guard|while)\s", self.plain):
            if not self.is_code(match.start()):
                continue
            start, depth, at = match.end(), 0, match.end()
            clauses = []
            while at < len(self.plain):
                character = self.plain[at]
                if depth == 0 and (character == "{" and match[1] != "guard" or self.plain.startswith("else", at)
                                   and match[1] == "guard" and not self.plain[at - 1].isalnum()):
                    clauses.append((start, at))
                    break
                if depth == 0 and character == ",":
                    clauses.append((start, at))
                    start = at + 1
                depth += (character in "([{") - (character in ")]}")
                at += 1
            for start, end in clauses:
                clause = self.plain[start:end]
                start += len(clause) - len(clause.lstrip())
                end -= len(clause) - len(clause.rstrip())
                clause = self.plain[start:end]
                if not clause or re.match(r"(let|var|case|try|await|unsafe)\b|#", clause) or re.search(
                        r"\b(try|await|nil)\b| = |\?\?", clause):
                    continue
                site = self.site("condition", start, end, f"{match[1]} {self.text[start:end]}")
                if match[1] != "while":
                    site.add("always true")
                site.add("never true")

    def find_statements(self):
        """Statements on lines of their own, or behind the colon of a case."""
        found = []
        lines = self.plain.split("\n")
        for index, line in enumerate(lines):
            stripped = line.strip()
            if not stripped:
                continue
            start = self.starts[index] + len(line) - len(line.lstrip())
            case = re.match(r"(case [^\n]*?|default): (?=\S)", stripped)
            if case:
                # Not the colon of a label or a type.
                while case and stripped[:case.end()].count("(") != stripped[:case.end()].count(")"):
                    case = re.compile(r".*?\): (?=\S)").match(stripped, case.end())
                if not case:
                    continue
                start += case.end()
                stripped = stripped[case.end():]
            elif not self.begins(lines, index):
                continue
            first = re.match(r"[\w.]+|\(", stripped)
            if not first or first[0].split(".")[0] in KEYWORDS or first[0] in KEYWORDS or not self.is_code(start):
                continue
            end = self.statement_end(start)
            statement = self.plain[start:end]
            match = STATEMENT.fullmatch(statement)
            if not match or "{" in statement or NO_MUTANT_IN.match(statement):
                continue
            block = self.block_at[start]
            kind = match.lastgroup
            if kind == "call" and re.search(r" (is|as|in) ", statement):
                continue
            if kind == "assignment" and block.kind == "init":
                continue
            site = self.site("statement", start, end)
            site.add("left out")
            if not case and self.line(start) == self.line(end - 1):
                found.append((site, kind))
        pairs = zip(found, found[1:])
        used = None
        for (first, kind), (second, other) in pairs:
            if second.line != first.line + 1 or first is used or "call" not in (kind, other):
                continue
            if self.block_at[first.start] is self.block_at[second.start] and is_dependent(
                    self.plain[first.start:first.end], kind, self.plain[second.start:second.end], other):
                used = second
                site = self.site("order", first.start, second.end)
                site.middle = (first.end, second.start)
                site.add("the other way round")

    def begins(self, lines, index):
        """Whether a statement begins here: what is before is over."""
        before = index - 1
        while before >= 0 and not lines[before].strip():
            before -= 1
        last = lines[before].rstrip() if before >= 0 else ""
        if not last or re.search(r"[-+*/=<>&|,(\[?.]$|\b(return|in|else|try|await)$", last):
            return last.endswith(" in")
        if last.endswith(":"):
            return bool(re.match(r" *(case|default)\b|.*\S:$", last)) and "?" not in last
        position = self.starts[index]
        block = self.block_at[position]
        inside = self.plain[block.start + 1:position] if block else ""
        return sum(inside.count(c) for c in "([") == sum(inside.count(c) for c in ")]")

    def statement_end(self, start):
        depth, at = 0, start
        while at < len(self.plain):
            character = self.plain[at]
            if character in "([{":
                depth += 1
            elif character in ")]}":
                if depth == 0:
                    break
                depth -= 1
            elif depth == 0 and character in "\n;":
                following = self.plain[at:].lstrip()
                if not re.match(r"[.?:&|+*/<>=-]|else\b", following) and not re.search(
                        r"[-+=*/&|,<>]$", self.plain[start:at].rstrip()):
                    break
            at += 1
        return start + len(self.plain[start:at].rstrip())

    def find_functions(self):
        for block in self.blocks:
            if block.kind != "function" or block.end is None:
                continue
            body = self.plain[block.start + 1:block.end]
            # The result stands behind the last parenthesis of the parameters.
            head = block.header[block.header.rfind("func"):]
            result = re.search(r"-> *([^()]+?)\s*(where .*)?$", head[self.parameters_end(head):], re.S)
            shown = re.sub(r"\(.*", "", " ".join(head.split()), flags=re.S)
            if not result and "->" not in head[self.parameters_end(head):]:
                if body.strip():
                    self.site("early return", block.start, block.start + 1, shown).add("does nothing", "return")
            elif result and "return " in body:
                site = self.site("early return", block.start, block.start + 1, shown)
                if result[1] == "Bool":
                    site.add("returns true", "return true").add("returns false", "return false")
                elif result[1].endswith("?"):
                    site.add("returns nil", "return nil")
                else:
                    self.sites.remove(site)

    @staticmethod
    def parameters_end(head):
        depth = 0
        for at, character in enumerate(head):
            depth += (character == "(") - (character == ")")
            if character == ")" and depth == 0:
                return at + 1
        return len(head)

    def find_numbers(self):
        for match in re.finditer(r"(?<=[\w)\]?] )&?[-+] (1)(?![\w.])", self.plain):
            if self.is_code(match.start()):
                line = self.text.split("\n")[self.line(match.start()) - 1].strip()
                self.site("one", match.start(1), match.end(1), line).add(f"{match[0]} becomes {match[0][:-1]}0", "0")
        for match in re.finditer(r"\breturn (true|false)\b(?=\s*(\}|$))", self.plain, re.M):
            if self.is_code(match.start()):
                other = "false" if match[1] == "true" else "true"
                line = self.text.split("\n")[self.line(match.start()) - 1].strip()
                self.site("early return", match.start(1), match.end(1), line).add(f"returns {other}", "flip")


# --- Writing Swift ------------------------------------------------------------------------------


def operator_name(number):
    """Two mathematical operators behind a third: nobody else has such a name."""
    return "\u2295" + chr(0x2200 + number // 200) + chr(0x2200 + number % 200)


class Writer:
    """The edits of one module's chosen mutants, and the file that its switch is in."""

    def __init__(self, mutants):
        self.by_file = collections.defaultdict(list)
        self.declarations = []
        by_site = collections.defaultdict(list)
        for mutant in mutants:
            by_site[mutant.site].append(mutant)
        for site, chosen in by_site.items():
            self.by_file[site.file] += self.edits(site, {mutant.key: mutant.number for mutant in chosen})

    def edits(self, site, numbers):
        number = next(iter(numbers.values()))
        around = lambda rank, before, behind: [
            Edit(site.start, rank, before, 0), Edit(site.end, -rank, behind, 0)]
        instead = lambda text: [Edit(site.start, INNER, text, site.end - site.start)]
        match site.kind:
            case "comparison" | "logic":
                return instead(self.operator(site, numbers))
            case "bound":
                name = "mutantLeast" if "min" in numbers else "mutantMost"
                return instead(f"{name}({number}, ")
            case "condition":
                always, never = numbers.get("always true", -1), numbers.get("never true", -1)
                return around(MIDDLE, f"mutantForced({always}, {never}, (", "))")
            case "statement":
                return around(MIDDLE, f"if !mutant({number}) {{ ", " }")
            case "order":
                end, start = site.middle
                text = site.source.text
                swapped = f"{text[start:site.end]}; {text[site.start:end]}"
                return around(OUTER, f"if mutant({number}) {{ {swapped} }} else {{ ", " }")
            case "early return" if "flip" in numbers:
                value = site.source.text[site.start:site.end]
                return instead(f"mutant({number}) != {value}")
            case "early return":
                returns = "".join(f" if mutant({n}) {{ {text} }};" for text, n in numbers.items())
                return [Edit(site.end, OUTER, returns, 0)]
            case "one":
                return instead(f"mutantOne({number})")

    def operator(self, site, numbers):
        text = site.source.text[site.start:site.end]
        name = operator_name(next(iter(numbers.values())))
        if text in LOGIC:
            level = "Conjunction" if text == "&&" else "Disjunction"
            self.declarations.append(f"infix operator {name}: Logical{level}Precedence")
            cases = "".join(f"  if mutant({n}) {{ return {LOGIC[text][key]} }}\n" for key, n in numbers.items())
            self.declarations.append(
                f"func {name} (a: Bool, b: @autoclosure () throws -> Bool) rethrows -> Bool {{\n"
                f"{cases}  return try a {text} b()\n}}")
        else:
            self.declarations.append(f"infix operator {name}: ComparisonPrecedence")
            (key, number), = numbers.items()
            bound = "Equatable" if text in ("==", "!=") else "Comparable"
            self.declarations.append(
                f"func {name} <T: {bound}>(a: T, b: T) -> Bool {{ mutant({number}) ? a {key} b : a {text} b }}")
        return name

    def file(self, source):
        edits = sorted(self.by_file[source.file], key=lambda edit: (edit.position, edit.rank))
        text, last = [], 0
        for edit in edits:
            text += [source.text[last:edit.position], edit.text]
            last = edit.position + edit.removed
        return "".join(text) + source.text[last:]

    def switch(self):
        return SWITCH + "\n".join(self.declarations) + "\n"


SWITCH = """\
#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

private let chosen = getenv("PUSHRELAY_MUTANT").flatMap { Int(String(cString: $0)) } ?? 0

@inline(never) func mutant(_ number: Int) -> Bool { number == chosen }
@inline(never) func mutantForced(_ always: Int, _ never: Int, _ value: Bool) -> Bool {
  mutant(always) || !mutant(never) && value
}
func mutantOne<T: Numeric>(_ number: Int) -> T { mutant(number) ? 0 : 1 }
func mutantLeast<T: Comparable>(_ number: Int, _ a: T, _ b: T) -> T {
  mutant(number) ? max(a, b) : min(a, b)
}
func mutantMost<T: Comparable>(_ number: Int, _ a: T, _ b: T) -> T {
  mutant(number) ? min(a, b) : max(a, b)
}

"""


# --- Building -----------------------------------------------------------------------------------


def read(modules):
    """All sources and mutants of the modules, numbered from 1 in the order of files and lines."""
    sources = {module: [Source(file) for file in sorted((ROOT / "Sources" / module).rglob("*.swift"))]
               for module in modules}
    number = 0
    for source in (source for module in modules for source in sources[module]):
        source.sites.sort(key=lambda site: (site.start, site.end))
        for mutant in (mutant for site in source.sites for mutant in site.mutants):
            number += 1
            mutant.number = number
    return sources


def draw(mutants, count, seed):
    """So many mutants, of every kind alike as long as there are any."""
    kinds = collections.defaultdict(list)
    for mutant in mutants:
        kinds[mutant.site.kind].append(mutant)
    generator = random.Random(seed)
    for kind in sorted(kinds):
        generator.shuffle(kinds[kind])
    drawn = []
    while len(drawn) < count and any(kinds.values()):
        for kind in sorted(kinds):
            if kinds[kind] and len(drawn) < count:
                drawn.append(kinds[kind].pop())
    return drawn


class Copy:
    """The mutated copy of the repository; what has not changed is not written, so it is built once only."""

    def __init__(self, folder, modules):
        self.folder, self.modules = folder, modules
        self.dropped_file = folder / ".build" / "mutants-dropped"
        self.dropped = set(self.dropped_file.read_text().splitlines()) if self.dropped_file.exists() else set()

    def put(self, path, data):
        target = self.folder / path
        if target.is_symlink() or not target.exists() or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)

    def take_over(self):
        """Everything that git knows or would take, with a package of the modules' tests only."""
        names = subprocess.run(["git", "-C", ROOT, "ls-files", "-zco", "--exclude-standard"], check=True,
                               capture_output=True, text=True).stdout.split("\0")
        mutated = tuple(f"Sources/{module}/" for module in self.modules)
        wanted = {name for name in names if name and (ROOT / name).is_file()}
        for name in wanted:
            if name != "Package.swift" and not (name.startswith(mutated) and name.endswith(".swift")):
                self.put(name, (ROOT / name).read_bytes())
        for folder in ("Sources", "Tests"):
            for path in (self.folder / folder).rglob("*"):
                if path.name != SWITCH_FILE and path.is_file() and str(path.relative_to(self.folder)) not in wanted:
                    path.unlink()
        tests = ", ".join(f'"{module}Tests"' for module in self.modules)
        package = (ROOT / "Package.swift").read_text().replace("  .treatAllWarnings(as: .error),\n", "")
        package += f"package.targets.removeAll {{ $0.type == .test && ![{tests}].contains($0.name) }}\n"
        self.put("Package.swift", package.encode())

    def write(self, sources, chosen):
        for module in self.modules:
            own = {source.file: source for source in sources[module]}
            writer = Writer([mutant for mutant in chosen if mutant.site.file in own])
            for source in own.values():
                self.put(source.file.relative_to(ROOT), writer.file(source).encode())
            self.put(f"Sources/{module}/{SWITCH_FILE}", writer.switch().encode())

    def build(self, sources, chosen):
        """Builds, and drops what does not compile. Returns what is left."""
        chosen = [mutant for mutant in chosen if str(mutant) not in self.dropped]
        for _ in range(ROUNDS):
            self.write(sources, chosen)
            say(f"building {len(chosen)} mutants")
            run = subprocess.run(
                ["swift", "build", "--package-path", self.folder, "--product", "push-relayPackageTests"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if run.returncode == 0:
                return chosen
            errors = set(re.findall(r"(/[^\s:]+\.swift):(\d+):\d+: error: (.*)", run.stdout))
            bad = {mutant for path, line, text in errors for mutant in self.blamed(path, int(line), text, chosen)}
            if not bad:
                sys.exit(f"{run.stdout[-4000:]}\nmutate: this is no mutant's fault")
            say(f"{len(bad)} of them do not compile")
            self.dropped |= {str(mutant) for mutant in bad}
            self.dropped_file.parent.mkdir(exist_ok=True)
            self.dropped_file.write_text("\n".join(sorted(self.dropped)) + "\n")
            chosen = [mutant for mutant in chosen if mutant not in bad]
        sys.exit(f"mutate: after {ROUNDS} rounds there are still mutants that do not compile")

    def blamed(self, path, line, text, chosen):
        path = pathlib.Path(path)
        file = ROOT / path.relative_to(self.folder.resolve())
        if path.name == SWITCH_FILE:
            declaration = path.read_text().splitlines()[line - 1]
            numbers = {int(number) for number in re.findall(r"mutant\((\d+)\)", declaration)}
            return [mutant for mutant in chosen if mutant.number in numbers]
        here = [mutant for mutant in chosen if mutant.site.file == file]
        unset = re.match(r"(?:constant|variable) '(\w+)' used before being initialized", text)
        if unset:
            # It is said where the value is used, not where an assignment was left out.
            here = [mutant for mutant in here if f"{unset[1]} = " in str(mutant)] or here
            return [mutant for mutant in here if mutant.site.line <= line][-1:] or here[:1]
        at = [mutant for mutant in here if mutant.site.line <= line <= mutant.site.last_line]
        if at:
            return at
        # A missing return is said to be at the end of its function, for instance.
        above = [mutant for mutant in here if mutant.site.line <= line]
        return above[-1:] or here[:1]

    @property
    def bundle(self):
        return self.folder / ".build" / "debug" / "push-relayPackageTests.xctest"


# --- Trying -------------------------------------------------------------------------------------

# Not what is merely said of a test whose argument is called `failed`.
FAILURE = re.compile(r"^\S*\u2718\S* Test (?:case passing .+? to )?(.+?)(?: with \d+ test cases?)? (?:recorded an issue|failed)\b")


def test(bundle, module, number, seconds):
    """Runs the module's tests until the first one fails. Returns who noticed, or None, and the time it took."""
    with tempfile.TemporaryDirectory(prefix="m-") as folder:
        begin = time.monotonic()
        process = subprocess.Popen(
            [bundle, "--testing-library", "swift-testing", "--filter", f"^{module}Tests\\."],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
            env=dict(os.environ, PUSHRELAY_MUTANT=str(number), TMPDIR=folder, NO_COLOR="1",
                     SWIFT_BACKTRACE="enable=no"))
        is_late = threading.Event()
        timer = threading.Timer(seconds, lambda: (is_late.set(), os.killpg(process.pid, signal.SIGKILL)))
        timer.start()
        who = trap = last = None
        for line in process.stdout:
            line = re.sub(r"\x1b\[[0-9;]*m", "", line)
            last = line.strip() or last
            if "Fatal error" in line or "Precondition failed" in line:
                trap = re.sub(r".*?(Fatal error|Precondition failed)", r"\1", line.strip())[:90]
            failure = FAILURE.search(line)
            if failure and "known issue" not in line:
                who = failure[1]
                break
        timer.cancel()
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        code = process.wait()
        took = time.monotonic() - begin
    if is_late.is_set():
        return f"the clock: not over after {seconds:.0f} s", took
    if who is None and code != 0:
        who = trap or f"the end of the process: {code}, after: {last}"
    return who, took


def judge(copy, module, chosen, normal):
    """Tries each mutant of a module. Returns how many were noticed, and the survivors."""
    survivors, noticed = [], 0
    for mutant in chosen:
        who, took = test(copy.bundle, module, mutant.number, max(LEAST_SECONDS, 3 * normal))
        if who is None:
            survivors.append(mutant)
        else:
            noticed += 1
        print(f"{mutant.number:5} {'LIVED  ' if who is None else 'noticed'} {took:5.1f} s  {mutant}"
              + (f"  [{who}]" if who else ""), flush=True)
    return noticed, survivors


def share(noticed, count):
    return f"{noticed} of {count} noticed, {100 * noticed / max(count, 1):.1f} %"


def say(text):
    print(f"mutate: {text}", file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/mutate", add_help=False)
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--copy", type=pathlib.Path, default=ROOT / ".build-mutants")
    wishes = parser.parse_args()
    for module in wishes.modules:
        if not (ROOT / "Sources" / module).is_dir() or not (ROOT / "Tests" / f"{module}Tests").is_dir():
            parser.error(f"there is no {module} with tests; for example: {', '.join(MODULES)}")
    return wishes


def main():
    wishes = arguments()
    modules = wishes.modules or MODULES
    sources = read(modules)
    chosen = {}
    for module in modules:
        mutants = [mutant for source in sources[module] for site in source.sites for mutant in site.mutants]
        if wishes.only:
            chosen[module] = [mutant for mutant in mutants if mutant.number in wishes.only]
        else:
            # Some will not compile.
            chosen[module] = draw(mutants, wishes.count * 5 // 4, wishes.seed)
        say(f"{module}: {len(mutants)} mutants, of which {len(chosen[module])} are chosen")
    if wishes.list:
        for mutant in (mutant for module in modules for mutant in chosen[module]):
            print(f"{mutant.number:5} {mutant.site.kind:12}  {mutant}")
        return 0
    copy = Copy(wishes.copy, modules)
    copy.take_over()
    built = set(copy.build(sources, [mutant for module in modules for mutant in chosen[module]]))
    count, lived = 0, []
    for module in modules:
        tried = [mutant for mutant in chosen[module] if mutant in built]
        tried = tried if wishes.only else tried[:wishes.count]
        who, normal = test(copy.bundle, module, 0, 3600)
        if who:
            sys.exit(f"mutate: the tests of {module} fail without any mutant: {who}")
        say(f"{module}: {len(tried)} mutants; its tests take {normal:.0f} s")
        noticed, survivors = judge(copy, module, tried, normal)
        print(f"{module}: {share(noticed, len(tried))}", flush=True)
        count += len(tried)
        lived += survivors
    print(f"\n{share(count - len(lived), count)}; those that lived:" if lived else f"\n{share(count, count)}")
    for mutant in lived:
        print(f"{mutant.number:5}  {mutant}")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
