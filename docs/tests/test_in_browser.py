#!/usr/bin/env python3
"""Opens the built site in headless Chromium, as a reader would: `ctest --preset docs -R browser`.

    test_in_browser.py HTML_FOLDER [--driver CHROMEDRIVER] [CLASS]      of the tests those of one class

Written pages, on a wide screen and a phone, light and dark: nothing on the console, pictures have a size, nothing makes the
page wider than a phone. Search, diffs and links to code lead where they say.
"""
import contextlib
import re
from pathlib import Path

import site_in_browser
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from site_in_browser import SiteInBrowser

WIDE, PHONE, ON_ITS_SIDE = (1440, 900), (390, 844), (844, 390)

# Doxygen's pages of files, types and members.
REFERENCE = re.compile(r"_8(cuh|hpp|cu|cpp)(_source)?\.html$|-members\.html$|^(struct|class|union|dir_|functions|namespacemembers)")

# The rows of a diff: what it says of each numbered line, by the address that the number leads to.
DIFF_LINES = """
const lines = {};
for (const row of document.querySelectorAll('.diff tr:not(.skipped)'))
  for (const number of row.querySelectorAll('td.number a'))
    lines[number.href] = row.querySelector('td.text').textContent;
return lines;
"""

LINE_OF_SOURCE = """
const anchor = document.getElementById(arguments[0]);
return anchor === null ? null : anchor.closest('.line').textContent;
"""

# Of a picture that is opened by itself: the words that its edge cuts, and those that lie over others. What moves is left out.
WORDS_CUT = """
const [, , width, height] = document.documentElement.getAttribute('viewBox').split(' ').map(Number), faults = [];
const words = [...document.querySelectorAll('text')].filter((each) => !each.closest('g')).map((each) => [each.textContent, each.getBBox()]);
words.forEach(([what, box], i) => {
  if (box.x < 0 || box.y < 0 || box.x + box.width > width || box.y + box.height > height + 1) faults.push(`'${what}' is cut`);
  for (const [other, its] of words.slice(i + 1))
    if (Math.min(box.x + box.width, its.x + its.width) - Math.max(box.x, its.x) > 1
        && Math.min(box.y + box.height, its.y + its.height) - Math.max(box.y, its.y) > 4) faults.push(`'${what}' lies over '${other}'`);
});
return faults;
"""

# Of a page with all folds open: listings and tables that are wider than their box, boxes that reach beyond the page, and full stops
# and the like that begin a line. Columns of text, as a program prints them, and tables of more than seven columns scroll by themselves.
TOO_WIDE = """
for (const fold of document.querySelectorAll('details')) fold.open = true;
const faults = [], page = document.querySelector('.contents').getBoundingClientRect();
const SCROLL = '.fragment:not(.program, .commands, .report), table:has(th:nth-child(8))';
for (const box of document.querySelectorAll('.contents :is(.fragment, table, tbody, td, code, pre)')) {
  const it = `<${box.localName}> ${box.textContent.trim().slice(0, 40)}`, scrolling = box.closest(SCROLL);
  if (scrolling && scrolling.getBoundingClientRect().right > page.right + 1) faults.push(`${it}: is cut`);
  if (scrolling) continue;
  if (box.scrollWidth > box.clientWidth + 1 && box.clientWidth) faults.push(`${it}: scrolls`);
  if (box.getBoundingClientRect().right > page.right + 1) faults.push(`${it}: is cut`);
}
for (const code of document.querySelectorAll('.contents :is(p, li) code')) {
  const next = code.nextSibling;
  if (next?.nodeType !== Node.TEXT_NODE || !/^[.,;:)]/.test(next.data)) continue;
  const range = document.createRange();
  range.setStart(next, 0), range.setEnd(next, 1);
  if (range.getBoundingClientRect().top > [...code.getClientRects()].at(-1).bottom) faults.push(`a line begins behind: ${code.textContent}`);
}
return faults;
"""


