"""A multiprocessor and the memories that it reads, with the parts in colour that a lesson uses.

    <!-- sm: 03 -->
    <!-- end -->

Written to docs/figures/sm_03.svg, as SVG that follows the reader's light or dark theme. Pages that ask for it lie one folder below
the root.
"""
from climb_table import BadInput
from idea_pictures import rectangle, svg, text

STYLE = """
    text { font: 13px sans-serif; fill: #1f2328; }
    .small { font-size: 12px; }
    .part { fill: none; stroke: #8c959f; }
    .frame { fill: none; stroke: #6e7781; stroke-dasharray: 4 3; }
    .copy { fill: #fdf1d6; stroke: #a87c1f; }
    .multiply { fill: #dcf2e1; stroke: #2a8c4a; }
    .way { fill: none; stroke: #1f2328; stroke-width: 1.6; }
    .head { fill: #1f2328; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .part { stroke: #6e7781; }
      .frame { stroke: #9198a1; }
      .copy { fill: #4a3a12; stroke: #d9b25b; }
      .multiply { fill: #153d22; stroke: #57c27c; }
      .way { stroke: #e6edf3; }
      .head { fill: #e6edf3; }
    }"""
HEAD = ('<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
        '<path class="head" d="M0,0 L8,4 L0,8 z"/></marker></defs>')

# What holds or multiplies data: style, x, y, width, height, lines.
PARTS = {
    "memory": ("copy", 4, 312, 392, 32, ["the GPU's memory"]),
    "L2": ("copy", 4, 242, 392, 46, ["L2 cache, shared by all SMs"]),
    "TMA": ("copy", 10, 146, 42, 50, ["TMA"]),
    "shared memory": ("copy", 70, 128, 112, 68, ["shared memory", "up to 227 KB"]),
    "registers": ("copy", 197, 128, 86, 68, ["registers", "65,536 of", "4 bytes"]),
    "tensor cores": ("multiply", 64, 44, 118, 48, ["tensor cores", "4096 flops a clock"]),
    "CUDA cores": ("multiply", 197, 44, 86, 60, ["CUDA cores", "256 flops", "a clock"]),
    "another SM": ("copy", 308, 128, 84, 68, ["shared", "memory"]),
}
# Ways of data, as points; "both": in both directions.
FROM_MEMORY = [(350, 312), (350, 288)]
TO_REGISTERS, TO_SHARED = [(238, 242), (238, 196)], [(127, 242), (127, 196)]
THROUGH_REGISTERS, TO_CUDA_CORES = [(197, 162), (182, 162)], [(254, 128), (254, 104)]
TO_TENSOR_CORES, SUMS = [(110, 128), (110, 92)], [(176, 92), (206, 128)]
TO_TMA, BY_TMA = [(31, 242), (31, 196), "both"], [(52, 170), (70, 170), "both"]
TO_ANOTHER_SM = [(150, 128), (150, 116), (350, 116), (350, 128), "both"]
TENSOR = [TO_TENSOR_CORES, SUMS]

# Of each lesson: the parts that it uses, and the ways that its data takes.
USED = {
    "01": (["memory", "L2", "registers", "CUDA cores"], [FROM_MEMORY, TO_REGISTERS, TO_CUDA_CORES]),
    "02": (["memory", "L2", "registers", "shared memory", "tensor cores"], [FROM_MEMORY, TO_REGISTERS, THROUGH_REGISTERS, *TENSOR]),
    "03": (["memory", "L2", "shared memory", "tensor cores", "registers"], [FROM_MEMORY, TO_SHARED, *TENSOR]),
    "04": (["memory", "L2", "TMA", "shared memory", "tensor cores", "registers"],
           [FROM_MEMORY, TO_TMA, BY_TMA, *TENSOR, THROUGH_REGISTERS]),
    "06": (["memory", "L2", "TMA", "shared memory", "tensor cores", "registers", "another SM"],
           [FROM_MEMORY, TO_TMA, BY_TMA, *TENSOR, THROUGH_REGISTERS, TO_ANOTHER_SM]),
}


def way(points):
    both = points[-1] == "both"
    points = " ".join(f"{x},{y}" for x, y in (points[:-1] if both else points))
    start = ' marker-start="url(#head)"' if both else ""
    return f'<polyline class="way" points="{points}"{start} marker-end="url(#head)"/>'


def drawn(line, words):
    """(name, alternative text, SVG)"""
    if len(words) != 1 or words[0] not in USED:
        raise BadInput(f"{line}: needs one of the lessons {', '.join(USED)}")
    used, ways = USED[words[0]]
    shapes = [HEAD, rectangle("frame", 4, 14, 284, 200), text(14, 34, "an SM, one of 132 on an H200", "start", "small"),
              rectangle("frame", 302, 14, 95, 200), text(350, 34, "another SM", style="small")]
    for name, (style, x, y, width, height, lines) in PARTS.items():
        shapes.append(rectangle(style if name in used else "part", x, y, width, height))
        first = y + height / 2 + 5 - 8 * (len(lines) - 1)
        shapes += [text(x + width / 2, first + 17 * i, words_of, style="small" if i else "") for i, words_of in enumerate(lines)]
    shapes += map(way, ways)
    alt = f"An SM and the memories: lesson {words[0]} uses {', '.join(used[:-1])} and {used[-1]}"
    return f"sm_{words[0]}", alt, svg(352, "A multiprocessor and the memories", shapes, STYLE)
