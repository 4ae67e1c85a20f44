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

LINE, ROW = 128, 64 * 2  # bytes
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


def svg(height, title, shapes, style=STYLE, width=760):
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


def requests(columns, rows=range(ROWS)):
    return sum(lines_touched(columns, row) for row in rows)


def straddling_rows(aligned, columns):
    """Three panels of eight rows, side by side."""
    half = ROWS // 2
    panels = [(aligned, f"{aligned} columns", f"{ROWS} rows, {requests(aligned)} requests", ROWS),
              (columns, f"{columns} columns", f"{ROWS} rows, {requests(columns)} requests", ROWS),
              (columns, f"{columns} columns, cluster of two",
               f"{requests(columns, range(half))} of one block, {requests(columns, range(half, ROWS))} of the other", half)]
    shapes, pixels = [], 100 / LINE
    for row in range(ROWS):
        shapes.append(text(52, 69 + 24 * row, f"row {row}", "end", "small"))
    for panel, (width, title, summary, others) in enumerate(panels):
        left = 64 + 236 * panel
        shapes.append(text(left + 100, 20, title))
        for row in range(ROWS):
            style = "one" if row < others else "other"
            shapes += [rectangle(style, left + pixels * first_byte(width, row), 56 + 24 * row, pixels * ROW, 17),
                       text(left + 212, 69 + 24 * row, lines_touched(width, row), style="small")]
        for line in range(3):
            shapes.append(f'<line class="line" x1="{left + 100 * line}" y1="46" x2="{left + 100 * line}" y2="254"/>')
        shapes += [text(left + 50, 42, f"{LINE} bytes", style="small"), text(left + 150, 42, f"{LINE} bytes", style="small"),
                   text(left + 100, 276, summary)]
    shapes.append(text(400, 302, "Both blocks of the cluster receive all rows: each asks for half of them.", style="small"))
    alt = (f"Rows of {ROW} bytes over cache lines: with {aligned} columns eight rows take {requests(aligned)} requests, with "
           f"{columns} columns {requests(columns)}; in a cluster of two each block makes half of them")
    return alt, svg(314, "Rows that straddle cache lines", shapes)


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
    """Three panels of as many rows as clusters, side by side."""
    panels = [(few, Sharing()), (few, share_last_wave(few, clusters, steps)), (many, share_last_wave(many, clusters, steps))]
    pixels = 200 / max(-(-few // clusters), -(-many // clusters))  # of a tile
    bottom = 40 + 30 * clusters
    shapes = [text(70, 48 + 30 * cluster, f"cluster {cluster}", "end", "small") for cluster in range(clusters)]
    times = []
    for panel, (tiles, shared) in enumerate(panels):
        left = 80 + 230 * panel
        work = [work_of(cluster, tiles, clusters, steps, shared) for cluster in range(clusters)]
        end = time_of(work)
        times.append(f"{end:.3g}")
        shapes.append(text(left + 100, 20, f"{tiles} tiles, {how_shared(shared)}"))
        for cluster, pieces in enumerate(work):
            done = pieces[-1][2] if pieces else 0
            if done < end:
                shapes.append(rectangle("idle", left + pixels * done, 32 + 30 * cluster, pixels * (end - done), 24))
            for tile, begin, after in pieces:
                shapes += [rectangle("other" if tile % 2 else "one", left + pixels * begin, 32 + 30 * cluster,
                                     pixels * (after - begin), 24),
                           text(left + pixels * (begin + after) / 2, 48 + 30 * cluster, tile, style="small")]
        shapes += [f'<line class="line" x1="{left + pixels * end:g}" y1="26" x2="{left + pixels * end:g}" y2="{bottom}"/>',
                   text(left, bottom + 18, f"{times[-1]} tiles' time", "start", "small")]
    alt = f"{clusters} clusters: " + "; ".join(f"{tiles} tiles, {how_shared(shared)}, take {time} tiles' time"
                                             for (tiles, shared), time in zip(panels, times))
    return alt, svg(bottom + 30, "Tiles that do not fill a wave, shared along K", shapes)


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
