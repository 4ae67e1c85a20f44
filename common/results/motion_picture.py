"""A picture that moves: the ring between loader and compute.

    <!-- motion: ring -->
    <!-- end -->

The ring has the slots of lesson 05, and its times are those of loads_and_products, with one load that is late. The animation is
CSS inside the SVG, so that it also plays where a page shows the file as an image. A reader who wants less motion sees one moment
of it, with which the animation also begins: a page that shows only its first frame shows both roles at work. Written to docs/figures/ring_in_motion.svg, which follows the reader's light or dark theme.
"""
import math

from climb_table import BadInput
from idea_pictures import rectangle, svg, text
from lesson_pictures import ASKING, STYLE, Sources, loads_and_products, slots_of_05

STEPS, LATE, LATE_BY = 8, 5, 2.2  # which load is late, and by how many steps of compute
LOAD = 2.5  # of all others, in steps of compute
PAUSE = .8  # after the last step
SECONDS = 1.3  # that a step of compute takes here
SHORTEST_WAIT = .05
WIDTH, CENTRE = 400, (200, 150)  # no wider, so that a phone shows the words large enough
SLOT, TOKEN = (72, 44), (62, 40)
SLOTS_AT, LOADER_AT, COMPUTE_AT = (98, 82), (168, 128), (31, 37)  # half axes of the ring, and of the ways beside it


def place(slot, slots, half_axes):
    """Clockwise, from the top; the slots are four."""
    x, y = ((0, -1), (1, 0), (0, 1), (-1, 0))[slot % slots]
    return CENTRE[0] + x * half_axes[0], CENTRE[1] + y * half_axes[1]


class Animation:
    """Keyframes, and what stands still for those who want no motion.

    A track is a list of (time, numbers), between which the numbers go linearly; two points of one time are a jump."""

    def __init__(self, duration, still_at):
        self.duration, self.still_at, self.rules = duration, still_at, []

    def style(self, track, css):
        """The attribute that makes an element follow the track; css makes a declaration of its numbers."""
        track = [(0, track[0][1]), *((time, numbers) for time, numbers in track if time < self.duration), (self.duration, track[-1][1])]
        name, frames, before = f"m{len(self.rules)}", [], -1
        for time, numbers in track:
            percent = max(100 * time / self.duration, before + .01)
            before = percent
            frames.append(f"{min(percent, 100):.2f}% {{ {css(*numbers)} }}")
        self.rules.append(f"@keyframes {name} {{ {' '.join(frames)} }}")
        return f'style="animation: {name} {self.duration * SECONDS:.1f}s linear -{self.still_at * SECONDS:.2f}s infinite; {css(*self.still(track))}"'

    def still(self, track):
        for (begin, first), (end, last) in zip(track, track[1:]):
            if begin <= self.still_at < end:
                part = (self.still_at - begin) / (end - begin)
                return [a + part * (b - a) for a, b in zip(first, last)]
        return track[-1][1]

    def sheet(self):
        return "".join(f"\n    {rule}" for rule in self.rules) + "\n    @media (prefers-reduced-motion: reduce) { * { animation: none !important; } }"


def opacity(value):
    return f"opacity: {value:g}"


def shown(intervals):
    """The track of what is to be seen during the intervals."""
    return [(0, (0,)), *((time, (value,)) for begin, end in intervals
                         for time, value in ((begin, 0), (begin, 1), (end, 1), (end, 0)))]


def filled(intervals, first, last):
    """The track of what is to be seen during the intervals, and grows or shrinks meanwhile."""
    return [(0, (0, first)), *((time, numbers) for begin, end in intervals
                               for time, numbers in ((begin, (0, first)), (begin, (1, first)), (end, (1, last)), (end, (0, last))))]


def waits(times):
    """When the loader waits for a free slot, and compute for a full one."""
    of_loader = [(before[0] + ASKING, asked) for before, (asked, *_) in zip(times, times[1:])]
    of_compute = [(before, begin) for before, (_, _, begin, _) in zip([0, *(end for *_, end in times)], times)]
    return [[wait for wait in all_waits if wait[1] - wait[0] > SHORTEST_WAIT] for all_waits in (of_loader, of_compute)]


