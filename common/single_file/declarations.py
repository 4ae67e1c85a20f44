"""Cuts a source into its top-level declarations, for make_single_file.py.

    read_source(path, text)    -> Source, with its Declarations
    members_of(declaration)    -> Members of a struct or class

It knows only as much of C++ as that takes: comments, strings, brackets and namespaces. #if and its like are decided as for
sm_90a. What it cannot read is an error.
"""
import dataclasses
import re

# What the files are compiled for. Macros of the repository's other builds (LADDER_...) are not defined.
DEFINED = {"__CUDA_ARCH__": 900, "__CUDA_ARCH_FEAT_SM90_ALL": 1, "__CUDACC__": 1, "CUDART_VERSION": 12050}


class Unreadable(Exception):
    """Which line of which source cannot be read, and why."""


TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<directive>(?<![^\n])[ \t]*\#(?:[^\n\\]|\\\n|\\.)*)
      | (?P<string>R"\((?:.*?)\)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<number>\.?\d(?:'?[\w.])*)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<newline>\n)
      | (?P<space>[ \t]+)
      | (?P<sign>::|->|.)""",
    re.VERBOSE | re.DOTALL)


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    begin: int
    end: int


def tokens_of(text):
    return [Token(match.lastgroup, match.group(), match.start(), match.end()) for match in TOKEN.finditer(text)]


@dataclasses.dataclass
class Declaration:
    """A whole declaration or macro at the top level of a file or a namespace, with the comment before it."""
    namespace: str  # "ladder", or "" outside of all
    text: str
    names: list  # that it declares
    uses: list  # (qualifier or None, name) of all that it names
    is_macro: bool
    stands_apart: bool  # after an empty line

    @property
    def opens(self):
        """The namespace X of `using namespace X`."""
        return self.names[0].removeprefix("namespace ") if self.names[0].startswith("namespace ") else None


@dataclasses.dataclass
class Member:
    """A whole member of a struct, with the comment before it."""
    begin: int  # within the declaration's text
    end: int
    names: list  # that it declares
    takes_no_room: bool  # a function or a static constant, which may be left out
    arity: tuple | None  # of a function: the fewest and the most arguments


@dataclasses.dataclass
class Source:
    """A file of the repository, read."""
    path: str
    about: str  # the words of its @file comment
    system_includes: list
    includes: list  # paths, from the root
    declarations: list


def without_conditionals(text, path):
    """The text as the preprocessor leaves it for sm_90a; only #if and its like are obeyed."""
    lines, states = [], []  # of each open #if: (is this branch taken, was any)
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", line)
        if not match:
            if all(taken for taken, _ in states):
                lines.append(line)
            continue
        word, condition = match.group(1), match.group(2).split("//")[0].strip()
        if word in ("ifdef", "ifndef"):
            condition = ("!" if word == "ifndef" else "") + f"defined({condition})"
        if word == "endif":
            states.pop()
        elif word.startswith("if"):
            reached = all(taken for taken, _ in states)
            holds = reached and condition_holds(condition, f"{path}:{number}")
            states.append((holds, holds or not reached))
        else:
            _, was_any = states.pop()
            holds = not was_any and (word == "else" or condition_holds(condition, f"{path}:{number}"))
            states.append((holds, was_any or holds))
    return "\n".join(lines)


def condition_holds(condition, where):
    words = re.sub(r"defined\s*\(?\s*(\w+)\s*\)?", lambda match: str(int(match.group(1) in DEFINED)), condition)
    words = re.sub(r"\b(?!LADDER_)[A-Za-z_]\w*\b", lambda match: str(DEFINED.get(match.group(), match.group())), words)
    words = re.sub(r"\bLADDER_\w+\b", "0", words)
    words = words.replace("&&", " and ").replace("||", " or ")
    words = re.sub(r"!(?!=)", " not ", words)
    if not re.fullmatch(r"(?:and|or|not|[\d\s()<>=!])+", words):
        raise Unreadable(f"{where}: a condition that only the compiler can judge: {condition}")
    return bool(eval(words, {"__builtins__": {}}))  # pylint: disable=eval-used


def expanded(text):
    """The text without macros that only rename: `#define A(...) b(__VA_ARGS__)`. And without marks of excerpts."""
    rename = re.compile(r"^#define (\w+)\(\.\.\.\) ([\w ]+)\(__VA_ARGS__\)\n", re.MULTILINE)
    for name, meaning in rename.findall(text):
        text = re.sub(rf"^#(?:define|undef) {name}\b.*\n", "", text, flags=re.MULTILINE)
        text = re.sub(rf"\b{name}\(", f"{meaning}(", text)
    return re.sub(r"^[ \t]*// \[\w+\]\n", "", text, flags=re.MULTILINE)


def read_source(path, text):
    text = expanded(without_conditionals(text, path))
    about = re.match(r"/// @file\n((?:///.*\n)*)", text)
    words = ""
    if about:
        words = re.sub(r"^/// ?", "", about.group(1), flags=re.MULTILINE)
        text = text[about.end():]
    source = Source(path, words, [], [], [])
    tokens = tokens_of(text)
    namespaces, i = [], 0
    begin = None  # of the comments that belong to what comes next
    while i < len(tokens):
        token = tokens[i]
        if token.kind in ("space", "newline"):
            i += 1
        elif token.kind == "comment":
            begin = token.begin if begin is None else begin
            i += 1
        elif token.kind == "directive":
            read_directive(source, "::".join(namespaces), text, token.begin if begin is None else begin, token)
            begin, i = None, i + 1
        elif token.text == "namespace":
            opening = next(j for j in range(i, len(tokens)) if tokens[j].text == "{")
            namespaces.append("".join(part.text for part in tokens[i + 1:opening] if part.kind != "space"))
            begin, i = None, opening + 1
        elif token.text == "}":
            namespaces.pop()
            i += 1
            while i < len(tokens) and tokens[i].kind in ("space", "comment"):  # "// namespace ..."
                i += 1
            begin = None
        else:
            line = text[token.begin:].split("\n")[0]
            after = end_of_declaration(tokens, i)
            if after is None:
                raise Unreadable(f"{path}: where does this end: {line}")
            start = token.begin if begin is None else begin
            code = code_of(tokens[i:after])
            names = names_of(code)
            if code[0].text == "static_assert" and source.declarations:
                names = source.declarations[-1].names
            if not names:
                raise Unreadable(f"{path}: what does this declare: {line}")
            source.declarations.append(
                Declaration("::".join(namespaces), text[start:tokens[after - 1].end], names, uses_of(code), False,
                            stands_apart(text, start)))
            begin, i = None, after
    return source


def members_of(declaration):
    """The members of a struct or class, in order; of anything else, none."""
    tokens = tokens_of(declaration.text)
    code = code_of(tokens)
    i = 0
    while code[i].text == "template":
        i = closing(code, i + 1) + 1
    if code[i].text not in ("struct", "class"):
        return []
    opening = next((token.begin for token in code[i:] if token.text == "{"), None)
    if opening is None:
        return []
    members, begin = [], None
    i = next(j for j, token in enumerate(tokens) if token.begin == opening) + 1
    while tokens[i].text != "}":
        token = tokens[i]
        if token.kind in ("space", "newline"):
            i += 1
        elif token.kind == "comment":
            begin = token.begin if begin is None else begin
            i += 1
        elif token.text in ("public", "private", "protected"):
            begin, i = None, i + 2
        else:
            after = end_of_declaration(tokens, i)
            code = code_of(tokens[i:after])
            words = [part.text for part in code]
            names = names_of(code)
            other = {"struct", "class", "enum", "using", "static_assert", "operator", "="}
            is_function = "(" in words and other.isdisjoint(words[:words.index("(")])
            is_constant = words[:2] == ["static", "constexpr"]
            members.append(Member(token.begin if begin is None else begin, tokens[after - 1].end, names,
                                  bool(names) and (is_function and names[0] not in declaration.names or is_constant),
                                  arity_of(code, words.index("(")) if is_function else None))
            begin, i = None, after
    return members


def arity_of(code, opening):
    """The fewest and the most arguments that a function takes, whose parameters begin at code[opening]."""
    parameters = arguments_of(code, opening)
    optional = sum(any(token.text == "=" for token in parameter) for parameter in parameters)
    return len(parameters) - optional, len(parameters)


def arguments_of(code, opening):
    """The tokens of each argument or parameter between the bracket at code[opening] and the one that closes it."""
    arguments, depth = [[]], 0
    for token in code[opening + 1:closing(code, opening)]:
        depth += (token.text in ("(", "{", "[", "<")) - (token.text in (")", "}", "]", ">"))
        if token.text == "," and depth == 0:
            arguments.append([])
        else:
            arguments[-1].append(token)
    return arguments if arguments[0] else []


def code_of(tokens):
    return [token for token in tokens if token.kind not in ("space", "newline", "comment")]


def stands_apart(text, position):
    return text[:position].rstrip(" ").endswith("\n\n")


def read_directive(source, namespace, text, begin, token):
    words = token.text.strip()
    include = re.match(r'#\s*include\s*([<"])([^>"]+)[>"]', words)
    macro = re.match(r"#\s*(?:define|undef)\s+(\w+)", words)
    if include:
        (source.system_includes if include.group(1) == "<" else source.includes).append(include.group(2))
    elif macro:
        code = code_of(tokens_of(re.sub(r"^\s*#\s*\w+", "", token.text).replace("\\\n", "\n")))
        source.declarations.append(
            Declaration(namespace, text[begin:token.end], [macro.group(1)], uses_of(code), True,
                        stands_apart(text, begin)))
    elif words != "#pragma once":
        raise Unreadable(f"{source.path}: {words}: not known outside of a function")


def end_of_declaration(tokens, begin):
    """The index after the declaration: behind its `;`, or the `}` of a function, and a comment in the same line."""
    depth = 0
    for i in range(begin, len(tokens)):
        sign = tokens[i].text if tokens[i].kind == "sign" else ""
        depth += (sign in ("(", "{", "[")) - (sign in (")", "}", "]"))
        if depth == 0 and (sign == ";" or (sign == "}" and following(tokens, i) not in list(";(),.={["))):
            end = i + 1
            while end < len(tokens) and tokens[end].kind in ("space", "comment"):
                end += 1
            return end
    return None


def following(tokens, i):
    return next((token.text for token in tokens[i + 1:] if token.kind not in ("space", "newline", "comment")), "")


def closing(code, i):
    """The index of the bracket that closes the one at i; angle brackets only if that is one."""
    pairs = {"(": ")", "{": "}", "[": "]", "<": ">"}
    opening, depth = code[i].text, 0
    for j in range(i, len(code)):
        depth += (code[j].text == opening) - (code[j].text == pairs[opening])
        if depth == 0:
            return j
    return len(code) - 1


def names_of(code):
    """What a declaration declares: code is its tokens."""
    i = 0
    while code[i].text == "template":
        i = closing(code, i + 1) + 1
    words = [token.text for token in code]
    if words[i:i + 2] == ["using", "namespace"]:
        return ["namespace " + "".join(words[i + 2:-1])]
    if words[i] == "using":
        return [words[i + 1] if "=" in words else words[-2]]
    if words[i] in ("struct", "class", "enum"):
        while words[i] in ("struct", "class", "enum", "alignas", "(", "["):
            i = closing(code, i) + 1 if words[i] in "([" else i + 1
        return [words[i]]
    names = []
    while i < len(code):
        if words[i:i + 2] == ["[", "["]:
            i = closing(code, i) + 1
        elif words[i] == "(" and words[i - 1] in ("__launch_bounds__", "alignas", "decltype", "__align__"):
            i = closing(code, i) + 1
        elif words[i] == "(" and not names:
            return [words[i - 1]] if code[i - 1].kind == "word" else []
        elif words[i] in ("=", "{", ";", "[", ",", "("):
            # Of variables there may be several: `a = 1, b{2}`.
            if words[i] != "(" and code[i - 1].kind == "word" and (not names or words[i - 2] == ","):
                names.append(words[i - 1])
            i = closing(code, i) + 1 if words[i] in "({[" else i + 1
        else:
            i += 1
    return names


def uses_of(code):
    """Names that may mean declarations at the top level, each with what stands before its `::`."""
    uses = []
    for i, token in enumerate(code):
        before = code[i - 1].text if i else ""
        if token.kind != "word" or before in (".", "->"):
            continue
        uses.append((code[i - 2].text if before == "::" and i > 1 and code[i - 2].kind == "word" else None, token.text))
    return list(dict.fromkeys(uses))
