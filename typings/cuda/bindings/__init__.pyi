# An optional package: the checker must not depend on whether it is installed.
from typing import Any

def __getattr__(name: str) -> Any: ...
