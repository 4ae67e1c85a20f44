#!/usr/bin/env python3
"""Holds the pages of the lessons, and the README, short enough to be read: words, tables of results, pictures, sections."""
import re
import unittest
from dataclasses import dataclass, replace
from pathlib import Path

import page_tables

ROOT = Path(__file__).resolve().parents[2]

EXPLAINING = ["Idea", "What changed", "Walk through", "Predict", "Measure"]
SECTIONS = [*EXPLAINING, "Break it", "Exercises", "Deeper"]
# Requests whose tables hold results; not those of words, of the lab and of exercises.
RESULTS = ["ablation", "engines", "hidden", "model", "phases", "profile", "ratios", "schedules", "table", "timeline"]


@dataclass(frozen=True)
class Budget:
    words: int  # of a lesson: of the sections that explain, without code
    other_words: int = 0  # of a lesson's other sections
    tables: int = 1
    rows: int = 8  # of one table
    pictures: int = 2
    as_edited: int = 1750  # words of the whole page, as an editor counts them


README = Budget(words=700, tables=0, rows=0, pictures=1, as_edited=700)  # its picture is the climb
LESSON = Budget(words=1300, other_words=350)
SHORT = replace(LESSON, as_edited=1650)
HALF = replace(LESSON, words=1000, other_words=250, as_edited=1350)  # of a lesson with two pages
SHORTER_HALF = replace(HALF, words=950, as_edited=1250)
LONGER_HALF = replace(HALF, words=1100, as_edited=1650)
# Of all other lessons: SHORT.
BUDGETS = {"README.md": README, "02_tiled/README.md": SHORTER_HALF, "02_tiled/tensor_cores.md": LONGER_HALF, "06_clusters_dsmem/README.md": HALF,
           "06_clusters_dsmem/split_k.md": HALF, "07_streams/README.md": LESSON}
# In 02 the first steps stand one below the other, each with its code and what it should gain.
LEFT_OUT = {"01_naive/README.md": {"What changed"}, "02_tiled/README.md": {"Walk through", "Predict"}}


def seen(text):
    """What a reader sees of a page, code too: no comments, pictures and targets of links."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    return re.sub(r"\]\([^)\s]*\)", "]", text)


def words(text):
    return sum(bool(re.search(r"\w", word)) for word in seen(text).split())


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def words_without_code(text):
    """As an editor counts them, where comments, targets of links and signs between blanks are words, too."""
    return len(without_code(text).split())


def words_by_purpose(text):
    """Of the sections that explain, and of the others."""
    title, *parts = re.split(r"^## ", without_code(text), flags=re.MULTILINE)
    explaining = [words(part) for part in parts if part.startswith(tuple(EXPLAINING))]
    return words(title) + sum(explaining), sum(map(words, parts)) - sum(explaining)


def result_tables(text):
    """How many rows each table of results has."""
    blocks = re.findall(rf"<!-- (?:{'|'.join(RESULTS)}): .*?-->\n(.*?)<!-- end -->", text, flags=re.DOTALL)
    tables = [table for block in blocks for table in re.findall(r"(?:^\|.*\n)+", block, flags=re.MULTILINE)]
    return [table.count("\n") - 2 for table in tables]  # without the header and the line below it


def pictures(page, text):
    """The committed pictures of a page that follow the reader's theme."""
    paths = [page.parent / target for target in re.findall(r"!\[[^\]]*\]\(([^)]*\.svg)\)", text)]
    return [path for path in paths if "prefers-color-scheme: dark" in path.read_text(encoding="utf-8")]


def measured(page):
    text = page.read_text(encoding="utf-8")
    rows = result_tables(text)
    counted = words_by_purpose(text) if page.parent != ROOT else (words(text), 0)
    return Budget(*counted, len(rows), max(rows, default=0), len(pictures(page, text)), words_without_code(text))


