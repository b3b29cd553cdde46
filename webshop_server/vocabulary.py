"""The words that generated catalogues are made of.

* `Make` - one kind of product: what it is called, where it stands, what it can be, what it costs
* `MAKES` - all kinds of products, by department
* `BRANDS`, `SELLERS`, `COLORS_OFFERED` - names and colours
* `ADJECTIVES`, `USES`, `REVIEW_TITLES`, `REVIEW_BODIES`, `SENTENCES` - for titles and texts

Colours and sizes are chosen so that the score's fuzzy comparison never takes one for another.
"""

from __future__ import annotations

from typing import NamedTuple


class Make(NamedTuple):
    """One kind of product.

    Args:
        name: what it is called in a title.
        query: what shoppers search for.
        path: its place in the tree of categories.
        attributes: what it can be.
        features: what titles and bullets praise.
        groups: the option groups that it comes in, from `GROUPS`; `color` is one.
        price: lowest and highest price, in dollars.
    """

    name: str
    query: str
    path: tuple[str, ...]
    attributes: tuple[str, ...]
    features: tuple[str, ...]
    groups: tuple[str, ...]
    price: tuple[float, float]


COLORS_OFFERED = (
    "black white red yellow blue green orange purple pink brown gray teal".split()
)
"""No one is part of another, and each is its own word in the score's list of colours."""

GROUPS = {
    "size": ("s", "m", "l", "xl", "xxl"),
    "shoe": ("6", "7", "8", "9", "10", "11"),
    "length": ("3 feet", "6 feet", "10 feet", "15 feet"),
    "volume": ("100 ml", "250 ml", "500 ml", "750 ml"),
    "count": ("single", "twin pack", "family pack"),
    "bed": ("twin", "queen", "king"),
    "capacity": ("32gb", "64gb", "128gb", "256gb"),
    "scent": ("lavender fields", "citrus grove", "sea breeze", "unscented"),
    "flavor": ("chocolate", "vanilla", "strawberry", "lemon", "peanut"),
    "weight": ("8 ounce", "16 ounce", "32 ounce", "64 ounce"),
    "finish": ("oak veneer", "walnut veneer", "matte lacquer"),
}
"""Option groups and their values."""

GROUP_NAMES = {"shoe": "size", "volume": "size", "bed": "size", "count": "pack", "weight": "size"}
"""What a page calls a group, where it is not its own name."""

BRANDS = {
    "fashion": "Harlow & Finch,Northgate,Willowby,Dune & Dale,Marlow Street,Coppermill,Briar Lane,Oakhurst".split(","),
    "beauty": "Verbena Lab,Lumiflor,Petal & Pine,Silken Root,Aurelle,Mossberry,Kindred Skin,Clearwater".split(","),
    "electronics": "Voltaic,Brightwave,Korvex,Pixelnest,Sonora Audio,Lumentek,Arcadia Tech,Nimbus".split(","),
    "garden": "Hearth & Hollow,Timberline,Casa Verde,Stonebridge,Fernwood,Loom & Ladder,Calder Home,Rivermoor".split(","),
    "grocery": "Golden Acre,Millstone,Sunny Orchard,Old Harbor,Wild Clover,Prairie Pantry,Tidewater,Maple Row".split(","),
}

SELLERS = (
    "Larkspur Trading,Bluebird Goods,Summit Supply,Harbor Outlet,Evergreen Direct,Cobalt Market,Redwood Depot,"
    "Juniper & Co,Meridian Store,Quayside Deals"
).split(",")

ADJECTIVES = "Classic,Everyday,Premium,Signature,Essential,Modern,Deluxe,Heritage,Studio,Original".split(",")

USES = {
    "fashion": "everyday wear,travel,the office,weekend walks,family gatherings,cool evenings".split(","),
    "beauty": "daily care,sensitive mornings,travel bags,evening routines,gift boxes,busy weekdays".split(","),
    "electronics": "home offices,road trips,small studios,living rooms,students,long flights".split(","),
    "garden": "living rooms,small apartments,guest bedrooms,porches,family kitchens,entryways".split(","),
    "grocery": "lunch boxes,slow breakfasts,picnics,pantry shelves,movie nights,hikes".split(","),
}

