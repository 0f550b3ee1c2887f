"""IR to IR: one pass a file, and `PASSES`, the registry, in the order in which the pipeline runs them."""

from .fusion_batch import FusionBatch
from .fusion_check_indices import FusionCheckIndices
from .fusion_consecutive import FusionConsecutive
from .fusion_dataflow import FusionDataflow
from .fusion_expand_copies import FusionExpandCopies
from .fusion_expand_math import FusionExpandMath
from .fusion_host_to_llvm import FusionHostToLlvm
from .fusion_import_extern import FusionImportExtern
from .fusion_none import FusionNone
from .fusion_normalize import FusionNormalize
from .fusion_plan_memory import FusionPlanMemory
from .fusion_report import FusionReport
from .fusion_schedule import FusionSchedule
from .fusion_segment import FusionSegment
from .fusion_select_library import FusionSelectLibrary
from .fusion_specialize_sizes import FusionSpecializeSizes
from .fusion_split_reductions import FusionSplitReductions
from .fusion_to_cpu import FusionToCpu
from .fusion_to_gpu import FusionToGpu
from .pass_base import Pass

_ORDERED: tuple[type[Pass], ...] = (
    FusionImportExtern,
    FusionCheckIndices,
    FusionSelectLibrary,
    FusionNormalize,
    FusionNone,
    FusionConsecutive,
    FusionDataflow,
    FusionSpecializeSizes,
    FusionSplitReductions,
    FusionSegment,
    FusionSchedule,
    FusionBatch,
    FusionPlanMemory,
    FusionToGpu,
    FusionToCpu,
    FusionExpandCopies,
    FusionExpandMath,
    FusionHostToLlvm,
    FusionReport,
)

PASSES = {cls.name: cls for cls in _ORDERED}