def token(animation, style, name, stops, slots, half_axes, waiting):
    """A role that goes from slot to slot. stops: when it arrives, and when it leaves."""
    track = [(time, place(step, slots, half_axes)) for step, stop in enumerate(stops) for time in stop]
    x, y = -TOKEN[0] / 2, -TOKEN[1] / 2
    red = animation.style(shown(waiting), opacity)
    return [f"<g {animation.style(track, lambda x, y: f'transform: translate({x:g}px, {y:g}px)')}>", rectangle(style, x, y, *TOKEN),
            f"<g {red}>", rectangle("marked", x, y, *TOKEN), text(0, 14, "waits"), "</g>", text(0, -2, name), "</g>"]


def arc(slot):
    """From one slot to the next."""
    ends = [math.radians(90 * slot + turn) for turn in ((25, 68) if slot % 2 == 0 else (22, 65))]
    (x1, y1), (x2, y2) = ((CENTRE[0] + SLOTS_AT[0] * math.sin(end), CENTRE[1] - SLOTS_AT[1] * math.cos(end)) for end in ends)
    return f'<path class="line" fill="none" d="M{x1:.1f},{y1:.1f} A{SLOTS_AT[0]},{SLOTS_AT[1]} 0 0 1 {x2:.1f},{y2:.1f}"/>'


def slot(animation, number, slots, visits):
    """A slot: empty, then a load on its way into it, full, being read. visits: its (step, times)."""
    x, y = place(number, slots, SLOTS_AT)
    left, top = x - SLOT[0] / 2, y - SLOT[1] / 2
    shapes = [rectangle("edge", left, top, *SLOT)]

    def grows(value, part):
        return f"transform-origin: {x:g}px {top + SLOT[1]:g}px; opacity: {value:g}; transform: scaleY({part:g})"

    for style, track, css in (("one", filled([(asked, full) for _, (asked, full, _, _) in visits], .1, 1), grows),
                              ("other", shown([(full, begin) for _, (_, full, begin, _) in visits]), opacity),
                              ("third", filled([(begin, end) for _, (_, _, begin, end) in visits], 1, .1), grows)):
        shapes += [f"<g {animation.style(track, css)}>", rectangle(style, left, top, *SLOT), "</g>"]
    shapes.append(text(x, y - 4, f"slot {number}"))
    for step, (asked, _, _, end) in visits:
        shapes += [f"<g {animation.style(shown([(asked, end)]), opacity)}>", text(x, y + 14, f"step {step}"), "</g>"]
    return shapes


def ring(sources):
    slots = slots_of_05(sources)
    if slots != 4:
        raise BadInput(f"the ring is drawn with four slots, and lesson 05 has {slots}")
    times = loads_and_products(slots, [LOAD + LATE_BY * (step == LATE) for step in range(STEPS)])
    animation = Animation(times[-1][3] + PAUSE, still_at=times[2][3] - .3)
    shapes = list(map(arc, range(slots)))
    for number in range(slots):
        shapes += slot(animation, number, slots, [(step, each) for step, each in enumerate(times) if step % slots == number])
    of_loader, of_compute = waits(times)
    # A role leaves a slot when its work there is done, and is at the next one a moment later.
    moment = ASKING / 2
    asks = [(0, times[0][0] + moment), *((before[0] + ASKING, each[0] + moment) for before, each in zip(times, times[1:])),
            (times[-1][0] + ASKING, animation.duration)]
    reads = [(0, times[0][3] - moment), *((before[3] + moment, each[3] - moment) for before, each in zip(times, times[1:])),
             (times[-1][3] + moment, animation.duration)]
    shapes += token(animation, "one", "loader", asks, slots, LOADER_AT, of_loader)
    shapes += token(animation, "third", "compute", reads, slots, COMPUTE_AT, of_compute)
    left, bottom = 14, 2 * CENTRE[1] + 10
    for style, words, width in (("one", "load on its way", 124), ("other", "full", 54), ("third", "being read", 94), ("marked", "waits", 0)):
        shapes += [rectangle(style, left, bottom, 14, 14), text(left + 20, bottom + 12, words, "start")]
        left += width + 8
    alt = f"A ring of {slots} slots in motion: the loader waits when no slot is empty, compute when a load is late"
    return alt, svg(bottom + 24, "The ring between loader and compute", shapes, STYLE + animation.sheet(), WIDTH)


def drawn(line, words, root):
    """(name, alternative text, SVG)"""
    if words != ["ring"]:
        raise BadInput(f"{line}: the one picture that moves is 'ring'")
    return "ring_in_motion", *ring(Sources(root))
