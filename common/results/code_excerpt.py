"""Excerpts of the sources, so that what a page shows is the code that there is.

    <!-- snippet: 05_ws_double_buffer/gemm.cuh load_tiles -->
    <!-- end -->

What lies between the two lines `// [load_tiles]` of the file; the site shows it with Doxygen's \\snippet.
"""
import textwrap

from climb_table import BadInput, read_page


def code_excerpt(line, words, root):
    """The lines that stand for the request `line`, whose words are the file, from the repository's root, and the name."""
    if len(words) != 2:
        raise BadInput(f"{line}: needs a file and a name")
    path, name = words
    parts = read_page(root / path).split(f"// [{name}]\n")
    if len(parts) != 3:
        raise BadInput(f"{line}: {path} needs the line // [{name}] twice")
    # The second marker is indented as the code is.
    code = parts[1].rstrip(" ")
    return ["```cpp", *textwrap.dedent(code).strip("\n").split("\n"), "```"]
