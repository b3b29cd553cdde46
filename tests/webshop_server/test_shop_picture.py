"""Pictures show the kind of a product in its own colours."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from webshop_server.app import Config, create_app
from webshop_server.errors import ArgumentError
from webshop_server.generate import load_product_kinds
from webshop_server.inventory import Inventory
from webshop_server.product import Option, Product
from webshop_server.record import parse_product
from webshop_server.renderer import COLORS, PhotoSource, draw_picture, find_shape, load_shapes

SHAPES = (
    "blouse dress leggings shirt shorts hoodie loafers sandals sneakers scarf jacket backpack "
    "pump-bottle cream-jar cream-jar dropper lipstick nail-polish makeup-brush toothbrush "
    "pump-bottle towel perfume dropper "
    "headphones speaker cable charger phone-case tablet memory-card webcam watch tripod keyboard power-bank "
    "sofa table pillow bed floor-lamp rug curtain ottoman bookcase chair planter clock "
    "protein-bar granola coffee tea chocolate nuts sauce-jar oil-bottle trail-mix jam noodles water "
)


def fill_of(drawn):
    return re.search(r'<g fill="(#[0-9a-f]{6})"', drawn)[1]


def dots_of(drawn):
    return re.findall(r'cy="188" r="6" fill="(#[0-9a-f]{6})"', drawn)


def test_every_kind_of_a_generated_catalogue_has_its_shape():
    kinds = [kind for kinds in load_product_kinds().values() for kind in kinds]
    found = [find_shape(Product("A", f"Brand Classic {kind.name} with {kind.features[0]}", query=kind.query)).name
             for kind in kinds]  # fmt: skip
    assert dict(zip([kind.name for kind in kinds], found, strict=True)) == dict(
        zip([kind.name for kind in kinds], SHAPES.split(), strict=True)
    )


@pytest.mark.parametrize(
    ("title", "query", "shape"),
    [
        ("Stoneware Mug, Set of 2", "", "mug"),
        ("Ridge&Co Mid-Century Modern Metal Table Lamp with Fabric Shade", "table lamps", "floor-lamp"),
        ("Noise Cancelling Earbuds (pillow included)", "accessories", "headphones"),
        ("Something without a name", "", "parcel"),
    ],
)
def test_shapes_of_other_catalogues(title, query, shape):
    assert find_shape(Product("A", title, query=query)).name == shape


def test_every_drawing_is_valid_and_has_no_text_of_a_user():
    for shape in load_shapes()[0].values():
        product = Product("B<1>", shape.name.replace("-", " "), "<script>", options=(Option("color", ("<b>",)),))
        for choice in ("red", "<script>", "x" * 10_000, "\ud800", "RED hot", ""):
            drawn = draw_picture(product, choice)
            assert "script" not in drawn
            assert "<b>" not in drawn
            assert "class=" not in drawn
            root = ElementTree.fromstring(drawn)
            assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_a_picture_has_the_listings_own_colours():
    pillow = Product(
        "B1", "Throw Pillow", options=(Option("size", ("black bear",)), Option("color", ("teal", "dark red")))
    )
    plain = draw_picture(pillow)
    assert fill_of(plain) == COLORS["teal"]
    assert dots_of(plain) == [COLORS["red"]], "the other colours, and no values of other options"
    chosen = draw_picture(pillow, "dark red")
    assert fill_of(chosen) == COLORS["red"]
    assert dots_of(chosen) == []
    assert fill_of(draw_picture(pillow, "nonsense")) == COLORS["teal"]
    assert fill_of(draw_picture(Product("B1", "Wine Red Heel Pump"))) == COLORS["wine"]
    assert fill_of(draw_picture(Product("B1", "Pump"))) == load_shapes()[0]["pumps"].fill


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "51.jpg").write_bytes(b"jpeg of the address")
    (folder / "B02.png").write_bytes(b"png of the asin")
    (folder / "B04.svg").write_bytes(b"<svg/>")
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    return folder


@pytest.fixture
def shop(tmp_path):
    from webshop_server.catalogue import CatalogueWriter

    address = "https://img.example.org/I/51.jpg"
    records = [
        {"asin": "B01", "name": "Mug", "images": [address, "https://x.example.org/transparent-pixel.gif"]},
        {"asin": "B02", "name": "Lamp", "images": ["https://x.example.org/transparent-pixel.gif"]},
        {"asin": "B03", "name": "Chair", "images": ["http://img.example.org/a.jpg", "javascript:alert(1)", None]},
        {"asin": "B04", "name": "Rug", "images": ["https://img.example.org/../secret.jpg"]},
    ]
    with CatalogueWriter(tmp_path / "a.sqlite") as writer:
        writer.add([parse_product(record) for record in records])
        return Inventory(writer.finish("x"))


def test_pages_load_nothing_from_other_hosts_by_default(shop):
    assert [shop.catalogue.product(f"B0{n}").image for n in (1, 2, 3)] == ["https://img.example.org/I/51.jpg", "", ""]
    client = create_app(Config(shop)).test_client()
    response = client.get("/image/B01.svg")
    assert (response.status_code, response.mimetype) == (200, "image/svg+xml")
    assert "https" not in response.headers["Content-Security-Policy"]


def test_photos_of_a_directory(shop, photos):
    client = create_app(Config(shop, image_dir=photos)).test_client()
    assert client.get("/image/B01.svg").data == b"jpeg of the address"
    response = client.get("/image/B02.svg")
    assert (response.data, response.mimetype) == (b"png of the asin", "image/png")
    for asin in ("B03", "B04"):
        assert client.get(f"/image/{asin}.svg").mimetype == "image/svg+xml", "drawn"
        assert b"secret" not in client.get(f"/image/{asin}.svg").data


def test_a_photo_that_is_gone_is_named(shop, photos, caplog):
    (photos / "B03.jpg").mkdir()
    client = create_app(Config(shop, image_dir=photos)).test_client()
    assert client.get("/image/B03.svg").mimetype == "image/svg+xml", "drawn"
    (photos / "B02.png").unlink()
    assert client.get("/image/B02.svg").status_code == 503
    assert "B02.png` cannot be read: No such file or directory" in caplog.text


def test_photos_of_a_host_that_the_operator_allows(shop):
    client = create_app(Config(shop, remote_images=("img.example.org",))).test_client()
    response = client.get("/image/B01.svg")
    assert (response.status_code, response.location) == (302, "https://img.example.org/I/51.jpg")
    assert "img-src 'self' https://img.example.org;" in client.get("/").headers["Content-Security-Policy"]
    assert client.get("/image/B02.svg").status_code == 200


def test_wrong_sources_of_photos_are_refused(shop, tmp_path):
    with pytest.raises(ArgumentError, match="`image_dir` should be a directory"):
        PhotoSource(tmp_path / "missing")
    for host in ("*", "https://a.example.org", "a.example.org; script-src *", "", "A.example.org"):
        with pytest.raises(ArgumentError, match="`remote_images` should hold names of hosts"):
            create_app(Config(shop, remote_images=(host,)))
