"""The table of backends."""

from __future__ import annotations

import pytest

from logger_service.backends import registry
from logger_service.backends.base import RECORD_KINDS
from logger_service.contract.errors import Reason, ServiceError


@pytest.mark.parametrize("type", registry.names())
def test_each_backend_says_its_name_and_what_it_can_do(type: str):
    backend = registry.backend_class(type)
    assert backend.type == type
    assert tuple(capability.kind for capability in backend.capabilities()) == RECORD_KINDS


def test_an_unknown_backend_is_refused_with_what_there_is():
    with pytest.raises(ServiceError, match=r"'nope'.*csv") as refused:
        registry.backend_class("nope")
    assert (refused.value.reason, refused.value.field) == (Reason.UNKNOWN_BACKEND, "backends")


def test_an_unknown_option_is_refused_by_name():
    assert registry.check_options("csv", {}) == {}
    with pytest.raises(ServiceError, match="csv has no option 'fast'") as refused:
        registry.check_options("csv", {"fast": True})
    assert (refused.value.reason, refused.value.field) == (Reason.INVALID_OPTION, "backends")


def test_backends_are_imported_on_use(run_python):
    code = """if True:
        import sys
        import logger_service.backends.registry
        print([name for name in ("logger_service.backends.csv", "pyarrow") if name in sys.modules])
    """
    assert run_python(code).stdout == "[]\n"
