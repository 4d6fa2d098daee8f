"""Curves over time as SVG, for the reports beside them. A plotting library would be the larger part of a benchmark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, LEFT, TOP = 760, 260, 50, 30
LABEL = 'font-family="sans-serif" font-size="12"'
COLOURS = ("#1f5f99", "#b03030", "#888888", "#2e8b57")

Curve = Sequence[tuple[float, float]]      # seconds, and the amount from then on


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a moment and an amount are on the picture."""

    end: float
    most: float

    def at(self, moment: float, amount: float) -> tuple[float, float]:
        return LEFT + WIDTH * moment / self.end, TOP + HEIGHT * (1 - amount / self.most)

    def steps(self, curve: Curve) -> str:
        """The curve until the right edge; between two points nothing changes."""
        path = "M{:.1f} {:.1f}".format(*self.at(0, 0))
        for moment, amount in curve:
            if moment > self.end:
                return path + f"H{LEFT + WIDTH}"
            x, y = self.at(moment, amount)
            path += f"H{x:.1f}V{y:.1f}"
        return path

    def around(self, title: str, below: str, inside: Sequence[str]) -> str:
        _, floor = self.at(0, 0)
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {TOP + HEIGHT + 40}">',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="{LEFT}" y="18" {LABEL} font-weight="bold">{escape(title)}</text>',
            *inside,
            f'<path d="M{LEFT} {TOP}V{floor:.1f}h{WIDTH}" fill="none" stroke="black"/>',
            f'<text x="{LEFT - 6}" y="{TOP + 4}" {LABEL} text-anchor="end">{self.most:.0f}</text>',
            f'<text x="{LEFT - 6}" y="{floor:.0f}" {LABEL} text-anchor="end">0</text>',
            f'<text x="{LEFT}" y="{floor + 28:.0f}" {LABEL}>{escape(below)}</text>',
            f'<text x="{LEFT + WIDTH}" y="{floor + 28:.0f}" {LABEL} text-anchor="end">{self.end:.0f} s</text>',
            "</svg>", ""])


def used(title: str, curve: Curve, *, most: int, unit: str, bound: float) -> str:
    """What was in use from each moment on; dashed: all there is, and the earliest possible end."""
    frame = Frame(curve[-1][0], most)
    earliest, floor = frame.at(bound, 0)
    return frame.around(title, f"{unit} in use over time", [
        f'<path d="{frame.steps(curve)}V{floor:.1f}Z" fill="#9ec5e8" stroke="#1f5f99"/>',
        f'<path d="M{LEFT} {TOP}h{WIDTH}M{earliest:.1f} {TOP}V{floor:.1f}" stroke="#b03030" stroke-dasharray="5 4"/>',
        f'<text x="{earliest:.0f}" y="{floor + 14:.0f}" {LABEL} text-anchor="end">lower bound {bound:.0f} s</text>',
    ])


def beside(title: str, curves: Mapping[str, Curve], *, most: int, below: str, end: float) -> str:
    """Several curves in one frame, each with its name; what lasts longer than `end` runs out of it."""
    frame, inside = Frame(end, most), list[str]()
    for number, (name, curve) in enumerate(curves.items()):
        colour, line = COLOURS[number % len(COLOURS)], TOP + HEIGHT - 14 - 18 * (len(curves) - number)
        late = f" (until {curve[-1][0]:.0f} s)" if curve[-1][0] > end else f" ({curve[-1][0]:.1f} s)"
        inside += [
            f'<path d="{frame.steps(curve)}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<path d="M{LEFT + WIDTH - 290} {line - 4}h24" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{LEFT + WIDTH - 260}" y="{line}" {LABEL}>{escape(name + late)}</text>',
        ]
    return frame.around(title, below, inside)
