"""What the tests of the site share: headless Chromium, a server of the built site on this machine, and what is looked at."""
import argparse
import contextlib
import http.server
import shutil
import sys
import tempfile
import threading
import unittest
from functools import partial
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SECONDS = 20  # for anything that is waited for

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
const footer = document.querySelector('#nav-path');
if (footer && footer.offsetHeight && content.getBoundingClientRect().bottom > footer.getBoundingClientRect().top + 1) faults.push('the footer lies over the text');
for (const image of document.images) {
  const name = image.getAttribute('src');
  if (!image.complete || image.naturalWidth === 0) faults.push(name + ': is not loaded');
  if (/figures\\/.*\\.svg$/.test(name) && image.width) {
    // Words of a picture that is drawn for a phone have 12 pixels or more.
    if (image.width / image.naturalWidth < 11 / 12) faults.push(name + ': its words are smaller than 11 pixels');
    for (let box = image.parentElement; box !== content; box = box.parentElement)
      if (getComputedStyle(box).overflowX !== 'visible' && box.scrollWidth > box.clientWidth + 1) faults.push(name + ': must be scrolled');
    if (image.getBoundingClientRect().right > content.getBoundingClientRect().right) faults.push(name + ': overflows the page');
  }
  if (!/\\bon-(light|dark)\\b/.test(image.className)) continue;
  const shown = image.getBoundingClientRect().width > 50 && image.getBoundingClientRect().height > 50;
  if (shown !== image.classList.contains(dark ? 'on-dark' : 'on-light')) faults.push(name + ': ' + (shown ? 'is' : 'is not') + ' shown');
}
return faults;
"""


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class SiteInBrowser(unittest.TestCase):
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
                         "--disable-sync", f"--user-data-dir={profile}",
                         # A request that leaves the machine fails, which the console says.
                         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"):
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
            "width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": min(size) < 500})  # whose bars lie over the page

    def open(self, page):
        self.browser.get(self.site + page)

    def wait(self, what, condition):
        return WebDriverWait(self.browser, SECONDS, 0.1).until(lambda _: condition(), what)

    def faults(self, page, theme, size):
        """Of the page that is open. A theme follows the system's a moment later, on a busy machine seconds, so does the layout of the
        navigation."""
        found = []

        def none_left():
            found[:] = self.browser.execute_script(FAULTS, theme, size[0])
            return not found

        with contextlib.suppress(TimeoutException):
            self.wait("a page without faults", none_left)
        return [f"{page}, {theme}, {size[0]} pixels: {fault}" for fault in found]

    def visible(self, selector):
        return [element for element in self.browser.find_elements(By.CSS_SELECTOR, selector) if element.is_displayed()]


def main(description):
    """Runs the tests of the program."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("html", help="the folder of the site")
    parser.add_argument("--driver", default="/usr/bin/chromedriver", help="chromedriver")
    arguments, rest = parser.parse_known_args()
    SiteInBrowser.html, SiteInBrowser.driver_path = arguments.html, arguments.driver
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
