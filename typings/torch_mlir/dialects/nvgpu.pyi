# The bindings ship no type information: everything in them is of unknown type to the checker.
from typing import Any

def __getattr__(name: str) -> Any: ...
