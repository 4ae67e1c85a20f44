#!/usr/bin/env python3
"""Opens the built site in headless Chromium, as a reader would: `ctest --preset docs -R browser`.

    test_in_browser.py HTML_FOLDER [--driver CHROMEDRIVER]

Every page, on a wide screen and a phone, light and dark: nothing on the console, pictures have a size, nothing makes the
page wider than a phone. Search, diffs and links to code lead where they say.
"""
import argparse
import contextlib
import http.server
import re
import shutil
import sys
import tempfile
import threading
import unittest
from functools import partial
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

WIDE, PHONE = (1440, 900), (390, 844)
SECONDS = 20  # for anything that is waited for

# Doxygen's pages of files, types and members.
REFERENCE = re.compile(r"_8(cuh|hpp|cu|cpp)(_source)?\.html$|-members\.html$|^(struct|class|union|dir_|functions|namespacemembers)")

# What is wrong with the page as it is shown now; an empty list if nothing is.
FAULTS = """
const faults = [], dark = arguments[0] === 'dark', width = arguments[1];
if (document.documentElement.classList.contains('dark-mode') !== dark) faults.push('is not ' + arguments[0]);
const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).map(Number);
if ((red + green + blue > 384) === dark) faults.push('has the other theme\\'s background');
const content = document.querySelector('#doc-content') || document.body;
for (const box of [document.documentElement, document.body, content])
  if (box.scrollWidth > box.clientWidth + 1 && box.scrollWidth > width)
    faults.push(`<${box.localName} id="${box.id}"> is ${box.scrollWidth} pixels wide`);
for (const image of document.images) {
  const name = image.getAttribute('src');
  if (!image.complete || image.naturalWidth === 0) faults.push(name + ': is not loaded');
  if (!/\\bon-(light|dark)\\b/.test(image.className)) continue;
  const shown = image.getBoundingClientRect().width > 50 && image.getBoundingClientRect().height > 50;
  if (shown !== image.classList.contains(dark ? 'on-dark' : 'on-light')) faults.push(name + ': ' + (shown ? 'is' : 'is not') + ' shown');
}
return faults;
"""

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


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class InBrowser(unittest.TestCase):
    html = driver_path = None

    @classmethod
    def setUpClass(cls):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=cls.html))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        cls.site = f"http://127.0.0.1:{server.server_port}/"
        profile = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, profile, ignore_errors=True)
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
                         "--no-first-run", "--disable-background-networking", "--disable-component-update",
                         "--disable-sync", f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(service=Service(cls.driver_path), options=options)
        cls.addClassCleanup(cls.browser.quit)
        cls.browser.set_page_load_timeout(SECONDS)
        cls.pages = sorted(path.name for path in Path(cls.html).glob("*.html"))

    def show(self, theme, size):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                     {"features": [{"name": "prefers-color-scheme", "value": theme}]})
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False})

    def open(self, page):
        self.browser.get(self.site + page)

    def wait(self, what, condition):
        return WebDriverWait(self.browser, SECONDS, 0.1).until(lambda _: condition(), what)

    def faults(self, page, theme, size):
        """Of the page that is open. A theme follows the system's a moment later, so does the layout of the navigation."""
        found = []

        def none_left():
            found[:] = self.browser.execute_script(FAULTS, theme, size[0])
            return not found

        with contextlib.suppress(TimeoutException):
            WebDriverWait(self.browser, 2, 0.05).until(lambda _: none_left())
        return [f"{page}, {theme}, {size[0]} pixels: {fault}" for fault in found]

    def test_every_page_is_shown_well(self):
        """Written pages in all four ways; of the reference, which Doxygen makes all alike, one page in 32 likewise."""
        self.assertGreater(len(self.pages), 100)
        ways = [("light", WIDE), ("dark", PHONE), ("dark", WIDE), ("light", PHONE)]
        reference = [page for page in self.pages if REFERENCE.search(page)]
        found = []
        for page in sorted(set(self.pages) - set(reference)) + reference[::32]:
            for theme, size in ways:
                self.show(theme, size)
                self.open(page)
                found += self.faults(page, theme, size)
            found += [f"{page}: console: {entry['message']}" for entry in self.browser.get_log("browser")]
        self.assertEqual(found, [])

    def test_the_switch_turns_the_page_dark_and_light(self):
        self.show("light", WIDE)
        self.open("index.html")
        is_dark = lambda: self.browser.execute_script("return document.documentElement.classList.contains('dark-mode')")
        self.assertFalse(is_dark())
        self.browser.find_element(By.TAG_NAME, "doxygen-awesome-dark-mode-toggle").click()
        self.wait("the page to turn dark", is_dark)
        self.browser.find_element(By.TAG_NAME, "doxygen-awesome-dark-mode-toggle").click()
        self.wait("the page to turn light again", lambda: not is_dark())

    def test_the_navigation_lists_lessons_in_order_and_shows_where_one_is(self):
        self.show("light", WIDE)
        self.open("lesson_03.html")
        selected = self.wait("the page to be selected", lambda: self.browser.find_elements(By.CSS_SELECTOR, "#nav-tree .selected a.highlight, #nav-tree .selected .label a"))
        self.assertTrue(selected[0].text.startswith("03"))
        numbers = [link.text[:2] for link in self.browser.find_elements(By.CSS_SELECTOR, "#nav-tree .label a")
                   if re.match(r"\d\d: ", link.text)]
        self.assertGreaterEqual(len(numbers), 6)
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
            self.wait("its places", lambda: self.named("a.SRScope", "ladder::Producer::"))[0].click()
            self.browser.switch_to.default_content()
            self.wait("the place to open", lambda: "Producer" in self.browser.title and "#" in self.browser.current_url)
            anchor = self.browser.current_url.partition("#")[2]
            member = self.browser.find_element(By.CSS_SELECTOR, f"a#{anchor} ~ h2.memtitle")
            self.assertIn("producer_acquire", member.text)

    def visible(self, selector):
        return [element for element in self.browser.find_elements(By.CSS_SELECTOR, selector) if element.is_displayed()]

    def named(self, selector, name):
        """Visible elements whose text begins like that. One that goes while it is looked at is none."""
        with contextlib.suppress(StaleElementReferenceException):
            return [element for element in self.visible(selector) if element.text.startswith(name)]
        return []

    def test_numbers_in_diffs_lead_to_the_line_that_stands_there(self):
        self.show("light", WIDE)
        diffs = [page for page in self.pages if page.startswith("diff_")]
        self.assertGreaterEqual(len(diffs), 5)
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
                    self.assertEqual(re.sub(r"^\s*\d+ ?", "", shown or "no such line").split(), text.split(), f"{diff}: {page}#{anchor}")

    def test_a_lesson_leads_to_its_diff_and_names_of_code_to_their_description(self):
        self.show("light", WIDE)
        self.open("lesson_05.html")
        self.browser.find_element(By.CSS_SELECTOR, "a.to-diff[href='diff_04_05.html']").click()
        self.wait("the diff", lambda: "From 04 to 05" in self.browser.title)
        self.open("lesson_05.html")
        links = {link.get_attribute("href"): link.text for link in self.browser.find_elements(By.CSS_SELECTOR, "a.code-link")}
        self.assertIn("load_tiles", links.values())
        for address, name in links.items():
            self.browser.get(address)
            name = name.removesuffix("()").split("::")[-1]
            anchor = address.partition("#")[2]
            place = self.browser.find_element(By.CSS_SELECTOR, f"a#{anchor} ~ h2.memtitle" if anchor else ".title")
            self.assertIn(name, place.text, address)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("html", help="the folder of the site")
    parser.add_argument("--driver", default="/usr/bin/chromedriver", help="chromedriver")
    arguments, rest = parser.parse_known_args()
    InBrowser.html, InBrowser.driver_path = arguments.html, arguments.driver
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
