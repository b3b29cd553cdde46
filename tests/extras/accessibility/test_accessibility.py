"""The shop's pages in Chromium: axe finds nothing serious, and a keyboard is enough to buy."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from importlib.resources import files

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import url_contains
from selenium.webdriver.support.wait import WebDriverWait

from drift_envs.integrations.loopback import listen
from drift_envs.show.chromium import Chromium
from webshop_server.app import Config, create_app, make_server
from webshop_server.generate import generate
from webshop_server.inventory import Inventory
from webshop_server.settings import THEMES, Settings

AXE = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RUN = """
const done = arguments[arguments.length - 1];
axe.run().then(found => done(found.violations.filter(one => ['serious', 'critical'].includes(one.impact))
  .map(one => [one.id, one.nodes.slice(0, 3).map(node => node.html.slice(0, 200) + ' ' + node.failureSummary)])));
"""


@pytest.fixture(scope="module")
def inventory(tmp_path_factory):
    path = tmp_path_factory.mktemp("shop") / "shop.sqlite"
    generate(path, 300, seed=1)
    return Inventory.open(path)


@pytest.fixture(scope="module")
def driver():
    chromium = Chromium(pictures=False)
    yield chromium.driver
    chromium.close()


@contextmanager
def served(inventory, **settings):
    """A shop in a thread; its address."""
    with listen() as listener:
        server = make_server(create_app(Config(inventory, settings=Settings(**settings))), listener)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.close()


PURCHASE = ".last button"


def walk(driver, address):
    """Yields after each page of a purchase, with its name."""
    driver.get(address)
    session = driver.current_url.rstrip("/").rpartition("/")[2]
    yield "start"
    driver.get(f"{address}/search_results/{session}/shirt/1")
    yield "results"
    item = driver.find_element(By.CLASS_NAME, "product-link").get_attribute("href")
    driver.get(item)
    driver.get(driver.find_element(By.CLASS_NAME, "option").get_attribute("href"))
    yield "item"
    links = [link.get_attribute("href") for link in driver.find_elements(By.CSS_SELECTOR, ".subs a")]
    for link in links:
        driver.get(link)
        yield link.split("/")[-2]
    driver.get(item)
    for name in ("ad", "confirm", "done"):
        if name == "ad":
            driver.find_element(By.CSS_SELECTOR, PURCHASE).click()
        elif name == "confirm":
            driver.find_element(By.CSS_SELECTOR, "button[value='A']").click()
        else:
            driver.find_element(By.CSS_SELECTOR, PURCHASE).click()
        yield name


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(driver, inventory, theme):
    titles, found = [], {}
    driver.set_window_size(390 if theme == "standard" else 1280, 1000)
    with served(inventory, theme=theme, ad_page=True, ad_right_button="A") as address:
        for name in walk(driver, address):
            driver.execute_script(AXE)
            if violations := driver.execute_async_script(RUN):
                found[name] = violations
            assert len(driver.find_elements(By.TAG_NAME, "h1")) == 1, name
            titles.append(driver.title)
    assert not found
    assert len(titles) == len(set(titles)) >= 6
    assert all(" - " in title and "WebShop" in title for title in titles)


def test_results_are_links_with_names_and_options_stand_below_title_and_price_on_a_phone(driver, inventory):
    driver.set_window_size(390, 800)
    with served(inventory) as address:
        pages = walk(driver, address)
        next(pages)
        next(pages)
        card = driver.find_element(By.CLASS_NAME, "card")
        link = card.find_element(By.CLASS_NAME, "product-link")
        assert link.accessible_name == f"{card.find_element(By.CLASS_NAME, 'name').text} ({link.text})"
        next(pages)
        tops = [
            driver.find_element(By.CSS_SELECTOR, one).rect["y"] for one in ("h1", ".facts .price", ".groups", ".last")
        ]
        assert tops == sorted(tops)


def test_a_keyboard_buys(driver, inventory):
    with served(inventory) as address:
        driver.get(address)
        driver.switch_to.active_element.send_keys("shirt", Keys.ENTER)
        wait = WebDriverWait(driver, 20)
        wait.until(url_contains("/search_results/"))
        for wanted, path in ((".product-link", "/item_page/"), (".option", "%3A"), (PURCHASE, "/done/")):
            for _ in range(60):
                driver.switch_to.active_element.send_keys(Keys.TAB)
                if driver.switch_to.active_element in driver.find_elements(By.CSS_SELECTOR, wanted):
                    break
            driver.switch_to.active_element.send_keys(Keys.ENTER)
            wait.until(url_contains(path))
        assert driver.find_element(By.ID, "reward").text
