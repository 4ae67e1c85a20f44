"""Pictures of an idea, drawn from numbers that a page names.

    <!-- picture: straddling_rows aligned=4096 columns=5000 -->
    <!-- picture: stream_k few=7 many=8 clusters=5 steps=80 -->
    <!-- end -->

straddling_rows shows rows of a TMA box, 64 columns of bf16, over the lines of 128 bytes that L2 is asked for: of a matrix whose
rows begin where lines do, of one whose rows do not, and of the latter in a cluster of two blocks. stream_k shows how clusters work
off some tiles of so many K steps: few tiles whole and shared along K, and more tiles shared. They are written to
docs/figures/NAME.svg, as SVG that follows the reader's light or dark theme. Pages that ask for them lie one folder below the root.
"""
from dataclasses import dataclass

from climb_table import BadInput
from page_requests import parse_words

PHONE = 400  # pixels: pictures are so wide, with words of 12 pixels or more, that a phone shows them whole, with words of 11
LINE, ROW = 128, 64 * 2  # bytes
HALF = 64  # of a line
ROWS = 8  # that are shown; rows begin at multiples of 16 bytes, so the ninth begins where the first does
FEWEST_STEPS, PART_STEPS, MOST_PARTS, STORE_STEPS = 4, 12, 16, 8  # kMinSteps and so on of sharing.hpp

STYLE = """
    text { font: 13px sans-serif; fill: #1f2328; }
    .small { font-size: 12px; }
    .line { stroke: #6e7781; stroke-dasharray: 4 3; }
    .one { fill: #ddebf7; stroke: #2f6fab; }
    .other { fill: #fdf1d6; stroke: #a87c1f; }
    .idle { fill: none; stroke: #6e7781; stroke-dasharray: 3 3; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .line { stroke: #9198a1; }
      .one { fill: #173a5e; stroke: #6cb0f0; }
      .other { fill: #4a3a12; stroke: #d9b25b; }
      .idle { stroke: #9198a1; }
    }"""


def svg(height, title, shapes, style=STYLE, width=PHONE):
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
             'role="img" aria-labelledby="title">', f'  <title id="title">{title}</title>', f"  <style>{style}\n  </style>",
             *(f"  {shape}" for shape in shapes), "</svg>"]
    return "\n".join(lines) + "\n"


def text(x, y, words, anchor="middle", style=""):
    style = f' class="{style}"' if style else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{style}>{words}</text>'


def rectangle(style, x, y, width, height):
    return f'<rect class="{style}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3"/>'


def box(style, x, y, width, height):
    """A rectangle with sharp corners."""
    return f'<rect class="{style}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'


def first_byte(columns, row):
    """Of a row of the matrix, within its line."""
    return row * columns * 2 % LINE


def lines_touched(columns, row):
    return (first_byte(columns, row) + ROW - 1) // LINE + 1


def requests_of_row(columns, row, multicast):
    """With multicast TMA asks for lines. Without, it asks for halves of lines, unless the row is a whole line."""
    first = first_byte(columns, row)
    if multicast or first == 0:
        return lines_touched(columns, row)
    return (first + ROW - 1) // HALF - first // HALF + 1


def requests(columns, multicast=False, rows=range(ROWS)):
    return sum(requests_of_row(columns, row, multicast) for row in rows)


def straddling_rows(aligned, columns):
    """Three panels of eight rows, side by side."""
    half = ROWS // 2
    panels = [(aligned, (f"{aligned} columns",), (f"{ROWS} rows,", f"{requests(aligned)} requests"), ROWS),
              (columns, (f"{columns} columns",), (f"{ROWS} rows,", f"{requests(columns)} requests"), ROWS),
              (columns, (f"{columns} columns,", "cluster of two"),
               (f"{requests(columns, True, range(half))} of one block,", f"{requests(columns, True, range(half, ROWS))} of the other"), half)]
    shapes, wide = [], 47  # of a line
    for row in range(ROWS):
        shapes.append(text(42, 83 + 22 * row, f"row {row}", "end", "small"))
    for panel, (width, title, summary, others) in enumerate(panels):
        left = 50 + 118 * panel
        shapes += [text(left + wide, 18 + 17 * i, words) for i, words in enumerate(title)]
        for row in range(ROWS):
            style = "one" if row < others else "other"
            shapes += [rectangle(style, left + wide * first_byte(width, row) / LINE, 70 + 22 * row, wide * ROW / LINE, 16),
                       text(left + 2 * wide + 10, 83 + 22 * row, requests_of_row(width, row, others < ROWS), style="small")]
        for line in range(3):
            shapes.append(f'<line class="line" x1="{left + wide * line}" y1="62" x2="{left + wide * line}" y2="250"/>')
        shapes.append(text(left + wide, 57, f"lines of {LINE} B", style="small"))
        shapes += [text(left + wide, 268 + 16 * i, words, style="small") for i, words in enumerate(summary)]
    shapes += [text(200, 312 + 16 * i, words, style="small") for i, words in enumerate((
        "Both blocks of the cluster receive all rows:", "each asks for half of them."))]
    alt = (f"Rows of {ROW} bytes over cache lines: with {aligned} columns eight rows take {requests(aligned)} requests, with "
           f"{columns} columns {requests(columns)}; a cluster of two takes {requests(columns, True)}, half of them for each block")
    return alt, svg(338, "Rows that straddle cache lines", shapes)


