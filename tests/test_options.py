"""Spec strings and options: strict, round-tripping, with errors that name the fix."""

from __future__ import annotations

import pytest
from conftest import ALL

import integrator_zoo as zoo
from integrator_zoo.contract import traced_options
from integrator_zoo.options import Options, declare, option


@pytest.mark.parametrize("name", ALL)
def test_spec_and_repr_round_trip(name):
    rule = zoo.get(name)
    assert rule.spec == name
    assert zoo.get(rule.spec) == rule
    assert hash(zoo.get(name)) == hash(rule)
    assert eval(repr(rule), {type(rule).__name__: type(rule)}) == rule


def test_spec_says_only_what_differs():
    assert zoo.get("ledger:mu=0.9").spec == "ledger"
    assert zoo.get("ledger:mu=0.60").spec == "ledger:mu=0.6"
    assert zoo.get(" ledger : mu = 0.6 ".replace(" ", "")) == zoo.get("ledger:mu=0.6")
    assert zoo.get("ledger:mu=0.6") != zoo.get("ledger")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("ledgr", "Did you mean 'ledger'"),
        ("ledger:nu=1", "Did you mean 'mu'"),
        ("ledger:mu=2", r"mu=2 is outside \[0, 1\)"),
        ("ledger:mu=1", r"outside \[0, 1\)"),
        ("ledger:mu=-0.1", r"outside \[0, 1\)"),
        ("ledger:mu=abc", "mu=abc is not a float"),
        ("ledger:mu=nan", "not a float"),
        ("ledger:mu=", "not an option written key=value"),
        ("ledger:mu", "not an option written key=value"),
        ("ledger:", "not an option written key=value"),
        ("ledger:mu=0.1,mu=0.2", "given twice"),
        ("euler:h=1", "no option of euler 'h'"),
        ("diffrax-adaptive:rtol=0", r"outside \(0, 1\)"),
        ("diffrax-adaptive:max_steps=1.5", "not an int"),
        ("", "no integrator ''"),
    ],
)
def test_bad_specs_say_what_is_wrong(spec, words):
    with pytest.raises(zoo.ZooError, match=words) as caught:
        zoo.get(spec)
    assert "\n" not in str(caught.value)


def test_values_are_checked_in_python_too():
    cls = type(zoo.get("ledger"))
    with pytest.raises(zoo.ZooError, match="outside"):
        cls(mu=1.5)
    with pytest.raises(zoo.ZooError, match="not a float"):
        cls(mu="high")
    with pytest.raises(AttributeError):
        cls().mu = 0.5


class _Kinds(Options):
    flag: bool = option(False, "a flag")
    count: int = option(3, "a count", low=1, high=5)
    word: str = option("a", "a word", choices=("a", "b"))


def test_every_kind_of_option():
    made = declare(_Kinds, "kinds")()
    changed = made.with_options({"flag": "true", "count": "5", "word": "b"})
    assert (changed.flag, changed.count, changed.word) == (True, 5, "b")
    assert changed.spec == "kinds:flag=true,count=5,word=b"
    for bad in ({"flag": "maybe"}, {"count": "6"}, {"count": True}, {"word": "c"}):
        with pytest.raises(zoo.ZooError):
            made.with_options(bad)


def test_names_are_words_joined_by_dashes():
    with pytest.raises(zoo.ZooError, match="not lower-case words"):
        declare(_Kinds, "Bad Name")


def test_an_option_at_a_declared_limit_is_not_traced():
    assert traced_options(zoo.get("ledger:mu=0.6")) == {"mu": 0.6}
    assert traced_options(zoo.get("ledger:mu=0")) == {}
    assert traced_options(zoo.get("euler")) == {}
