"""What is hashed is frozen."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paypilot.core.canonical import canonical_json, digest

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(max_codepoint=127)), inner, max_size=4)
    ),
)


def test_the_golden_vector_keeps_its_bytes_and_its_digest() -> None:
    value = {"b": [1, True, None, "é\u2028\x07\n"], "a": {"z": -5, "Z": "\\"}}
    data = canonical_json(value)
    assert data == b'{"a":{"Z":"\\\\","z":-5},"b":[1,true,null,"\xc3\xa9\xe2\x80\xa8\\u0007\\n"]}'
    assert digest(data) == "sha256:cbafe0669e9968692f2e7f298549e8ee21c29f59936b4b22c87469325d580deb"


@given(VALUES)
def test_canonical_bytes_read_back_as_the_same_value_whatever_its_order(value: object) -> None:
    data = canonical_json(value)
    assert json.loads(data) == value
    assert canonical_json(json.loads(data)) == data


@pytest.mark.parametrize("value", [1.5, float("nan"), 2**53, {"é": 1}, {1: 1}, "\ud800", {"a": [object()]}, b"x"])
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"canonical|surrogates"):
        canonical_json(value)
