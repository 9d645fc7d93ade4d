from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, overload

import torch

class BasisRotation(torch.optim.Optimizer):
    max_skipped: int | None
    skipped: int
    def __init__(
        self,
        params: Iterable[torch.Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, torch.Tensor]],
        lr: float | torch.Tensor = ...,
        betas: tuple[float, float] = ...,
        eps: float = ...,
        weight_decay: float = ...,
        row_blocks: int | Sequence[int] = ...,
        rotate: bool = ...,
        delay: float = ...,
        mean_delay: float = ...,
        max_skipped: int | None = ...,
        *,
        interval: int = ...,
        source: Literal["second", "first"] = ...,
        geometry: Literal["bilateral", "unilateral"] = ...,
        refresh: Literal["fixed", "stage-aware", "adaptive"] = ...,
        drift: float = ...,
        refresh_lag: int = ...,
        covariance_beta: float = ...,
        covariance_every: int = ...,
        long_sides: Literal["whole", "thin"] = ...,
        max_dimension: int = ...,
        sketch: int = ...,
        transport: bool = ...,
        look_ahead: float = ...,
        products: Literal["fp32", "bf16"] = ...,
        covariance_products: Literal["fp32", "bf16"] = ...,
        iteration_products: Literal["fp32", "bf16"] = ...,
    ) -> None: ...
    @overload
    def step(self, closure: None = ...) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    def add_param_group(self, param_group: dict[str, Any]) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...