def sections(text):
    """The headings of a page, of which "What changed since 02" is "What changed"."""
    text = re.sub(r"^(\s*)```.*?^\s*```$", "", text, flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    return [next((section for section in SECTIONS if title.startswith(section)), title) for title in titles]


class PageBudgets(unittest.TestCase):
    def pages(self):
        pages = [ROOT / "README.md", *sorted(ROOT.glob("0[1-7]_*/*.md"))]
        self.assertEqual(len(pages), 1 + 7 + 2)
        return {str(page.relative_to(ROOT)): page for page in pages}

    def test_comments_pictures_and_targets_of_links_are_no_words_but_cells_and_code_are(self):
        text = ("# A title\n\n<!-- table: x rows=y -->\n| one | 2.0 % |\n| --- | --: |\n<!-- end -->\n![not this](a/b.svg)\n"
                "[a link](../to/some.md#where), `code`\n\n```cpp\nint code;\n```\n\n    indented = code\n")
        self.assertEqual(words(text), len("A title one 2.0 a link, code cpp int code indented code".split()))

    def test_the_longer_count_of_words_has_all_but_blocks_of_code(self):
        text = "# A title\n\n<!-- table: x -->\n[a link](../to/some.md)\n\n```cpp\nint code;\n```\n2 × 3\n"
        self.assertEqual(words_without_code(text), len("# A title <!-- table: x --> [a link](../to/some.md) 2 × 3".split()))

    def test_words_that_explain_are_counted_apart_and_code_is_not(self):
        text = "# A title\n\n## What changed since 02\nfive words of it\n```\ncode\n```\n## Break it\nas told\n## Deeper\nmore\n"
        self.assertEqual(words_by_purpose(text), (2 + 4 + 4, 2 + 2 + 1 + 1))

    def test_tables_of_results_are_counted_with_their_rows(self):
        table = "| a |\n| --- |\n| 1 |\n| 2 |\n"
        text = f"{table}\n<!-- profile: -->\n{table}\nNVIDIA.\n<!-- end -->\n<!-- lab: lesson 02 -->\n{table}<!-- end -->\n"
        self.assertEqual(result_tables(text), [2])

    def test_a_title_may_say_more_than_the_name_of_its_section(self):
        self.assertEqual(sections("## Idea\n## What changed since 02\n### Not this\n```\n## Nor this\n```\n## Other\n"),
                         ["Idea", "What changed", "Other"])

    def test_pages_keep_their_budgets(self):
        for name, page in self.pages().items():
            with self.subTest(name):
                budget, found = BUDGETS.get(name, SHORT), measured(page)
                self.assertLessEqual(found.words, budget.words, "words")
                self.assertLessEqual(found.other_words, budget.other_words, "words of the sections that do not explain")
                self.assertLessEqual(found.as_edited, budget.as_edited, "words of the whole page")
                self.assertLessEqual(found.tables, budget.tables, "tables of results")
                self.assertLessEqual(found.rows, budget.rows, "rows of one table")
                self.assertGreaterEqual(found.pictures, budget.pictures, "pictures that a git host shows in both themes")

    def test_links_of_pages_lead_somewhere(self):
        dead = []
        for page in page_tables.pages():
            text = without_code(page.read_text(encoding="utf-8"))
            targets = re.findall(r"\]\(([^()\s#]+)(?:#[^()\s]*)?\)", re.sub(r"`[^`\n]*`", "", text))
            dead += [f"{page.relative_to(ROOT)}: {target}" for target in targets
                     if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists()]
        self.assertEqual(dead, [])

    def test_pages_of_lessons_have_the_same_sections_in_the_same_order(self):
        for name, page in self.pages().items():
            if name == "README.md":
                continue
            with self.subTest(name):
                wanted = [section for section in SECTIONS if section not in LEFT_OUT.get(name, ())]
                self.assertEqual(sections(page.read_text(encoding="utf-8")), wanted)

    def test_pages_of_lessons_say_where_their_reader_is_before_anything_else(self):
        for name, page in self.pages().items():
            if name == "README.md":
                continue
            with self.subTest(name):
                begin = " ".join(page.read_text(encoding="utf-8").partition("\n\n")[2].partition("\n\n")[0].split())
                self.assertRegex(begin, r"^\*\*Where am I\?\*\* You .*\. After this page you can .*\. Reading and predicting takes about \d+ minutes\.$")

    def test_what_a_page_asks_is_answered_in_a_fold_and_the_first_exercise_follows_the_idea(self):
        for name, page in self.pages().items():
            if name.startswith(("README", "07")):
                continue
            with self.subTest(name):
                parts = dict(part.partition("\n")[::2] for part in
                             re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:])
                if name.endswith("README.md"):
                    self.assertRegex(parts["Idea"], rf"<!-- exercises: {name[:2]}\.a -->\n.*\n<!-- end -->\n+\Z")
                asks = parts["What changed since 01" if "Predict" in LEFT_OUT.get(name, ()) else "Predict"]
                self.assertGreaterEqual(asks.count("<details><summary>Our answer</summary>"), 1)
                self.assertEqual(asks.count("<details>"), asks.count("\n</details>\n"))

    def test_each_page_of_a_lesson_leads_to_the_next(self):
        pages = [page for name, page in self.pages().items() if name != "README.md"]
        for page, following in zip(pages, pages[1:]):
            with self.subTest(str(page.relative_to(ROOT))):
                target = re.search(r"^Next: \[[^\]]*\]\(([^)]*)\)\.$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
                self.assertEqual((page.parent / target[1]).resolve(), following)

    def test_each_exercise_stands_in_the_table_of_one_page(self):
        for folder in sorted(ROOT.glob("0[1-7]_*/exercise")):
            with self.subTest(folder.parent.name):
                there = sorted(f"{folder.parent.name[:2]}.{path.parent.name.partition('_')[0]}" for path in folder.glob("*_*/exercise.md"))
                rows = [row for page in folder.parent.glob("*.md")
                        for row in re.findall(r"^\| (\d\d\.\w) \| (?:write|find|predict) \|", page.read_text(encoding="utf-8"), re.MULTILINE)]
                self.assertEqual(sorted(rows), there)

    def test_concept_pages_are_short_and_end_with_three_mistakes(self):
        lists = {"claims_about_streams", "claims_we_checked", "glossary", "how_to_read_the_errors", "the_wider_world"}
        for page in [*sorted(ROOT.glob("docs/concepts/*.md")), ROOT / "docs/cost_model.md"]:
            with self.subTest(page.name):
                text = page.read_text(encoding="utf-8")
                self.assertLessEqual(words(text), 1800)
                if page.stem in lists:
                    continue
                mistakes = re.search(r"^## Three mistakes that people make\n(.*?)(?=^## |\Z)", text, flags=re.DOTALL | re.MULTILINE)
                self.assertIsNotNone(mistakes)
                self.assertEqual(len(re.findall(r"^(?:- |\d\. )?\*\*", mistakes[1], flags=re.MULTILINE)), 3)
                self.assertEqual(re.findall(r"^## (.*)$", text, flags=re.MULTILINE)[-1], "Three mistakes that people make")

    def test_pages_of_concepts_that_can_be_drawn_begin_with_a_picture(self):
        for name in ("clusters_and_dsmem", "handshake_vocabulary", "mbarriers_and_phases", "memory_and_roofline", "swizzle",
                     "streams_and_copy_engines", "tensor_core_fragments", "tma"):
            with self.subTest(name):
                begin = (ROOT / f"docs/concepts/{name}.md").read_text(encoding="utf-8").split("\n## ")[0]
                self.assertRegex(begin, r"!\[[^\]]*\]\([^)]*\.svg\)")


if __name__ == "__main__":
    unittest.main()
