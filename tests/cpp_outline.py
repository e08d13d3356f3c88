# SPDX-License-Identifier: Apache-2.0
"""The classes and functions of a C++ file, as far as counting needs them. It reads tokens, not C++: it knows no types and
no macros, except that a name in capitals with parentheses after it is an annotation. That is enough for this tree; libclang
would have to compile every file."""
import dataclasses
import re

SKIPPED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.S | re.M)
TOKEN = re.compile(r"\n|[A-Za-z_]\w*|\d[\w.']*|->|::|<=|>=|==|!=|&&|\|\||\S")
NO_MEMBER = {"using", "typedef", "friend", "static_assert", "enum", "template", "class", "struct", "union", "static"}
CLASS = "{class}"  # stands for a class in the head of a declaration that goes on after it
PAIRS = {"(": ")", "[": "]", "{": "}"}


@dataclasses.dataclass
class Class:
    name: str
    methods: int = 0
    members: int = 0


@dataclasses.dataclass
class Function:
    name: str
    lines: int


class Token(str):
    line = 0


def tokens(text):
    """The tokens without comments, strings and preprocessor lines."""
    text = re.sub(r"(?<=\d)'(?=\d)", "", text)
    text = SKIPPED.sub(lambda match: '""' if match[0][0] in "R\"'" else "\n" * match[0].count("\n"), text)
    found, line = [], 1
    for match in TOKEN.finditer(text):
        if match[0] == "\n":
            line += 1
        else:
            found.append(Token(match[0]))
            found[-1].line = line
    return found


def without_annotations(head):
    """Drops what says nothing about the kind of a declaration: attributes, annotations, and template arguments."""
    kept, at, angles = [], 0, 0
    while at < len(head):
        token = head[at]
        annotates = re.fullmatch(r"[A-Z][A-Z_]+|alignas|noexcept|explicit|decltype|requires", token) and (at > 0 or token == "alignas")
        if annotates and at + 1 < len(head) and head[at + 1] == "(" or token == "[" and head[at + 1:at + 2] == ["["]:
            at = closing(head, at + (token != "[")) + 1
            continue
        if token == "<" and at > 0 and re.match(r"[A-Za-z_]", head[at - 1]) and head[at - 1] != "operator":
            angles += 1
        elif token == ">" and angles > 0:
            angles -= 1
        elif angles == 0:
            kept.append(token)
        at += 1
    return kept[1:] if kept[:1] == ["template"] else kept


def closing(head, at):
    """The place of the bracket that closes the one at `at`."""
    depth = 0
    for place in range(at, len(head)):
        depth += (head[place] in PAIRS) - (head[place] in PAIRS.values())
        if depth == 0:
            return place
    return len(head) - 1


def is_function(head):
    if "(" not in head[1:] or head[head.index("(") + 1:][:1] == ["*"]:
        return False
    before = head[:head.index("(")]
    return "=" not in before or "operator" in before


def begins_body(head):
    """Returns whether a brace after this head begins a function's body, not the initial value of one of its members."""
    if not is_function(head):
        return False
    after = head[closing(head, head.index("(")) + 1:]
    return ":" not in after or after[-1] in (")", "}")


class Outline:
    def __init__(self, text):
        self.classes, self.functions = [], []
        self._tokens, self._at = tokens(text), 0
        while self._at < len(self._tokens):
            self._scope(None)

    def _scope(self, inside):
        """Reads declarations up to the closing brace. `inside`: their class, if it is one."""
        head = []
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token == "{":
                head = self._braces(head, inside)
            elif token in PAIRS:
                head += self._balanced()
            else:
                self._at += 1
                if token == "}":
                    return
                if token == ";":
                    self._declare(head, inside)
                    head = []
                elif token == ":" and head and head[-1] in ("public", "protected", "private"):
                    head = []
                else:
                    head.append(token)

    def _balanced(self):
        begin, depth = self._at, 0
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            depth += (token in PAIRS) - (token in PAIRS.values())
            self._at += 1
            if depth == 0:
                break
        return self._tokens[begin:self._at]

    def _braces(self, head, inside):
        """Reads what a brace begins. Returns the head of the declaration that goes on after it."""
        plain = without_annotations(head)
        if plain[:1] == ["namespace"] or plain[:2] == ["inline", "namespace"] or plain[:1] == ["extern"]:
            self._at += 1
            self._scope(None)
            return []
        if plain[:1] and plain[0] in ("class", "struct", "union") and "(" not in plain and "=" not in plain:
            self._at += 1
            names = plain[1:plain.index(":")] if ":" in plain else plain[1:]
            names = [name for name in names if name != "final"]
            found = Class(names[-1] if names else "")
            self.classes.append(found)
            self._scope(found)
            return [CLASS]
        body = self._balanced()
        if begins_body(plain):
            name = plain[plain.index("(") - 1]
            self.functions.append(Function(name, body[-1].line - name.line + 1))
            self._declare(head, inside)
            return []
        return head + body[:1] + body[-1:]

    @staticmethod
    def _declare(head, inside):
        if inside is None or not head:
            return
        if head[0] == CLASS:
            inside.members += len(head) > 1  # struct { … } name;
            return
        plain = without_annotations(head)
        if is_function(plain):
            inside.methods += "friend" not in plain and plain[-2:] not in (["=", "default"], ["=", "delete"])
        elif plain and plain[0] not in NO_MEMBER:
            inside.members += 1 + plain.count(",")
