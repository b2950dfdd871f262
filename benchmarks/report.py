"""The table of results: ours beside TorchRL's, with the ratio, the floor and the aim."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One line of the table. Numbers are in the unit that is given."""

    what: str
    unit: str
    ours: float
    theirs: float | None = None
    """TorchRL's; None: it has no counterpart."""
    versus: str = ""
    """Which of TorchRL's loggers."""
    floor: float | None = None
    """The least ratio; where there is nothing to compare with, or `absolute`: a bound of the figure itself."""
    aim: float | None = None
    """What is aimed at, likewise."""
    more_is_better: bool = False
    """Of `ours`. A ratio is always better when greater."""
    absolute: bool = False
    """Whether floor and aim are figures although there is something to compare with."""

    @property
    def ratio(self) -> float | None:
        """How many times better ours is."""
        if self.theirs is None:
            return None
        return self.ours / self.theirs if self.more_is_better else self.theirs / self.ours

    @property
    def verdict(self) -> str:
        """`aim` or `floor`, whichever is reached; `BELOW` the floor; empty: nothing is demanded."""
        if self.floor is None or self.aim is None:
            return ""
        return "aim" if self._reaches(self.aim) else "floor" if self._reaches(self.floor) else "BELOW"

    def _reaches(self, bound: float) -> bool:
        if self.ratio is not None and not self.absolute:
            return self.ratio >= bound
        return self.ours >= bound if self.more_is_better else self.ours <= bound

    def cells(self) -> list[str]:
        """The columns of its line."""
        by_ratio = self.ratio is not None and not self.absolute
        bounds = [
            "" if bound is None else f"{_number(bound)} x" if by_ratio else f"{_number(bound)} {self.unit}"
            for bound in (self.floor, self.aim)
        ]
        theirs = "" if self.theirs is None else f"{_number(self.theirs)} {self.unit} ({self.versus})"
        ratio = "" if self.ratio is None else f"{_number(self.ratio)} x"
        return [self.what, f"{_number(self.ours)} {self.unit}", theirs, ratio, *bounds, self.verdict]


def table(results: list[Result]) -> str:
    """Returns the results as a Markdown table."""
    lines = [["what", "ours", "TorchRL", "ratio", "floor", "aim", "reached"], *(result.cells() for result in results)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines
    )


def _number(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.2f} M"
    if value >= 1e4:
        return f"{value / 1e3:.0f} k"
    return f"{value:.3g}"
