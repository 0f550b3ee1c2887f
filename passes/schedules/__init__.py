"""Schedule families, in the order in which `fusion-schedule` asks them; the last one takes what is left."""

from .family import Choice, Family, Launch, Parameters, Problem
from .generic import Generic
from .inner_reduction import InnerReduction
from .outer_reduction import OuterReduction
from .pointwise import Pointwise
from .row_and_column import RowAndColumn
from .transpose import Transpose

FAMILIES: tuple[Family, ...] = (Transpose(), Pointwise(), InnerReduction(), RowAndColumn(), OuterReduction(), Generic())

__all__ = ["FAMILIES", "Choice", "Family", "Launch", "Parameters", "Problem", "family"]


def family(name: str) -> Family:
    """The family of this name; KeyError if there is none."""
    return {known.name: known for known in FAMILIES}[name]