SENTENCES = (
    "Made by {brand} for {use}, this {name} is built around one idea: {feature}.",
    "We tested it for months and kept what works: {attributes}.",
    "It arrives in a plain box that can be recycled.",
    "Questions are answered by people, usually within a day.",
    "If it is not what you hoped for, send it back within thirty days.",
    "A good choice for {use}, and a thoughtful present.",
)

REVIEW_TITLES = {
    5: "Exactly what I wanted,Better than expected,Would buy again,Lovely".split(","),
    4: "Good value,Does the job,Happy with it,Nearly perfect".split(","),
    3: "It is all right,Average,Fine for the price,Mixed feelings".split(","),
    2: "Not for me,Smaller than I thought,Expected more,Came late".split(","),
    1: "Disappointed,Broke after a week,Sent it back,Do not bother".split(","),
}

REVIEW_BODIES = {
    5: "I use this {name} every day and it still looks new.|Bought one for myself and one for my sister.|{feature}, "
    "just as described.",
    4: "Good {name}. The packaging could be simpler.|Works well for {use}.|Took a day longer to arrive, but worth it.",
    3: "The {name} is fine, nothing special.|Good for {use}, less so for anything else.|You get what you pay for.",
    2: "I hoped for more from {brand}.|The {name} did not suit me.|Too small for {use}.",
    1: "The {name} did not last.|Customer service was kind, but I returned it.|Not as described.",
}


def _makes(path: str, *rows: str) -> tuple[Make, ...]:
    """Read rows of `name | query | sub path | attributes | features | groups | low-high`."""
    makes = []
    for row in rows:
        name, query, place, attributes, features, groups, price = (cell.strip() for cell in row.split("|"))
        low, high = (float(end) for end in price.split("-"))
        parts = (*path.split(" > "), *(part.strip() for part in place.split(">")))
        lists = [tuple(item.strip() for item in cell.split(",") if item.strip()) for cell in (attributes, features, groups)]
        makes.append(Make(name, query, parts, lists[0], lists[1], lists[2], (low, high)))
    return tuple(makes)