@dataclass(frozen=True)
class Sharing:
    """As in sharing.hpp of the kernels for any shape."""
    tiles: int = 0
    parts: int = 1
    rest: int = 0
    rests: int = 0


def share_last_wave(tiles, clusters, steps):
    """As in sharing.hpp: a test compares them."""
    left, left_over = tiles % clusters, clusters - tiles % clusters
    if left == 0 or steps < 2 * FEWEST_STEPS:
        return Sharing()
    parts = min(clusters // left, max(2, steps // PART_STEPS), MOST_PARTS)
    if parts > 1:
        return Sharing(left, parts)
    rests = -(-left // left_over)
    rest = int((steps - rests * STORE_STEPS) / (rests + 1))
    return Sharing(left, 1, rest, rests) if rest >= FEWEST_STEPS and 5 * rest >= steps else Sharing()


def work_of(cluster, tiles, clusters, steps, shared):
    """What a cluster computes: (tile, when it begins, when it ends), in tiles' times."""
    pieces, now = [], 0

    def compute(tile, count):
        nonlocal now
        pieces.append((tile, now / steps, (now + count) / steps))
        now += count

    in_parts = steps - shared.rest
    part, tile = divmod(cluster, shared.tiles) if shared.tiles else (0, 0)
    if shared.tiles and part < shared.parts:
        compute(tile, in_parts * (part + 1) // shared.parts - in_parts * part // shared.parts)
    elif shared.rests:
        first = (cluster - shared.tiles * shared.parts) * shared.rests
        for rest, tile in enumerate(range(first, min(first + shared.rests, shared.tiles))):
            now += STORE_STEPS * (rest > 0)
            compute(tile, shared.rest)
    for tile in range(shared.tiles + cluster, tiles, clusters):
        compute(tile, steps)
    return pieces


def time_of(work):
    """Until all clusters are done, in tiles' times."""
    return max(pieces[-1][2] for pieces in work if pieces)


def how_shared(shared):
    if shared.tiles == 0:
        return "whole"
    return f"{shared.tiles} of them {'with rests' if shared.rests else 'in equal parts'}"


def stream_k(few, many, clusters, steps):
    """Three panels of as many rows as clusters, below each other."""
    panels = [(few, Sharing()), (few, share_last_wave(few, clusters, steps)), (many, share_last_wave(many, clusters, steps))]
    left, pixels = 80, 300 / max(-(-few // clusters), -(-many // clusters))  # of a tile
    shapes, times, top = [], [], 0
    for tiles, shared in panels:
        work = [work_of(cluster, tiles, clusters, steps, shared) for cluster in range(clusters)]
        end = time_of(work)
        times.append(f"{end:.3g}")
        shapes.append(text(left, top + 18, f"{tiles} tiles, {how_shared(shared)}: {times[-1]} tiles' time", "start"))
        for cluster, pieces in enumerate(work):
            y, done = top + 28 + 26 * cluster, pieces[-1][2] if pieces else 0
            shapes.append(text(70, y + 15, f"cluster {cluster}", "end", "small"))
            if done < end:
                shapes.append(rectangle("idle", left + pixels * done, y, pixels * (end - done), 21))
            for tile, begin, after in pieces:
                shapes += [rectangle("other" if tile % 2 else "one", left + pixels * begin, y, pixels * (after - begin), 21),
                           text(left + pixels * (begin + after) / 2, y + 15, tile, style="small")]
        bottom = top + 28 + 26 * clusters
        shapes.append(f'<line class="line" x1="{left + pixels * end:g}" y1="{top + 24}" x2="{left + pixels * end:g}" y2="{bottom}"/>')
        top = bottom + 12
    alt = f"{clusters} clusters: " + "; ".join(f"{tiles} tiles, {how_shared(shared)}, take {time} tiles' time"
                                             for (tiles, shared), time in zip(panels, times))
    return alt, svg(top, "Tiles that do not fill a wave, shared along K", shapes)


DRAWN = {"straddling_rows": (straddling_rows, ("aligned", "columns")),
         "stream_k": (stream_k, ("few", "many", "clusters", "steps"))}


def drawn(line, words):
    """(name, alternative text, SVG)"""
    name, *words = words or [""]
    if name not in DRAWN:
        raise BadInput(f"{line}: there is no picture '{name}'; there are {', '.join(DRAWN)}")
    draw, keys = DRAWN[name]
    values = parse_words(line, words, keys)[0]
    if set(values) != set(keys) or not all(value.isdigit() and int(value) > 0 for value in values.values()):
        raise BadInput(f"{line}: needs {' and '.join(key + '=NUMBER' for key in keys)}")
    return name, *draw(**{key: int(value) for key, value in values.items()})
