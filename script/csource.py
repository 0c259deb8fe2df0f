"""Reading the project's C sources: which files there are, what each defines and names, and what goes round in circles.

Used by check-layers and figures. It knows the form that clang-format gives our files: a function's body begins with a
"{" and ends with a "}" in the first column. It is no compiler; macros are not expanded.
"""
import os
import re

# Where an include is looked for after the file's own directory: SMART_INCLUDES of the Makefile, then test.
INCLUDE_PATH = ("", "src", "test")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\\\n]|\\.)*(?:\\\n(?:[^\\\n]|\\.)*)*', re.M | re.S)
MACRO_BODY = re.compile(r'\s*#\s*define\s+\w+(?:\([^)]*\))?(.*)', re.S)
TAG = re.compile(r'\b(?:struct|enum|union)\s+\w+')
MEMBER = re.compile(r'(?:->|(?<!\.)\.(?!\.))\s*[A-Za-z_]\w*')
WORD = re.compile(r'\b[A-Za-z_]\w*\b')
MACRO_CALL = re.compile(r'\w+\s*\((?!\s*\*)')
TYPE_BODY = re.compile(r'^([^={]*)\b(?:struct|enum|union)\b[^={]*\{(?:[^{}]|\{[^{}]*\})*\}', re.S)
ATTRIBUTE = re.compile(r'__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)')


def sources(root, places=("",)):
    """Paths below root of the C files in places (files or directories), in order; without what was built."""
    found = set()
    for place in places:
        start = os.path.join(root, place)
        if os.path.isfile(start):
            found.add(place)
        for base, dirs, files in os.walk(start):
            here = os.path.relpath(base, root)
            dirs[:] = [name for name in dirs if not name.startswith(".") and (here, name) != (".", "build")]
            found.update(os.path.normpath(os.path.join(here, name)) for name in files if name.endswith((".c", ".h")))
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as handle:
        return handle.read()


def blank(pattern, text):
    """The text with what matches left out, but its line breaks."""
    return pattern.sub(lambda match: " " + "\n" * match.group(0).count("\n"), text)


def resolve(root, path, name):
    """The repository's file that an include means, searched as the compiler does, or None."""
    for base in (os.path.dirname(path),) + INCLUDE_PATH:
        candidate = os.path.normpath(os.path.join(base, name))
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def module_of(path):
    """foo.c and foo.h are one."""
    return os.path.splitext(path)[0]


class Function:
    """A function's definition: name, whether it is static, the line of its name, lines from there to its "}", body."""

    def __init__(self, name, static, line, lines, body):
        self.name, self.static, self.line, self.lines, self.body = name, static, line, lines, body


class Source:
    """What a file defines, and the words that it uses: in bodies, initialisers and macros, not in declarations."""

    def __init__(self, path, text):
        self.path = path
        self.functions = []
        self.variables = {}  # name: static
        self.words = set()
        text = blank(COMMENT_OR_STRING, INCLUDE.sub("", text))
        for match in DIRECTIVE.finditer(text):
            body = MACRO_BODY.match(match.group(0))
            if body:
                self._use(body.group(1))
        self._read_declarations(blank(DIRECTIVE, text))

    def _use(self, text):
        self.words.update(WORD.findall(MEMBER.sub(" ", TAG.sub(" ", text))))

    def _read_declarations(self, text):
        """Cuts the file into what ends with a ";", or with a body's "}", outside of all braces."""
        start, depth, opened = 0, 0, None
        for match in re.finditer(r'[{};]', text):
            at, sign = match.start(), match.group(0)
            if sign == "{":
                if depth == 0 and opened is None:
                    opened = at
                depth += 1
            elif sign == "}":
                depth = 0 if at == 0 or text[at - 1] == "\n" else depth - 1
                if depth == 0 and opened is not None and text[:opened].rstrip(" \n\t").endswith(")"):
                    self._add_function(text, start, opened, at + 1)
                    start, opened = at + 1, None
            elif depth == 0:
                self._add_declaration(text[start:at])
                start, opened = at + 1, None

    def _add_function(self, text, start, opened, end):
        head = blank(ATTRIBUTE, text[start:opened])
        name = re.search(r'([A-Za-z_]\w*)\s*\(', head)
        if name is None:
            return
        line = text.count("\n", 0, end) - text[opened:end].count("\n") - head.count("\n", name.start()) + 1
        lines = text.count("\n", 0, end) + 2 - line
        static = re.search(r'\bstatic\b', head) is not None
        self.functions.append(Function(name.group(1), static, line, lines, text[opened:end]))
        self._use(text[opened:end])

    def _add_declaration(self, text):
        # Of a type that is made on the spot nothing is needed: "struct { … } table[] = …".
        text = TYPE_BODY.sub(r"\1t ", ATTRIBUTE.sub(" ", text).strip(), count=1)
        if MACRO_CALL.match(text):
            # What a macro defines is not known; its arguments may be designators: ".place = a".
            self._use(text)
            return
        head, _, value = text.partition("=")
        # A "=" between parentheses is in an argument of a macro that makes something: "MAKE(foo, .member = bar)".
        if head.count("(") > head.count(")"):
            self._use(text)
            return
        self._use(value)
        if re.match(r'(?:extern|typedef)\b|_Static_assert', head) or (not value and "(" in head):
            return
        name = re.search(r'\(\s*\*\s*(?:const\s+)?(\w+)', head) or re.search(r'(\w+)\s*(?:\[[^\]]*\]\s*)*$', head)
        # "struct foo;" and "enum { … };" define nothing.
        if name and len(WORD.findall(TAG.sub("t", head))) > 1:
            self.variables[name.group(1)] = re.search(r'\bstatic\b', head) is not None

    def offers(self):
        """Names by which other files can mean something of this one."""
        header = self.path.endswith(".h")
        return ({f.name for f in self.functions if header or not f.static} |
                {name for name, static in self.variables.items() if header or not static})

    def keeps(self):
        """Names that mean something of its own here, whatever other files have."""
        return ({f.name for f in self.functions if f.static} |
                {name for name, static in self.variables.items() if static})


def uses_between(files):
    """{module: {other module: names of it}}; a name that several modules define counts for none."""
    owner = {}
    for source in files:
        for name in source.offers():
            owner.setdefault(name, set()).add(module_of(source.path))
    uses = {}
    for source in files:
        mine = module_of(source.path)
        for name in source.words - source.keeps():
            owners = owner.get(name, ())
            if len(owners) == 1 and mine not in owners:
                uses.setdefault(mine, {}).setdefault(next(iter(owners)), set()).add(name)
    return uses


def includes_between(root, paths):
    """{file: {included file: names}} for headers."""
    headers = {path for path in paths if path.endswith(".h")}
    edges = {}
    for path in headers:
        for name in INCLUDE.findall(COMMENT.sub(" ", read(root, path))):
            target = resolve(root, path, name)
            if target in headers and target != path:
                edges.setdefault(path, {}).setdefault(target, set()).add(name)
    return edges


def between_folders(edges):
    """The same edges between the folders of the files, each by "file -> file" of those that tie them."""
    folders = {}
    for source, targets in edges.items():
        for target in targets:
            ours, theirs = os.path.dirname(source), os.path.dirname(target)
            if ours != theirs:
                folders.setdefault(ours, {}).setdefault(theirs, set()).add("%s -> %s" % (source, target))
    return folders


def circles(edges):
    """Sets of nodes that reach each other, as sorted lists, in order (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            circle = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return sorted(found)
