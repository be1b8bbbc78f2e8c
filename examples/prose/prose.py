"""Says how long a text is, how hard it is to read, and which words and sentences stand out."""

import re
import statistics
import unicodedata
from collections import Counter
from typing import Annotated, NamedTuple

from toolsrv import Example, Field, ToolError, module, tool

module(namespace="prose", version="1.0.0")

WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*|\d+(?:[.,]\d+)*")
END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W\d_a-zà-öø-ÿ]|[\"'“‘(\[]*\d)|\n\s*\n")
# A full stop after these ends no sentence.
SHORT = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|approx|No|Fig|[A-Z])\.$")
COMMON = frozenset(
    "a about after all also am an and any are as at be because been before being but by can could did do does for from get had has have he her "
    "here him his how i if in into is it its just like me more most my no not now of on one only or other our out over she should so some "
    "such than that the their them then there these they this those through to up us very was we were what when where which who will with "
    "would you your".split()
)


class Frequency(NamedTuple):
    word: str
    count: int


class Readability(NamedTuple):
    words: int
    sentences: int
    paragraphs: int
    characters: Annotated[int, Field(description="Letters, marks and signs as people see them, without white space.")]
    syllables: Annotated[int, Field(description="Estimated, by the rules of English.")]
    words_per_sentence: float
    reading_ease: Annotated[float, Field(description="Flesch: 60 to 70 is plain English, below 30 hard to read.")]
    grade: Annotated[float, Field(description="Flesch-Kincaid: years of school that a reader needs.")]
    reading_minutes: float
    variety: Annotated[float, Field(description="Different words, as a part of all.")]
    frequent: Annotated[list[Frequency], Field(description="The words that are used most, without the commonest of English.")]
    longest: Annotated[list[str], Field(description="The longest sentences: the first to be shortened.")]


@tool(
    title="Check how readable a text is",
    read_only=True,
    open_world=False,
    examples=[
        Example(
            {"text": "The cat sat on the mat. It was a warm day, and the cat was happy.", "top": 1},
            result={
                "words": 16,
                "sentences": 2,
                "paragraphs": 1,
                "characters": 50,
                "syllables": 17,
                "words_per_sentence": 8.0,
                "reading_ease": 108.8,
                "grade": 0.1,
                "reading_minutes": 0.1,
                "variety": 0.75,
                "frequent": [{"word": "cat", "count": 2}],
                "longest": ["It was a warm day, and the cat was happy."],
            },
        )
    ],
)
def readability(
    text: Annotated[str, Field(min_length=1, max_length=200_000)],
    top: Annotated[int, Field(ge=0, le=50)] = 5,
) -> Readability:
    """Counts the words, sentences and syllables of an English text, and says how hard it is to read.

    Args:
        text: The text, without markup.
        top: How many frequent words and long sentences to name.
    """
    text = unicodedata.normalize("NFC", text)
    words = WORD.findall(text)
    if not words:
        raise ToolError("There is no word in the text.", code="no_words")
    sentences = split(text)
    lengths = [len(WORD.findall(sentence)) for sentence in sentences]
    counts = Counter(word.lower() for word in words)
    syllables = sum(n * count_syllables(word) for word, n in counts.items())
    per_sentence, per_word = statistics.fmean(lengths), syllables / len(words)
    telling = [(word, n) for word, n in counts.items() if word not in COMMON and not word[0].isdigit()]
    order = sorted(range(len(sentences)), key=lambda i: -lengths[i])
    return Readability(
        words=len(words),
        sentences=len(sentences),
        paragraphs=sum(1 for p in re.split(r"\n\s*\n", text) if p.strip()),
        characters=sum(1 for c in text if not c.isspace() and not unicodedata.combining(c)),
        syllables=syllables,
        words_per_sentence=round(per_sentence, 1),
        reading_ease=round(206.835 - 1.015 * per_sentence - 84.6 * per_word, 1),
        grade=round(0.39 * per_sentence + 11.8 * per_word - 15.59, 1),
        reading_minutes=round(len(words) / 230, 1),
        variety=round(len(counts) / len(words), 2),
        frequent=[Frequency(word, n) for word, n in sorted(telling, key=lambda item: (-item[1], item[0]))[:top]],
        longest=[sentences[i] for i in order[:top]],
    )


def split(text: str) -> list[str]:
    """Returns the sentences of a text that have a word."""
    sentences: list[list[str]] = []
    for piece in END.split(text):
        piece = " ".join(piece.split())
        if sentences and SHORT.search(sentences[-1][-1][-10:]):
            sentences[-1].append(piece)
        elif piece:
            sentences.append([piece])
    return [sentence for sentence in map(" ".join, sentences) if WORD.search(sentence)]


def count_syllables(word: str) -> int:
    """Estimates the syllables of an English word: its groups of vowels, but for an e that is silent."""
    if word[0].isdigit():
        return 1
    plain = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(c))
    n = len(re.findall(r"[aeiouy]+", plain))
    if re.search(r"[^aeiouyl]e$|[^aeiouytd]ed$|[^aeiouysxzcg]es$|[aeiouy]le$", plain):
        n -= 1
    return max(n, 1)