class HalfOfThePages(SiteInBrowser):
    half = 0

    def test_every_page_is_shown_well(self):
        """Lessons are opened in all four ways; other written pages, and of the reference, which Doxygen makes all alike, one
        page in 32, are opened in one way and turned to another theme and width."""
        self.assertGreater(len(self.pages), 100)
        ways = [("light", WIDE), ("dark", PHONE), ("dark", WIDE), ("light", PHONE)]
        reference = [page for page in self.pages if REFERENCE.search(page)]
        found = []
        for i, page in enumerate((sorted(set(self.pages) - set(reference)) + reference[::32])[self.half::2]):
            is_lesson = page.startswith("lesson_")
            first = i % len(ways)
            for way in range(len(ways)) if is_lesson else (first, first ^ 1):
                theme, size = ways[way]
                self.show(theme, size)
                if is_lesson or way == first:
                    self.open(page)
                found += self.faults(page, theme, size)
            found += [f"{page}: console: {entry['message']}" for entry in self.browser.get_log("browser")]
        self.assertEqual(found, [])


class OtherHalfOfThePages(HalfOfThePages):
    half = 1


class InBrowser(SiteInBrowser):
    def test_the_switch_turns_the_page_dark_and_light(self):
        self.show("light", WIDE)
        self.open("index.html")
        is_dark = lambda: self.browser.execute_script("return document.documentElement.classList.contains('dark-mode')")
        self.assertFalse(is_dark())
        self.browser.find_element(By.TAG_NAME, "doxygen-awesome-dark-mode-toggle").click()
        self.wait("the page to turn dark", is_dark)
        self.browser.find_element(By.TAG_NAME, "doxygen-awesome-dark-mode-toggle").click()
        self.wait("the page to turn light again", lambda: not is_dark())

    def lessons(self):
        """Their pages, of which 02 and 06 have two."""
        pages = [page for page in self.pages if re.match(r"lesson_\d\d(_[a-z]\w*)?\.html$", page)]
        self.assertEqual(len(pages), 9)
        return pages

    def test_the_navigation_of_the_front_page_opens_with_the_lessons(self):
        self.show("light", WIDE)
        self.open("index.html")
        entries = self.wait("the navigation", lambda: [link.text for link in self.visible("#nav-tree .label a")])
        self.assertEqual([entry[:3] for entry in entries[1:10]], [f"{page[7:9]}:" for page in self.lessons()])

    def test_the_navigation_lists_lessons_in_order_and_shows_where_one_is(self):
        self.show("light", WIDE)
        self.open("lesson_03.html")
        selected = self.wait("the page to be selected", lambda: self.browser.find_elements(By.CSS_SELECTOR, "#nav-tree .selected a.highlight, #nav-tree .selected .label a"))
        self.assertTrue(selected[0].text.startswith("03"))
        numbers = [link.text[:2] for link in self.browser.find_elements(By.CSS_SELECTOR, "#nav-tree .label a")
                   if re.match(r"\d\d: ", link.text)]
        self.assertGreaterEqual(len(numbers), 9)
        self.assertEqual(numbers, sorted(numbers))

    def test_search_finds_producer_acquire(self):
        for size in (WIDE, PHONE):
            self.show("light", size)
            self.open("index.html")
            field = self.wait("the search field", lambda: next(iter(self.visible("#MSearchField")), None))
            field.send_keys("producer_acquire")
            self.wait("the results", lambda: self.visible("#MSearchResultsWindow"))
            for frame in self.browser.find_elements(By.CSS_SELECTOR, "iframe#MSearchResults"):  # older Doxygen's
                self.browser.switch_to.frame(frame)
            self.wait("a result", lambda: self.named("a.SRSymbol", "producer_acquire"))[0].click()
            self.browser.switch_to.default_content()
            self.wait("the place to open", lambda: "Producer" in self.browser.title and "#" in self.browser.current_url)
            anchor = self.browser.current_url.partition("#")[2]
            member = self.browser.find_element(By.CSS_SELECTOR, f"a#{anchor} ~ h2.memtitle")
            self.assertIn("producer_acquire", member.text)

    def test_search_shows_pages_before_symbols_and_finds_them_by_any_word(self):
        self.show("light", WIDE)
        for words, first in (("phases", "Mbarriers and phases"), ("tma", "The tensor memory accelerator")):
            self.open("index.html")
            field = self.wait("the search field", lambda: next(iter(self.visible("#MSearchField")), None))
            field.send_keys(words)
            self.wait("the results", lambda: self.visible("#MSearchResultsWindow"))
            for frame in self.browser.find_elements(By.CSS_SELECTOR, "iframe#MSearchResults"):  # older Doxygen's
                self.browser.switch_to.frame(frame)
            self.wait(f"{first} to come first", lambda: self.texts("a.SRSymbol")[:1] and self.texts("a.SRSymbol")[0].startswith(first))
            self.browser.switch_to.default_content()

    def texts(self, selector):
        with contextlib.suppress(StaleElementReferenceException):
            return [element.text for element in self.visible(selector)]
        return []

    def test_lessons_lead_to_their_neighbours_at_their_end_and_from_the_menu_of_a_phone(self):
        self.show("light", PHONE)
        lessons = self.lessons()
        self.open(lessons[0])
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "nav.neighbours [rel=prev]"), [])
        for page, following in zip(lessons, lessons[1:]):
            self.browser.find_element(By.CSS_SELECTOR, "nav.neighbours [rel=next]").click()
            self.wait("the next lesson", lambda: self.browser.current_url.endswith(following))
            before = self.browser.find_element(By.CSS_SELECTOR, "nav.neighbours [rel=prev]")
            self.assertTrue(before.get_attribute("href").endswith(page))
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "nav.neighbours [rel=next]"), [])
        self.wait("the menu", lambda: self.visible(".main-menu-btn"))[0].click()
        expected = [f"{lesson[7:9]}:" for lesson in lessons] + ["All"]

        def entries():  # the menu unfolds, so some may not be there yet
            return [link.text[:3] for link in self.visible("#main-menu a") if link.text][1:len(expected) + 1]
        self.wait("an entry for each lesson", lambda: entries() == expected)

    def test_no_word_of_a_picture_is_cut_or_lies_over_another(self):
        pictures = sorted(path.name for path in Path(self.html, "files/docs/figures").glob("*.svg"))
        self.assertGreater(len(pictures), 30)
        found = {}
        for picture in pictures:
            self.open(f"files/docs/figures/{picture}")
            found[picture] = self.browser.execute_script(WORDS_CUT)
        self.assertEqual({picture: faults for picture, faults in found.items() if faults}, {})

    def test_a_phone_on_its_side_has_the_page_alone_and_its_menu_marks_the_page(self):
        self.show("light", ON_ITS_SIDE)
        self.open("lesson_04.html")
        self.wait("the menu", lambda: self.visible(".main-menu-btn"))
        self.assertEqual(self.visible("#main-menu, #side-nav"), [])
        self.assertGreater(self.browser.find_element(By.CSS_SELECTOR, ".contents").rect["width"], 800)
        self.browser.find_element(By.CSS_SELECTOR, ".main-menu-btn").click()
        marked = self.wait("the marked entry", lambda: self.visible("#main-menu a[aria-current]"))
        self.assertEqual([entry.text[:3] for entry in marked], ["04:"])

    def test_listings_and_tables_of_lessons_fit_a_phone(self):
        found = {}
        self.show("light", PHONE)
        for page in ["index.html", *self.lessons()]:
            self.open(page)
            faults = self.browser.execute_script(TOO_WIDE)
            self.assertTrue(self.browser.find_elements(By.CSS_SELECTOR, ".fragment:is(.program, .commands)"), page)
            if faults:
                found[page] = faults
        self.maxDiff = None
        self.assertEqual(found, {})

    def test_reports_wrap_and_what_scrolls_fades_where_it_goes_on(self):
        self.show("light", PHONE)
        self.open("lesson_04.html")
        of_box = "return [arguments[0].scrollWidth - arguments[0].clientWidth, getComputedStyle(arguments[0]).maskImage]"
        reports = self.browser.find_elements(By.CSS_SELECTOR, ".fragment.report")
        self.assertGreaterEqual(len(reports), 2)
        for report in reports:
            self.assertEqual(self.browser.execute_script(of_box, report), [0, "none"])
        self.open("lesson_03.html")
        box = self.wait("columns that scroll", lambda: self.visible(".fragment.more-right"))[0]
        hidden, fade = self.browser.execute_script(of_box, box)
        self.assertGreater(hidden, 1)
        self.assertIn("gradient", fade)
        self.browser.execute_script("arguments[0].scrollLeft = 9999", box)
        self.wait("the other edge to fade", lambda: box.get_attribute("class").split()[-1] == "more-left")

    def test_pages_say_what_they_are_about(self):
        for page in ("index.html", "lesson_05.html", "lab.html", "bench.html"):
            self.open(page)
            about = self.browser.find_element(By.CSS_SELECTOR, "meta[property='og:description']").get_attribute("content")
            self.assertGreater(len(about), 30, page)
            self.assertIn(about[:30], " ".join(self.browser.find_element(By.CSS_SELECTOR, ".contents").get_attribute("textContent").split()))
            self.assertTrue(self.browser.find_elements(By.CSS_SELECTOR, "link[rel=icon][href$='favicon.svg']"), page)

    def named(self, selector, name):
        """Visible elements whose text begins like that. One that goes while it is looked at is none."""
        with contextlib.suppress(StaleElementReferenceException):
            return [element for element in self.visible(selector) if element.text.startswith(name)]
        return []

    def test_numbers_in_diffs_lead_to_the_line_that_stands_there(self):
        self.show("light", WIDE)
        diffs = [page for page in self.pages if page.startswith("diff_")]
        self.assertEqual(len(diffs), 22)
        for diff in diffs:
            self.open(diff)
            by_page = {}
            for address, text in self.browser.execute_script(DIFF_LINES).items():
                page, _, anchor = address.partition("#")
                by_page.setdefault(page, []).append((anchor, text))
            self.assertEqual(len(by_page), 2, diff)
            for page, lines in by_page.items():
                self.browser.get(page)
                for anchor, text in lines:
                    shown = self.browser.execute_script(LINE_OF_SOURCE, anchor)
                    shown = re.sub(r"^\s*\d+ ?", "", shown or "no such line")
                    # Without spaces: Doxygen's listing leaves some out beside operators.
                    self.assertEqual("".join(shown.split()), "".join(text.split()), f"{diff}: {page}#{anchor}")

    def test_a_lesson_leads_to_its_diff_and_names_of_code_to_their_description(self):
        self.show("light", WIDE)
        self.open("lesson_05.html")
        self.browser.find_element(By.CSS_SELECTOR, "a.to-diff[href='diff_04_05_1.html']").click()
        self.wait("the diff", lambda: "From 04 to 05.1" in self.browser.title)
        self.open("lesson_05.html")
        links = {link.get_attribute("href"): link.text for link in self.browser.find_elements(By.CSS_SELECTOR, "a.code-link")}
        self.assertIn("load_tiles", links.values())
        for address, name in links.items():
            self.browser.get(address)
            name = name.removesuffix("()").split("::")[-1]
            anchor = address.partition("#")[2]
            place = self.browser.find_element(By.CSS_SELECTOR, f"a#{anchor} ~ h2.memtitle" if anchor else ".title")
            self.assertIn(name, place.text, address)


if __name__ == "__main__":
    site_in_browser.main(__doc__)
