"""Excerpts of the sources, so that what a page shows is the code that there is.

    <!-- snippet: 05_ws_double_buffer/gemm.cuh load_tiles -->
    <!-- snippet: common/device/wgmma_core.cuh start kN=128 -->
    <!-- end -->

kN=128 shows, of lines that begin with `if constexpr (kN == NUMBER)`, what holds for this number. What lies between the two lines `// [load_tiles]` of the file; the site shows it with Doxygen's \\snippet.
"""
import re
import textwrap

from climb_table import BadInput, read_page


def one_case(line, code, name, number):
    """The code of one value of a constant, without the condition."""
    case = re.compile(rf"^( *)if constexpr \({name} == (\d+)\) ", re.MULTILINE)
    if number not in {found[1] for found in case.findall(code)}:
        raise BadInput(f"{line}: there is no line 'if constexpr ({name} == {number})'")
    lines = [code_line for code_line in code.split("\n") if (found := case.match(code_line)) is None or found[2] == number]
    return case.sub(r"\1", "\n".join(lines))


def code_excerpt(line, words, root):
    """The lines that stand for the request `line`, whose words are the file, from the repository's root, and the name."""
    if len(words) not in (2, 3) or len(words) == 3 and not re.fullmatch(r"\w+=\d+", words[2]):
        raise BadInput(f"{line}: needs a file and a name, and perhaps NAME=NUMBER")
    path, name = words[:2]
    parts = read_page(root / path).split(f"// [{name}]\n")
    if len(parts) != 3:
        raise BadInput(f"{line}: {path} needs the line // [{name}] twice")
    # The second marker is indented as the code is.
    code = one_case(line, parts[1].rstrip(" "), *words[2].split("=")) if len(words) == 3 else parts[1].rstrip(" ")
    return ["```cpp", *textwrap.dedent(code).strip("\n").split("\n"), "```"]