MAKES: dict[str, tuple[Make, ...]] = {
    "fashion": _makes(
        "Clothing & Jewelry",
        "Women's Blouse|women's blouses|Women > Tops > Blouses|machine washable, long sleeve, button closure, loose fit, "
        "polyester cotton|Buttoned Cuffs, a Soft Collar, Side Slits|color, size|18-55",
        "Women's Midi Dress|women's dresses|Women > Clothing > Dresses|hand wash, short sleeve, elastic waist, tummy "
        "control, regular fit|Deep Pockets, a Flowing Hem, a Tie Belt|color, size|25-90",
        "Women's Leggings|women's leggings|Women > Active > Leggings|high waist, quick drying, moisture wicking, nylon "
        "spandex, tummy control|a Hidden Pocket, Flat Seams, a Wide Band|color, size|12-45",
        "Men's Oxford Shirt|men's shirts|Men > Clothing > Shirts|slim fit, wash cold, long sleeve, button closure, cotton "
        "spandex|a Chest Pocket, Double Stitching, a Curved Hem|color, size|20-70",
        "Men's Cargo Shorts|men's shorts|Men > Clothing > Shorts|relaxed fit, elastic waist, drawstring closure, quick "
        "drying, machine washable|Six Pockets, a Zip Fly, Reinforced Knees|color, size|15-48",
        "Men's Hooded Sweatshirt|men's hoodies|Men > Clothing > Hoodies|fleece lined, classic fit, wash cold, daily wear, "
        "polyester cotton|a Kangaroo Pocket, Ribbed Cuffs, a Lined Hood|color, size|22-65",
        "Men's Loafers|men's loafers|Men > Shoes > Loafers|rubber sole, slip resistant, memory foam, leather sole, arch "
        "support|a Padded Heel, Hand Stitching, a Low Heel|color, shoe|30-120",
        "Women's Sandals|women's sandals|Women > Shoes > Sandals|open toe, ankle strap, rubber sole, memory foam, non "
        "slip|a Cork Footbed, an Adjustable Buckle, a Light Sole|color, shoe|18-80",
        "Running Sneakers|running shoes|Unisex > Shoes > Sneakers|lace up, arch support, rubber outsole, ethylene vinyl, "
        "non slip|a Breathable Upper, Reflective Trim, a Cushioned Heel|color, shoe|35-130",
        "Wool Scarf|scarves|Accessories > Scarves|hand wash, lightweight design, gift wrapped, dry clean, long fringe|"
        "Knotted Fringes, a Checked Weave, a Soft Touch|color|10-45",
        "Rain Jacket|rain jackets|Unisex > Clothing > Jackets|water resistant, zip closure, machine wash, lightweight "
        "design, long sleeve|a Packable Hood, Taped Seams, Vented Sides|color, size|40-160",
        "Canvas Backpack|backpacks|Accessories > Bags > Backpacks|water resistant, zip closure, heavy duty, padded "
        "straps, school bag|a Laptop Sleeve, Bottle Pockets, a Key Clip|color|25-95",
    ),
    "beauty": _makes(
        "Beauty & Care",
        "Repair Shampoo|shampoo|Hair Care > Shampoo|sulfate free, paraben free, damaged hair, dry hair, argan oil|Keratin, "
        "Rosemary Extract, a Mild Lather|volume, scent|8-35",
        "Hair Mask|hair masks|Hair Care > Hair Masks|deep conditioning, coconut oil, damaged hair, cruelty free, natural "
        "hair|Shea Butter, Honey, Overnight Care|volume|9-40",
        "Face Moisturizer|face moisturizers|Skin Care > Face > Moisturizers|fragrance free, hyaluronic acid, sensitive "
        "skin, anti aging, oil free|a Pump Bottle, Green Tea, Daily Hydration|volume|10-60",
        "Vitamin Serum|face serums|Skin Care > Face > Serums|dark circles, fine lines, dermatologist tested, hyaluronic "
        "acid, cruelty free|Vitamin C, a Glass Dropper, Fast Absorption|volume, count|12-70",
        "Matte Lipstick|lipsticks|Makeup > Lips > Lipstick|long lasting, highly pigmented, cruelty free, easy apply, "
        "paraben free|a Velvet Finish, a Slim Case, Vitamin E|color|6-28",
        "Nail Polish|nail polish|Nail Care > Nail Polish|quick drying, long lasting, non toxic, high gloss, easy apply|a "
        "Wide Brush, Gel Shine, Chip Protection|color, count|5-24",
        "Makeup Brush|makeup brushes|Makeup > Tools > Brushes|synthetic hair, easy clean, eye shadow, cruelty free, travel "
        "size|a Wooden Handle, Dense Bristles, a Pouch|color, count|6-45",
        "Electric Toothbrush|electric toothbrushes|Oral Care > Toothbrushes|teeth whitening, sensitive teeth, usb charging, "
        "easy use, oral hygiene|a Two Minute Timer, Three Modes, a Travel Case|color|20-120",
        "Body Lotion|body lotions|Skin Care > Body > Lotions|dry skin, shea butter, fast absorbing, paraben free, alcohol "
        "free|Oat Extract, Aloe Vera, a Light Feel|volume, scent|7-32",
        "Bath Towel|bath towels|Bathing > Towels|easy clean, quick drying, super absorbent, skin friendly, cotton terry|a "
        "Hanging Loop, Long Loops, a Woven Border|color, count|9-55",
        "Mens Cologne|men's fragrance|Fragrance > Men|long lasting, travel size, alcohol free, gift box, natural "
        "ingredients|Cedar, Bergamot, a Pocket Spray|volume|18-95",
        "Beard Oil|beard oil|Shave > Beard Care|argan oil, natural ingredients, hair growth, fragrance free, easy apply|"
        "Jojoba, a Dropper, Sandalwood|volume, scent|8-36",
    ),
    "electronics": _makes(
        "Electronics",
        "Wireless Headphones|headphones|Audio > Headphones|noise cancelling, stereo sound, fast charging, hands free, long "
        "battery|Padded Ear Cups, a Folding Frame, a Carry Case|color|25-250",
        "Bluetooth Speaker|bluetooth speakers|Audio > Speakers|water resistant, stereo sound, hands free, usb port, easy "
        "carry|Deep Bass, a Carry Loop, Twelve Hours of Play|color|18-150",
        "HDMI Cable|hdmi cables|Accessories > Cables > HDMI|high speed, gold plated, ultra hd, plug play, heavy duty|"
        "Braided Sleeve, Strain Relief, Shielding|length, count|7-40",
        "USB Charger|usb chargers|Accessories > Chargers|fast charging, easy carry, overheat protection, usb port, travel "
        "size|Folding Pins, Two Ports, an Indicator Light|color, count|9-45",
        "Phone Case|phone cases|Accessories > Phone Cases|wireless charging, shock resistant, non slip, easy install, "
        "tempered glass|Raised Edges, a Card Slot, a Matte Back|color|8-38",
        "Tablet|tablets|Computers > Tablets|quad core, high resolution, long battery, dual camera, fast charging|a Metal "
        "Body, Stereo Sound, a Slim Frame|color, capacity|80-480",
        "Memory Card|memory cards|Accessories > Memory Cards|high speed, water resistant, shock resistant, high "
        "performance, ultra hd|an Adapter, a Hard Case, Error Correction|capacity|9-75",
        "Webcam|webcams|Computers > Webcams|plug play, high definition, noise cancelling, easy install, wide angle|a Privacy "
        "Cover, a Tripod Thread, Auto Focus|color|22-130",
        "Smart Watch|smart watches|Wearables > Smart Watches|heart rate, water resistant, sleep tracking, long battery, "
        "stainless steel|a Bright Screen, Silent Alarms, Spare Straps|color|35-260",
        "Camera Tripod|tripods|Cameras > Tripods|carbon fiber, quick release, easy carry, aluminum alloy, non slip|a Ball "
        "Head, a Spirit Level, Rubber Feet|color, count|20-180",
        "Mechanical Keyboard|keyboards|Computers > Keyboards|plug play, hot swappable, usb port, noise reducing, easy "
        "clean|Backlit Keys, a Wrist Rest, a Coiled Cable|color|35-190",
        "Power Bank|power banks|Accessories > Power Banks|fast charging, usb port, easy carry, aluminum alloy, wireless "
        "charging|a Flashlight, a Level Display, Three Outputs|color, count|15-85",
    ),
    "garden": _makes(
        "Home & Garden",
        "Sofa|sofas and couches|Furniture > Living Room > Sofas|faux leather, solid wood, easy assemble, mid century, high "
        "density|Rolled Arms, a Storage Drawer, Loose Cushions|color|260-950",
        "Console Table|console tables|Furniture > Living Room > Tables|solid wood, easy clean, space saving, steel frame, "
        "wood finish|Two Drawers, a Lower Shelf, Tapered Legs|finish|70-420",
        "Throw Pillow|decorative pillows|Bedding > Pillows|machine washable, super soft, zip closure, living room, double "
        "sided|Piped Edges, a Woven Front, a Full Filling|color, count|9-48",
        "Duvet Cover|duvet covers|Bedding > Duvet Covers|machine washable, easy care, super soft, queen comfort, zip "
        "closure|Corner Ties, a Hidden Zip, Two Shams|color, bed|28-130",
        "Floor Lamp|floor lamps|Lighting > Lamps > Floor Lamps|brushed nickel, glass shade, easy assemble, energy "
        "efficient, living room|a Foot Switch, a Linen Shade, a Weighted Base|color|35-240",
        "Area Rug|area rugs|Decor > Rugs|non slip, machine washable, stain resistant, living room, easy clean|a Low Pile, "
        "Bound Edges, a Felt Back|color, size|30-260",
        "Window Curtain|curtains|Decor > Curtains|machine washable, room darkening, energy efficient, easy install, living "
        "room|Metal Grommets, a Lined Back, a Heavy Drape|color, length|18-90",
        "Storage Ottoman|ottomans|Furniture > Living Room > Ottomans|faux leather, easy install, storage space, high "
        "density, non slip|a Hinged Lid, Button Tufting, a Tray Top|color|35-180",
        "Bookcase|bookcases|Furniture > Office > Bookcases|solid wood, steel frame, easy assemble, storage space, space "
        "saving|Five Shelves, a Wall Anchor, an Open Back|finish|60-380",
        "Garden Chair|patio chairs|Outdoor > Patio Chairs|weather resistant, heavy duty, easy clean, steel frame, space "
        "saving|a High Back, a Cup Holder, a Folding Frame|color, count|40-220",
        "Ceramic Planter|planters|Outdoor > Planters|hand painted, drainage hole, weather resistant, long lasting, easy "
        "clean|a Saucer, a Glazed Rim, a Felt Foot|color, count|12-70",
        "Wall Clock|wall clocks|Decor > Clocks|battery operated, easy read, living room, silent movement, wood finish|Large "
        "Numerals, a Glass Front, a Sweep Hand|color|15-85",
    ),
    "grocery": _makes(
        "Grocery & Gourmet",
        "Protein Bar|protein bars|Snacks > Bars|gluten free, high protein, low sugar, plant based, soy free|Almonds, Sea "
        "Salt, Puffed Quinoa|flavor, count|12-48",
        "Granola|granola|Breakfast > Cereal > Granola|non gmo, whole grain, dairy free, low sodium, gluten free|Toasted "
        "Oats, Maple Syrup, Coconut Flakes|flavor, weight|6-34",
        "Ground Coffee|coffee|Beverages > Coffee|fair trade, medium roast, usda organic, caffeine free, kosher certified|"
        "Notes of Cocoa, a Resealable Bag, Slow Roasting|weight|9-45",
        "Green Tea|tea|Beverages > Tea|usda organic, caffeine free, sugar free, individually wrapped, natural flavors|Whole "
        "Leaves, Jasmine, Compostable Bags|count|6-32",
        "Dark Chocolate|chocolate|Snacks > Candy > Chocolate|fair trade, dairy free, low sugar, soy free, kosher certified|"
        "Cacao Nibs, a Gift Tin, Orange Peel|count, weight|5-42",
        "Mixed Nuts|nuts|Snacks > Nuts|non gmo, dry roasted, high protein, low sodium, kosher certified|Cashews, Pecans, a "
        "Hint of Honey|weight|8-55",
        "Pasta Sauce|pasta sauces|Pantry > Sauces|gluten free, low sodium, no preservatives, usda organic, non gmo|Slow "
        "Simmered Tomatoes, Basil, Roasted Garlic|weight, count|5-38",
        "Olive Oil|olive oil|Pantry > Oils|cold pressed, extra virgin, non gmo, usda organic, trans fat|Early Harvest "
        "Olives, a Dark Bottle, a Peppery Finish|volume|9-60",
        "Trail Mix|trail mix|Snacks > Trail Mix|gluten free, high protein, nut free, artificial colors, resealable bag|"
        "Sunflower Seeds, Dried Cherries, Raisins|weight, count|7-46",
        "Fruit Jam|jams|Pantry > Spreads|low sugar, no preservatives, natural ingredients, gluten free, high fructose|Whole "
        "Fruit, a Glass Jar, a Pinch of Pectin|count|5-33",
        "Instant Noodles|noodles|Pantry > Noodles|ready eat, artificial flavors, low fat, easy prepare, plant based|a Rich "
        "Broth, Dried Scallions, Wavy Noodles|count|6-36",
        "Sparkling Water|sparkling water|Beverages > Water|sugar free, zero calories, natural flavors, bpa free, non gmo|"
        "Fine Bubbles, a Twist of Lime, Slim Cans|count|6-30",
    ),
}
"""All kinds of products, by department."""
