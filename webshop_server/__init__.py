"""A local clone of WebShop: catalogue, search, instructions, score, pages and a web server.

Floors, each of which imports only from those below:

1. `errors`, `product`, `colors` - records and words
2. `catalog`, `vocabulary`, `generate`, `jsonstream`, `importer`, `settings` - the catalogue file, and what an
   operator may change
3. `search`, `goals`, `reward` - finding, asking and paying
4. `location`, `page`, `inventory`, `pages`, `action`, `shop` - the page model and the state machine
5. `oracle`, `render`, `images`, `htmlpage`, `sessions` - what is built on them
6. `views`, `admin`, `app`, `client`, `__main__` - the web application
"""
